"""What the page answers to each event of Gradio's: a dictionary of widgets and their new values."""

import html
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import gradio as gr

from explorer.components.token_strip import TokenStrip
from explorer.layout import EXAMPLES, Layout
from explorer.presenter import Presenter, Question, view_named
from explorer.run import MOST_TOKENS
from explorer.selection import Selection
from explorer.settings import GenerationSettings
from model.generation import generate

FIRST_PROMPT = EXAMPLES["a story"]
FIRST_HEAD = {"layer": 1, "head": 1}  # of the bundled model: it looks at the token before, which is easily seen
SECONDS_A_TOKEN = 1 / 18  # the pace at which new tokens are shown: eyes and browsers follow this, not 400 a second


class Events:
    """The events' handlers: a new run changes the page's state, and then the browser asks for the pictures of it.

    Args:
        layout: the widgets they answer with.
        presenter: knows the answers.
        checkpoint: name of the model a new visitor sees.
    """

    def __init__(self, layout: Layout, presenter: Presenter, checkpoint: str):
        self.layout, self.presenter, self.checkpoint = layout, presenter, checkpoint

    def on_load(self, request: gr.Request) -> dict:
        """What a visitor sees first: what the URL says, or else the first example."""
        first = {"checkpoint": self.checkpoint, "text": FIRST_PROMPT} | FIRST_HEAD
        asked = dict(request.query_params)
        settings = GenerationSettings.parse(asked)
        try:
            question = self.presenter.restored(first | asked)
        except ValueError as error:
            warn(error)
            question = self.presenter.restored(first)
        prompt, _ = self.presenter.text(question.run)
        return {
            **self.show_run(question, question.selection.as_dict() | settings.as_dict()),
            **self.show_model(question.run.checkpoint, settings.top_k),
            self.layout.prompt: prompt,
            self.layout.tabs: gr.Tabs(selected=question.selection.view),
            self.layout.temperature: settings.temperature,
            self.layout.max_new_tokens: settings.max_new_tokens,
            self.layout.seed: settings.seed,
        }

    def on_prompt(self, prompt: str, checkpoint: str, state: dict) -> dict:
        """A new run, looked at as the last one was: at its last token or, if another model is to read the same tokens,
        at the same ones."""
        try:
            run, selection = self.presenter.run_of(checkpoint, prompt), Selection.parse(state)
            again = state.get("checkpoint") != checkpoint and state.get("prompt") == list(run.prompt)
            look = self.presenter.within if again else self.presenter.at_end
            question = look(Question(run, selection))
        except ValueError as error:
            warn(error)
            return {self.layout.picker: state.get("checkpoint", self.checkpoint)}
        if run.dropped:
            seen = len(run.prompt)
            gr.Warning(
                f"The prompt has {run.dropped + seen:,} tokens; the model sees {seen} at once: the last are used."
            )
        moved = dict(question.selection.as_dict().items() - selection.as_dict().items())  # what this model lacks
        return self.show_run(question, moved) | self.show_model(checkpoint, GenerationSettings.parse(state).top_k)

    def on_open(self, state: dict) -> dict:
        """The tab that the state names, after a click elsewhere chose it."""
        return {self.layout.tabs: gr.Tabs(selected=view_named(Selection.parse(state).view).name)}

    def on_step(self, state: dict) -> Iterator[dict]:
        yield from self.written(state, replace(GenerationSettings.parse(state), max_new_tokens=1))

    def on_generate(self, state: dict) -> Iterator[dict]:
        yield from self.written(state, GenerationSettings.parse(state))

    def written(self, state: dict, settings: GenerationSettings) -> Iterator[dict]:
        """The run after each new token, at a pace that can be followed."""
        question = self.asked(state)
        if question is None:
            return
        room = MOST_TOKENS - len(question.run.generated)
        if room < 1:
            gr.Warning(f"{MOST_TOKENS:,} tokens were generated, as many as fit into a link: press Run to begin anew.")
            return
        settings = replace(settings, max_new_tokens=min(settings.max_new_tokens, room))
        lm, tokenizer = self.presenter.library.model(question.run.checkpoint)
        steps = generate(lm, question.run.token_ids, stop_tokens={tokenizer.end_of_text}, **settings.as_dict())
        shown = 0.0
        for done, step in enumerate(steps, start=1):
            run = replace(question.run, generated=(*question.run.generated, step.token_id))
            question = self.presenter.at_end(replace(question, run=run))
            last = done == settings.max_new_tokens or step.token_id == tokenizer.end_of_text
            time.sleep(max(0.0, shown + SECONDS_A_TOKEN - time.monotonic()))
            shown = time.monotonic()
            yield self.show_run(question, ask="show" if last else "tune")

    def asked(self, state: dict) -> Question | None:
        """The state's question if it makes sense; else None, and a warning says why not."""
        try:
            question = Question.parse(state)
            self.presenter.trace(question.run)
        except ValueError as error:
            warn(error)
            return None
        return question

    def show_run(self, question: Question, change: Mapping[str, Any] | None = None, ask: str = "show") -> dict:
        """The tokens, the text, and the change of state, of which the browser then asks to `ask`: see `Answers`.

        Of the selection only the tokens, and what is in `change`: the rest may have been changed since by clicks.
        """
        prompt, generated = self.presenter.text(question.run)
        selection = question.selection
        tokens = {"query": selection.query, "key": selection.key}
        return {
            self.layout.update: {"change": question.run.as_dict() | tokens | (change or {}), "ask": ask},
            self.layout.strip: TokenStrip.pack(**self.presenter.strip(question.run)),
            self.layout.story: {"prompt": prompt, "generated": generated},
        }

    def show_model(self, checkpoint: str, top_k: int) -> dict:
        lm, _ = self.presenter.library.model(checkpoint)
        most = lm.config.vocab_size
        return {
            self.layout.facts: self.presenter.facts(checkpoint),
            self.layout.picker: checkpoint,
            self.layout.top_k: gr.Slider(value=min(top_k, most), maximum=most),
        }


def warn(error: ValueError):
    """Show an error's sentence as text; Gradio would read it as HTML."""
    gr.Warning(html.escape(str(error)))
