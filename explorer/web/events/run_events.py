"""Handlers of links, prompts and the choice of a model; each returns a dictionary of widgets and their new values."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import gradio as gr

from explorer.architecture.summary import model_summary
from explorer.lessons.examples import EXAMPLES
from explorer.state.errors import UserError
from explorer.state.generation_settings import RANGES, GenerationSettings
from explorer.state.page_state import OTHER_PREFIX, PageState, parse_revision
from explorer.state.run import Run
from explorer.state.selection import Selection, field_choices, parse_index
from explorer.tracing.retokenize import has_bos
from explorer.translations import N_, _, translate
from explorer.views import unknown_view_message
from explorer.web.errors import USER_ERRORS, user_message
from explorer.web.events.lesson_events import LessonHandlers
from explorer.web.events.other_model import rerun_with_model, saved_continuations
from explorer.web.events.run_factory import RunFactory
from explorer.web.events.second_run import drop_cross_model_patches
from explorer.web.events.toasts import warn, with_error_toasts
from explorer.web.http.prompt_rate_limit import PromptRateLimiter
from explorer.web.http.request_types import State
from explorer.web.layout.page_layout import PageLayout
from explorer.web.widgets.state_update import StateUpdate

FIRST_PROMPT = next(iter(EXAMPLES.values()))
GRADIO_PANELS = ("api", "api-recorder", "settings")  # panels that Gradio opens if the URL has them as its view
# What of a URL is left out, if all of it makes no sense -> template of what the visitor is told. Ids say nothing to
# another model, so that of what they are left out with a `text` remains.
TEXT_FIELDS = ("prompt", "generated", "branches", "began", "dropped")
SECOND_RUN_FIELDS = ("b.checkpoint", "b.prompt", "b.generated", "b.dropped", "b.edits", "b.pins", "b.text")
FALLBACKS = {
    (): "",
    SECOND_RUN_FIELDS: N_("{wrong}; the second run is left out."),
    ("branches",): N_("{wrong}; the tree of continuations is left out."),
    ("edits",): N_("{wrong}; the interventions were ignored."),
    TEXT_FIELDS: N_("{wrong}; the token ids and the continuation were ignored."),
    (*TEXT_FIELDS, "edits"): N_("{wrong}; the token ids, the continuation and the interventions were ignored."),
    ("checkpoint", "edits", *TEXT_FIELDS): N_("{wrong}; the first model is shown instead."),
    ("checkpoint", "edits", "text", *TEXT_FIELDS): N_("{wrong}; the first example is shown instead."),
}


def unreadable_fields(query: Mapping[str, str]) -> list[str]:
    """Return the names of a query's fields whose values have the wrong type or are out of range."""
    settings, names = GenerationSettings.parse(query).as_dict(), []
    choices, defaults = field_choices(), Selection().as_dict()
    indices = {name for name, default in defaults.items() if isinstance(default, int)} | {"dropped", "began"}
    for name, text in query.items():
        if not text:
            continue
        if name in RANGES:
            try:
                is_read = float(text) == settings[name]
            except ValueError:
                is_read = False
        else:
            is_read = text in map(str, choices.get(name, (text,))) and (
                name not in indices or parse_index(text) is not None
            )
        names += [] if is_read else [name]
    return names


class RunHandlers:
    """Handlers of the page's events: a new run changes the state, for which the browser then requests the figures.

    Args:
        layout: the widgets that are updated.
        run_factory: creates runs and their first selection.
        checkpoint: name of the model that a new user sees.
        lessons: handlers of lesson steps; None for none.
        prompts: limits the prompts of each user.
    """

    def __init__(
        self,
        layout: PageLayout,
        run_factory: RunFactory,
        checkpoint: str,
        lessons: LessonHandlers | None = None,
        prompts: PromptRateLimiter | None = None,
    ):
        self.layout, self.run_factory, self.checkpoint, self.lessons = layout, run_factory, checkpoint, lessons
        self.prompts = prompts or PromptRateLimiter()

    @property
    def first_prompt(self) -> str:
        """The first example, or the tokenizer's own if a custom vocabulary cannot encode it."""
        _lm, tokenizer = self.run_factory.runs.model(self.checkpoint)
        try:
            tokenizer.encode(FIRST_PROMPT)
        except UserError:
            return tokenizer.example
        return FIRST_PROMPT

    @with_error_toasts
    def on_load(self, state: State, request: gr.Request) -> dict:
        """Open the URL's state, or else the first example in the tab that the state names."""
        view_field = {"view": view} if isinstance(view := state.get("view"), str) else {}
        query = dict(request.query_params)
        if query.get("view") in GRADIO_PANELS:
            del query["view"]
        if self.lessons and query.get("lesson"):
            query = self.lessons.complete_query(query, self.checkpoint)
        query = view_field | query
        page_state, settings = self.parse_query(query), GenerationSettings.parse(query)
        change = StateUpdate.pack(page_state, page_state.selection.as_dict() | settings.as_dict())
        return {self.layout.update: change} | self.widgets(page_state, settings)

    def parse_query(self, query: dict[str, str]) -> PageState:
        """Parse a URL's query; warn of its invalid fields and leave them out.

        Raises:
            UserError, ModelError: no run can be shown even without them.
        """
        first = {"checkpoint": self.checkpoint, "text": self.first_prompt}
        unreadable_names = ", ".join(unreadable_fields(query))
        nearest = _(
            "Invalid values in this link: {names}. The default or the nearest valid value is shown.",
            names=unreadable_names,
        )
        if wrong_values := " ".join(
            filter(None, (unknown_view_message(query.get("view")), nearest if unreadable_names else ""))
        ):
            warn(UserError(wrong_values))
        if unknown := ", ".join(
            sorted(name for name in query if name.startswith(OTHER_PREFIX) and name not in SECOND_RUN_FIELDS)
        ):
            message = _(
                "A link can set {known} of run B; {unknown} was ignored.",
                known=", ".join(SECOND_RUN_FIELDS),
                unknown=unknown,
            )
            warn(UserError(message))
        first_error = None
        for left_out, template in FALLBACKS.items():
            remaining = {
                name: value
                for name, value in query.items()
                if name not in (*left_out, *SECOND_RUN_FIELDS * bool(left_out))
            }
            try:
                page_state = self.run_factory.state_from_query(first | remaining | {"turn": 0})
            except USER_ERRORS as error:
                first_error = first_error or error
                continue
            if first_error:
                warn(UserError(translate(template, wrong=user_message(first_error))))
            return page_state
        raise first_error

    def widgets(self, page_state: PageState, settings: GenerationSettings) -> dict:
        """Return the values of Gradio's own widgets for a state."""
        return {
            **{widget: getattr(settings, name) for name, widget in self.layout.sampling.settings.items()},
            **self.model_widgets(page_state.run.checkpoint, settings.top_k),
            self.layout.prompt: self.run_factory.runs.text(page_state.run)[0],
            self.layout.tab_bar(page_state.selection.view): gr.Tabs(selected=page_state.selection.view),
        }

    @with_error_toasts
    def on_follow(self, state: State) -> dict:
        """Update all widgets but the tabs, which have an event of their own, after the browser went back to a state."""
        widgets = self.widgets(
            self.run_factory.clamp_selection(PageState.parse(state)), GenerationSettings.parse(state)
        )
        return {widget: value for widget, value in widgets.items() if not isinstance(widget, gr.Tabs)}

    @with_error_toasts
    def on_prompt(self, prompt: str, checkpoint: str, state: State) -> dict:
        """Run a new prompt and select its last token."""
        return self.run_prompt(prompt, checkpoint, state, self.run_factory.select_last_token)

    @with_error_toasts
    def on_example(self, prompt: str, checkpoint: str, state: State) -> dict:
        """Run an example and select the head with the largest direct effect."""
        return self.run_prompt(prompt, checkpoint, state, self.run_factory.select_top_head)

    def run_prompt(self, prompt: str, checkpoint: str, state: State, select: Callable[[PageState], PageState]) -> dict:
        """Run a new prompt.

        Args:
            select: changes the selection of the new state.
        """
        try:
            self.prompts.acquire_for_current_event()
            run = self.run_factory.create_run(checkpoint, prompt, self.has_bos(state))
            state = self.drop_cross_model_patches(state, run)
            run = self.reapply_interventions(run, state)
            page_state = PageState(run, Selection.parse(state), turn=parse_revision(state) + 1)
            page_state = select(self.keep_second_run(page_state, state))
        except USER_ERRORS as error:
            warn(error)
            return {self.layout.picker: state.get("checkpoint", self.checkpoint)}
        return self.new_run_update(page_state, state)

    def has_bos(self, state: State) -> bool:
        """Return whether the state's prompt begins with BOS, or is truncated; True if the state is invalid."""
        try:
            run = PageState.parse(state).run
            _lm, tokenizer = self.run_factory.runs.model(run.checkpoint)
        except USER_ERRORS:
            return True
        return bool(run.dropped) or has_bos(run.prompt, tokenizer)

    @with_error_toasts
    def on_model(self, prompt: str, checkpoint: str, state: State) -> dict:
        """Run the same text with another model, keeping the continuation, and the selection if the tokens are the same.

        Args:
            state: the page's, which has as `own` that model's continuations when it was last open.
        """
        try:
            before = PageState.parse(state)
            self.run_factory.runs.trace(before.run)
            is_same_text = self.run_factory.runs.text(before.run)[0] == prompt
            is_same_text = (
                is_same_text or self.run_factory.create_run(before.run.checkpoint, prompt).prompt == before.run.prompt
            )
        except USER_ERRORS:  # nothing can be kept of it
            is_same_text = False
        if not is_same_text:
            return self.run_prompt(prompt, checkpoint, state, self.run_factory.select_last_token)
        try:
            self.prompts.acquire_for_current_event()
            page_state = rerun_with_model(
                self.run_factory, checkpoint, prompt, before, saved_continuations(checkpoint, state.get("own"))
            )
            state = self.drop_cross_model_patches(state, page_state.run)
            run = self.reapply_interventions(replace(page_state.run, edits=()), state)
            page_state = replace(page_state, run=run, other=PageState.parse(state).other, turn=before.turn + 1)
            select = (
                self.run_factory.clamp_selection
                if run.token_ids == before.run.token_ids
                else self.run_factory.select_last_token
            )
            page_state = select(page_state)
        except USER_ERRORS as error:
            warn(error)
            return {self.layout.picker: state.get("checkpoint", self.checkpoint)}
        return self.new_run_update(page_state, state)

    def new_run_update(self, page_state: PageState, state: State) -> dict:
        """Return the update from the state's run to a new one."""
        run = page_state.run
        if run.dropped:
            num_used, (lm, _tokenizer) = len(run.prompt), self.run_factory.runs.model(run.checkpoint)
            cut = _(
                "The prompt has {tokens:,} tokens; the model sees {context:,} at once: the last {seen:,} are used.",
                tokens=run.dropped + num_used,
                context=lm.config.context_length,
                seen=num_used,
            )
            warn(UserError(cut))
        selection_changes = dict(
            page_state.selection.as_dict().items() - Selection.parse(state).as_dict().items()
        )  # what it lacks
        top_k = GenerationSettings.parse(state).top_k
        return {
            self.layout.update: StateUpdate.pack(page_state, selection_changes),
            **self.model_widgets(run.checkpoint, top_k),
        }

    def drop_cross_model_patches(self, state: State, run: Run) -> dict:
        """Return the state without patches that would copy values between different models (see the function)."""
        page_state = PageState.parse(state | {"checkpoint": run.checkpoint})
        cleaned = drop_cross_model_patches(page_state).as_dict()
        return state | {name: cleaned[name] for name in ("edits", "b.edits") if state.get(name)}

    def reapply_interventions(self, run: Run, state: State) -> Run:
        """Return the run with the state's interventions, or without them if the model cannot apply them."""
        run_with_edits = replace(run, edits=PageState.parse(state).run.edits if state.get("edits") else ())
        try:
            self.run_factory.runs.trace(run_with_edits)
        except USER_ERRORS as error:
            warn(UserError(_("{wrong}: the interventions were removed.", wrong=user_message(error))))
            return run
        return run_with_edits

    def keep_second_run(self, page_state: PageState, state: State) -> PageState:
        """Return the state with the raw state's second run, or without it if the two cannot be compared."""
        with_other = replace(page_state, other=PageState.parse(state).other if state.get("b.checkpoint") else None)
        try:
            self.run_factory.runs.comparison(with_other)
        except USER_ERRORS as error:
            warn(UserError(_("{wrong}: the second run is closed.", wrong=user_message(error))))
            return page_state.without_patches()
        return with_other

    def model_widgets(self, checkpoint: str, top_k: int) -> dict:
        lm, _tokenizer = self.run_factory.runs.model(checkpoint)
        vocab_size, catalog = lm.config.vocab_size, self.run_factory.runs.library.catalog
        note = catalog.own_vocabulary if checkpoint == catalog.own_module else None
        return {
            self.layout.facts: model_summary(lm),
            self.layout.vocabulary: translate(note.template, **note.values) + "." if note else "",
            self.layout.picker: checkpoint,
            self.layout.sampling.top_k: gr.Slider(value=min(top_k, vocab_size), maximum=vocab_size),
        }
