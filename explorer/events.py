"""What the page answers to a link, a prompt, or the choice of a model: a dictionary of widgets and their new values."""

from dataclasses import replace

import gradio as gr

from explorer.errors import UserError
from explorer.examples import EXAMPLES
from explorer.facts import facts
from explorer.layout import Layout
from explorer.presenter import Presenter, Question, turn_of, view_named
from explorer.run import Run
from explorer.selection import Selection
from explorer.settings import GenerationSettings
from explorer.telling import VISITORS
from explorer.toasts import telling, warn

FIRST_PROMPT = EXAMPLES["a story"].text


class Events:
    """The events' handlers: a new run changes the page's state, and then the browser asks for the pictures of it.

    Args:
        layout: the widgets they answer with.
        presenter: knows the answers.
        checkpoint: name of the model a new visitor sees.
    """

    def __init__(self, layout: Layout, presenter: Presenter, checkpoint: str):
        self.layout, self.presenter, self.checkpoint = layout, presenter, checkpoint

    @telling
    def on_load(self, request: gr.Request) -> dict:
        """What a visitor sees first: what the URL says, or else the first example."""
        first = {"checkpoint": self.checkpoint, "text": FIRST_PROMPT}
        asked = dict(request.query_params)
        settings = GenerationSettings.parse(asked)
        try:
            question = self.presenter.restored(first | asked | {"turn": 0})
        except VISITORS as error:
            warn(error)
            question = self.presenter.restored(first)
        prompt, _ = self.presenter.text(question.run)
        return {
            self.layout.update: question.as_change(question.selection.as_dict() | settings.as_dict()),
            **{widget: getattr(settings, name) for name, widget in self.layout.sampling.settings.items()},
            **self.show_model(question.run.checkpoint, settings.top_k),
            self.layout.prompt: prompt,
            self.layout.tabs: gr.Tabs(selected=question.selection.view),
        }

    @telling
    def on_prompt(self, prompt: str, checkpoint: str, state: dict) -> dict:
        """A new run, looked at as the last one was: at its last token or, if another model is to read the same tokens,
        at the same ones."""
        try:
            run, selection = self.kept_changes(self.presenter.run_of(checkpoint, prompt), state), Selection.parse(state)
            again = state.get("checkpoint") != checkpoint and state.get("prompt") == list(run.prompt)
            look = self.presenter.within if again else self.presenter.at_end
            question = look(Question(run, selection, turn=turn_of(state) + 1))
        except VISITORS as error:
            warn(error)
            return {self.layout.picker: state.get("checkpoint", self.checkpoint)}
        if run.dropped:
            seen, (lm, _) = len(run.prompt), self.presenter.library.model(checkpoint)
            gr.Warning(
                f"The prompt has {run.dropped + seen:,} tokens; the model sees {lm.config.context_length:,} at once: "
                f"the last {seen:,} are used."
            )
        moved = dict(question.selection.as_dict().items() - selection.as_dict().items())  # what this model lacks
        top_k = GenerationSettings.parse(state).top_k
        return {self.layout.update: question.as_change(moved), **self.show_model(checkpoint, top_k)}

    def kept_changes(self, run: Run, state: dict) -> Run:
        """The run with the state's edits, or without where the model has not what they change."""
        changed = replace(run, edits=Question.parse(state).run.edits if state.get("edits") else ())
        try:
            self.presenter.trace(changed)
        except VISITORS as error:
            warn(UserError(f"{error}: the model is shown as it is."))
            return run
        return changed

    @telling
    def on_open(self, state: dict) -> dict:
        """The tab that the state names, after a click elsewhere chose it."""
        return {self.layout.tabs: gr.Tabs(selected=view_named(Selection.parse(state).view).name)}

    def show_model(self, checkpoint: str, top_k: int) -> dict:
        lm, _ = self.presenter.library.model(checkpoint)
        most = lm.config.vocab_size
        return {
            self.layout.facts: facts(lm),
            self.layout.picker: checkpoint,
            self.layout.sampling.top_k: gr.Slider(value=min(top_k, most), maximum=most),
        }
