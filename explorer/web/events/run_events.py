"""What the page answers to a link, a prompt, or the choice of a model: a dictionary of widgets and their new values."""

from collections.abc import Callable, Mapping
from dataclasses import fields, replace

import gradio as gr

from explorer.architecture.facts import facts
from explorer.language import N_, _, look_up
from explorer.lessons.examples import EXAMPLES
from explorer.state.errors import UserError
from explorer.state.page_state import OF_OTHER, PageState, turn_of
from explorer.state.run import Run
from explorer.state.selection import WORDS, Selection, as_index
from explorer.state.settings import RANGES, GenerationSettings
from explorer.tracing.translation import is_begun
from explorer.views import unknown_view
from explorer.web.errors import VISITORS, told
from explorer.web.events.lesson_events import LessonEvents
from explorer.web.events.opening import Opening
from explorer.web.events.other_model import own_continuations, read_by
from explorer.web.events.second_run import within_one_model
from explorer.web.events.toasts import telling, warn
from explorer.web.http.prompts_a_minute import PromptsAMinute
from explorer.web.http.request_types import State
from explorer.web.layout.page_layout import Layout
from explorer.web.widgets.state_update import StateUpdate

FIRST_PROMPT = next(iter(EXAMPLES.values()))
OF_GRADIO = ("api", "api-recorder", "settings")  # panels that it opens where an address has them in a tab's place
# What of a URL is left out, if all of it makes no sense -> template of what the visitor is told. Ids say nothing to
# another model, so that of what they are left out with a `text` remains.
TEXT = ("prompt", "generated", "branches", "began", "dropped")
OTHER = ("b.checkpoint", "b.prompt", "b.generated", "b.dropped", "b.edits", "b.pins", "b.text")
LEFT_OUT = {
    (): "",
    OTHER: N_("{wrong}; the second run is left out."),
    ("branches",): N_("{wrong}; the tree of continuations is left out."),
    ("edits",): N_("{wrong}; the model is shown as it is."),
    TEXT: N_("{wrong}; the text is begun anew."),
    (*TEXT, "edits"): N_("{wrong}; the text is begun anew, and the model is shown as it is."),
    ("checkpoint", "edits", *TEXT): N_("{wrong}; the first model is shown instead."),
    ("checkpoint", "edits", "text", *TEXT): N_("{wrong}; the first example is shown instead."),
}


def unreadable(query: Mapping[str, str]) -> list[str]:
    """Return the names in an address whose values are of another type or beyond their range."""
    settings, wrong = GenerationSettings.parse(query).as_dict(), []
    indices = {field.name for field in fields(Selection) if field.type is int} | {"dropped", "began"}
    for name, text in query.items():
        if not text:
            continue
        if name in RANGES:
            try:
                is_read = float(text) == settings[name]
            except ValueError:
                is_read = False
        else:
            is_read = text in WORDS.get(name, (text,)) and (name not in indices or as_index(text) is not None)
        wrong += [] if is_read else [name]
    return wrong


class Events:
    """The events' handlers: a new run changes the page's state, and then the browser asks for the pictures of it.

    Args:
        layout: the widgets they answer with.
        opening: knows what runs compute, and where they are looked at first.
        checkpoint: name of the model a new visitor sees.
        lessons: know what a step of a lesson asks; None where there are none.
        prompts: counts what each visitor asks about.
    """

    def __init__(
        self,
        layout: Layout,
        opening: Opening,
        checkpoint: str,
        lessons: LessonEvents | None = None,
        prompts: PromptsAMinute | None = None,
    ):
        self.layout, self.opening, self.checkpoint, self.lessons = layout, opening, checkpoint, lessons
        self.prompts = prompts or PromptsAMinute()

    @property
    def first_prompt(self) -> str:
        """The first example, or what the tokens of somebody's own vocabulary can spell."""
        _lm, tokenizer = self.opening.runs.model(self.checkpoint)
        try:
            tokenizer.encode(FIRST_PROMPT)
        except UserError:
            return tokenizer.example
        return FIRST_PROMPT

    @telling
    def on_load(self, state: State, request: gr.Request) -> dict:
        """What a visitor sees first: what the URL says, or else the first example in the tab that the state names."""
        named = {"view": view} if isinstance(view := state.get("view"), str) else {}
        query = dict(request.query_params)
        if query.get("view") in OF_GRADIO:
            del query["view"]
        if self.lessons and query.get("lesson"):
            query = self.lessons.in_address(query, self.checkpoint)
        query = named | query
        asked, settings = self.opened(query), GenerationSettings.parse(query)
        change = StateUpdate.pack(asked, asked.selection.as_dict() | settings.as_dict())
        return {self.layout.update: change} | self.widgets(asked, settings)

    def opened(self, query: dict[str, str]) -> PageState:
        """What a URL asks; what of it makes no sense is told and left out, and the rest is kept."""
        first = {"checkpoint": self.checkpoint, "text": self.first_prompt}
        unread = ", ".join(unreadable(query))
        nearest = _("Of this address {names} make no sense: the default or the nearest is shown.", names=unread)
        if wrong_values := " ".join(filter(None, (unknown_view(query.get("view")), nearest if unread else ""))):
            warn(UserError(wrong_values))
        if unknown := ", ".join(sorted(name for name in query if name.startswith(OF_OTHER) and name not in OTHER)):
            told_of = _("Of B an address has {known}; {unknown} is left out.", known=", ".join(OTHER), unknown=unknown)
            warn(UserError(told_of))
        wrong = None
        for left_out, template in LEFT_OUT.items():
            kept = {name: value for name, value in query.items() if name not in (*left_out, *OTHER * bool(left_out))}
            try:
                asked = self.opening.restored(first | kept | {"turn": 0})
            except VISITORS as error:
                wrong = wrong or error
                continue
            if wrong:
                warn(UserError(look_up(template, wrong=told(wrong))))
            return asked
        raise wrong

    def widgets(self, asked: PageState, settings: GenerationSettings) -> dict:
        """Gradio's own widgets, as the state has them."""
        return {
            **{widget: getattr(settings, name) for name, widget in self.layout.sampling.settings.items()},
            **self.show_model(asked.run.checkpoint, settings.top_k),
            self.layout.prompt: self.opening.runs.text(asked.run)[0],
            self.layout.tabs_of(asked.selection.view): gr.Tabs(selected=asked.selection.view),
        }

    @telling
    def on_follow(self, state: State) -> dict:
        """All that the state says but the tab, which has an event of its own, after the browser went back to it."""
        widgets = self.widgets(self.opening.within(PageState.parse(state)), GenerationSettings.parse(state))
        return {widget: value for widget, value in widgets.items() if not isinstance(widget, gr.Tabs)}

    @telling
    def on_prompt(self, prompt: str, checkpoint: str, state: State) -> dict:
        """A new run, looked at from its last token."""
        return self.run_prompt(prompt, checkpoint, state, self.opening.at_end)

    @telling
    def on_example(self, prompt: str, checkpoint: str, state: State) -> dict:
        """The run of an example, looked at where it shows what it is an example of."""
        return self.run_prompt(prompt, checkpoint, state, self.opening.where_it_shows)

    def run_prompt(self, prompt: str, checkpoint: str, state: State, look: Callable[[PageState], PageState]) -> dict:
        """A new run, looked at where `look` leads."""
        try:
            self.prompts.ask_of_this_event()
            run = self.opening.run_of(checkpoint, prompt, self.begun(state))
            state = self.within_one_model(state, run)
            run = self.kept_changes(run, state)
            asked = PageState(run, Selection.parse(state), turn=turn_of(state) + 1)
            asked = look(self.kept_other(asked, state))
        except VISITORS as error:
            warn(error)
            return {self.layout.picker: state.get("checkpoint", self.checkpoint)}
        return self.shown(asked, state)

    def begun(self, state: State) -> bool:
        """Whether a text begins with what its model expects: as the state's does."""
        try:
            run = PageState.parse(state).run
            _lm, tokenizer = self.opening.runs.model(run.checkpoint)
        except VISITORS:
            return True
        return bool(run.dropped) or is_begun(run.prompt, tokenizer)

    @telling
    def on_model(self, prompt: str, checkpoint: str, state: State) -> dict:
        """The run read by another model, with what was written, looked at from the same token where it has the same.

        Args:
            state: and, as `own`, what of its own that model had written to the prompt when it was last here.
        """
        try:
            before = PageState.parse(state)
            self.opening.runs.trace(before.run)
            same = self.opening.runs.text(before.run)[0] == prompt
            same = same or self.opening.run_of(before.run.checkpoint, prompt).prompt == before.run.prompt
        except VISITORS:  # nothing can be kept of it
            same = False
        if not same:
            return self.run_prompt(prompt, checkpoint, state, self.opening.at_end)
        try:
            self.prompts.ask_of_this_event()
            asked = read_by(self.opening, checkpoint, prompt, before, own_continuations(checkpoint, state.get("own")))
            state = self.within_one_model(state, asked.run)
            run = self.kept_changes(replace(asked.run, edits=()), state)
            asked = replace(asked, run=run, other=PageState.parse(state).other, turn=before.turn + 1)
            look = self.opening.within if run.token_ids == before.run.token_ids else self.opening.at_end
            asked = look(asked)
        except VISITORS as error:
            warn(error)
            return {self.layout.picker: state.get("checkpoint", self.checkpoint)}
        return self.shown(asked, state)

    def shown(self, asked: PageState, state: State) -> dict:
        """A new run in place of the state's."""
        run = asked.run
        if run.dropped:
            seen, (lm, _tokenizer) = len(run.prompt), self.opening.runs.model(run.checkpoint)
            cut = _(
                "The prompt has {tokens:,} tokens; the model sees {context:,} at once: the last {seen:,} are used.",
                tokens=run.dropped + seen,
                context=lm.config.context_length,
                seen=seen,
            )
            warn(UserError(cut))
        moved = dict(asked.selection.as_dict().items() - Selection.parse(state).as_dict().items())  # what it lacks
        top_k = GenerationSettings.parse(state).top_k
        return {self.layout.update: StateUpdate.pack(asked, moved), **self.show_model(run.checkpoint, top_k)}

    def within_one_model(self, state: State, run: Run) -> dict:
        """Return the state without changes that would put another model's values into the run (see `within_one_model`),
        or those of the run into the second one's model."""
        asked = PageState.parse(state | {"checkpoint": run.checkpoint})
        kept = within_one_model(asked).as_dict()
        return state | {name: kept[name] for name in ("edits", "b.edits") if state.get(name)}

    def kept_changes(self, run: Run, state: State) -> Run:
        """The run with the state's edits, or without where the model has not what they change."""
        changed = replace(run, edits=PageState.parse(state).run.edits if state.get("edits") else ())
        try:
            self.opening.runs.trace(changed)
        except VISITORS as error:
            warn(UserError(_("{wrong}: the model is shown as it is.", wrong=told(error))))
            return run
        return changed

    def kept_other(self, asked: PageState, state: State) -> PageState:
        """With the state's second run, or without where there is none of the new text."""
        both = replace(asked, other=PageState.parse(state).other if state.get("b.checkpoint") else None)
        try:
            self.opening.runs.comparison(both)
        except VISITORS as error:
            warn(UserError(_("{wrong}: the second run is closed.", wrong=told(error))))
            return asked.without_patches()
        return both

    def show_model(self, checkpoint: str, top_k: int) -> dict:
        lm, _tokenizer = self.opening.runs.model(checkpoint)
        most, offered = lm.config.vocab_size, self.opening.runs.library.offered
        note = offered.own_vocabulary if checkpoint == offered.own_module else None
        return {
            self.layout.facts: facts(lm),
            self.layout.vocabulary: look_up(note.template, **note.values) + "." if note else "",
            self.layout.picker: checkpoint,
            self.layout.sampling.top_k: gr.Slider(value=min(top_k, most), maximum=most),
        }
