"""Actions on the page's state: open a link or a lesson, run a prompt, change the model, move among continuations."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from explorer.errors import UserError
from explorer.lessons.example_prompts import EXAMPLES
from explorer.state.generation_settings import RANGES, GenerationSettings
from explorer.state.page_state import (
    MAX_CHAT_CHARACTERS,
    OTHER_PREFIX,
    PageState,
    RunRequest,
    apply_command,
    chat_messages,
    format_chat,
    parse_chat,
    parse_revision,
)
from explorer.state.selection import Selection, field_choices, parse_index
from explorer.tracing.token_ids import has_bos
from explorer.translations import N_, _, translate
from explorer.views import STORY_STEPS, VIEW_BY_NAME, unknown_view_message
from explorer.web.actions.generation_actions import GenerationActions
from explorer.web.actions.page_state_builder import (
    PageStateBuilder,
    SecondRunCommands,
    drop_cross_model_patches,
    parse_saved_continuations,
    state_with_other_model,
)
from explorer.web.browser_api.lesson_endpoints import LessonContents
from explorer.web.rate_limits import PromptRateLimiter
from explorer.web.shared_constants import run_state_change
from explorer.web.user_messages import USER_ERRORS, user_message, warn
from model.pretrained.chat_template import has_chat_template


def restore_saved_state(
    state_builder: PageStateBuilder, state: Mapping[str, Any], command: Mapping[str, Any]
) -> tuple[PageState, GenerationSettings]:
    """Return the state and settings of a slide, outside of any lesson.

    Args:
        state: the page's.
        command: "words", name -> value as in a URL.

    Raises:
        UserError, CheckpointError: what it names is not available.
    """
    fields = command.get("words", {})
    page_state = state_builder.state_from_query(
        {"checkpoint": "", "view": Selection.view} | fields | {"turn": state.get("turn")}
    )
    return replace(
        page_state, selection=replace(page_state.selection, lesson="", step=0, reply="")
    ), GenerationSettings.parse(fields)


RUN_TEXT_FIELDS = ("prompt", "text")  # a query with one of these fields has a run of its own


class LessonStepStates:
    """A lesson's steps as states of the page.

    Args:
        lesson_contents: access to the lessons and their models.
    """

    def __init__(self, lesson_contents: LessonContents):
        self.lesson_contents = lesson_contents

    def complete_query(self, query: Mapping[str, str], checkpoint: str) -> dict[str, str]:
        """Return a URL's query with the fields of its lesson step as defaults.

        Args:
            checkpoint: the page's, if the query names none.
        """
        selection = Selection.parse(query)
        lesson = self.lesson_contents.lesson_library.lessons.get(selection.lesson)
        if lesson is None or any(name in query for name in RUN_TEXT_FIELDS):
            return dict(query)
        step_number = max(1, min(selection.step, len(lesson.steps)))
        model = self.lesson_contents.lesson_model(lesson, query.get("checkpoint", checkpoint))
        state = lesson.state(step_number, model) if model else {}
        step_fields = {"lesson": lesson.name, "step": str(step_number)}
        return {name: str(value) for name, value in state.items()} | dict(query) | step_fields

    def go_to_step(self, state: Mapping[str, Any], command: Mapping[str, Any]) -> tuple[PageState, GenerationSettings]:
        """Return the state and settings of a lesson step, with an earlier reply to it.

        Args:
            state: the page's.
            command: "lesson" and "step"; optionally "reply", and a "checkpoint" in place of the lesson's.

        Raises:
            UserError: there is no such lesson.
        """
        name = command.get("lesson")
        lesson = self.lesson_contents.lesson_library.lessons.get(name) if isinstance(name, str) else None
        if lesson is None:
            raise UserError(_("There is no lesson {name}.", name=f"{name!r:.60}"))
        step_number = max(1, min(parse_index(command.get("step")) or 1, len(lesson.steps)))
        page_state, settings = PageState.parse(state), GenerationSettings.parse(state)
        checkpoint = command.get("checkpoint") or page_state.run.checkpoint
        model = self.lesson_contents.lesson_model(lesson, checkpoint)
        if model:
            step_state = lesson.state(step_number, model)
            page_state, settings = self.lesson_contents.open_state(step_state), GenerationSettings.parse(step_state)
        reply = command.get("reply")
        reply = reply if isinstance(reply, str) and reply.startswith(f"{step_number}:") else ""
        selection = replace(page_state.selection, lesson=lesson.name, step=step_number, reply=reply)
        return replace(page_state, selection=selection), settings


TWO_RUN_FIELDS = ("shown", "clean_run", "answer", "wrong")  # fields of the selection that commands for run B change
PLACE_FIELDS = ("prompt", "generated", "query", "lesson")  # where a guess was made, which holds nowhere else
FIRST_PROMPT = next(iter(EXAMPLES.values()))
GRADIO_PANELS = ("api", "api-recorder", "settings")  # panels that Gradio opens if the URL has them as its view
# What of a URL is left out, if all of it makes no sense -> template of what the visitor is told. Ids say nothing to
# another model, so that of what they are left out with a `text` remains.
TEXT_FIELDS = ("prompt", "generated", "branches", "began", "dropped", "chat")
SECOND_RUN_FIELDS = ("b.checkpoint", "b.prompt", "b.generated", "b.dropped", "b.edits", "b.pins", "b.text")
FALLBACKS = {
    (): "",
    SECOND_RUN_FIELDS: N_("{wrong}; the second run is left out."),
    ("branches",): N_("{wrong}; the tree of continuations is left out."),
    ("edits",): N_("{wrong}; the changes were ignored."),
    TEXT_FIELDS: N_("{wrong}; the token ids and the continuation were ignored."),
    (*TEXT_FIELDS, "edits"): N_("{wrong}; the token ids, the continuation and the changes were ignored."),
    ("checkpoint", "edits", *TEXT_FIELDS): N_("{wrong}; the first model is shown instead."),
    ("checkpoint", "edits", "text", *TEXT_FIELDS): N_("{wrong}; the first example is shown instead."),
}


def fields_of_place(state: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, str]:
    """Return the change of what holds only at the place that a change leaves, as `withFieldsOfPlace` in the browser."""

    def moves(*names: str) -> bool:
        return any(change.get(name, state.get(name)) != state.get(name) for name in names)

    fields = {"guess": ""} if state.get("guess") and moves(*PLACE_FIELDS) else {}
    if state.get("open") and moves("prompt"):
        return fields | {"open": ""}
    return fields | ({"open": "head"} if state.get("open") == "cell" and moves("query") else {})


def invalid_query_fields(query: Mapping[str, str]) -> list[str]:
    """Return the names of a query's fields whose values have the wrong type or are out of range."""
    settings, names = GenerationSettings.parse(query).as_dict(), []
    choices, defaults = field_choices(), Selection().as_dict()
    indices = {name for name, default in defaults.items() if isinstance(default, int)} | {"dropped", "began"}
    for name, text in query.items():
        if not text or (name == "depth" and parse_index(text) is not None):  # a name of `residual_depth` in older URLs
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


@dataclass(frozen=True)
class PageUpdate:
    """Changes that an action makes to the page.

    Attributes:
        change: fields of the page's state.
        prompt: text for the box of the prompt; None to leave it.
        is_done: whether the action was done, not refused.
    """

    change: Mapping[str, Any] = field(default_factory=dict)
    prompt: str | None = None
    is_done: bool = True

    def as_dict(self) -> dict[str, Any]:
        return {"change": dict(self.change), "prompt": self.prompt, "done": self.is_done}


class PageActions:
    """Actions of the page, which lead from its state to another one.

    Args:
        state_builder: creates runs and their first selection.
        generation: writes tokens.
        checkpoint: name of the model that a new user sees.
        lessons: steps of lessons; None for none.
        prompts: limits the prompts of each user.
    """

    def __init__(
        self,
        state_builder: PageStateBuilder,
        generation: GenerationActions,
        checkpoint: str,
        lessons: LessonStepStates | None = None,
        prompts: PromptRateLimiter | None = None,
    ):
        self.state_builder, self.generation = state_builder, generation
        self.checkpoint, self.lessons = checkpoint, lessons
        self.prompts, self.second_run = prompts or PromptRateLimiter(), SecondRunCommands(state_builder)
        self._actions: dict[str, Callable[[Mapping[str, Any], dict[str, Any]], PageUpdate]] = {
            "load": self.load,
            "follow": self.follow,
            "prompt": self.run_prompt,
            "example": self.run_example,
            "chat": self.run_chat,
            "model": self.change_model,
            "step": self.take_step,
            "place": self.go_to_place,
            "lesson": self.go_to_lesson_step,
            "beginning": self.toggle_bos,
            "example_pair": self.show_example_pair,
            **dict.fromkeys(self.second_run.commands, self.change_second_run),
            **dict.fromkeys(("undo", "take", "go", "prune"), self.move),
        }

    def apply(self, action: Mapping[str, Any], state: dict[str, Any]) -> PageUpdate:
        """Return what an action changes; if it is refused, nothing, and a notice says why.

        Args:
            action: its `kind` and what that needs; values have the right types.
            state: the page's.

        Raises:
            UserError, ModelError: a link's run cannot be shown, and nothing in its place.
        """
        kind = action.get("kind")
        if kind not in self._actions:
            warn(UserError(_("there is no action {kind!r:.40}", kind=kind)))
            return PageUpdate(is_done=False)
        if kind == "load":
            return self.load(action, state)
        try:
            update = self._actions[kind](action, state)
        except USER_ERRORS as error:
            warn(error)
            return PageUpdate(is_done=False)
        return replace(update, change=fields_of_place(state, update.change) | dict(update.change))

    @property
    def first_prompt(self) -> str:
        """The first example, or the tokenizer's own if a custom vocabulary cannot encode it."""
        _lm, tokenizer = self.state_builder.runs.model(self.checkpoint)
        try:
            tokenizer.encode(FIRST_PROMPT)
        except UserError:
            return tokenizer.example
        return FIRST_PROMPT

    def load(self, action: Mapping[str, Any], state: dict[str, Any]) -> PageUpdate:
        """Open a link, or else the first example in the tab that the state names."""
        view_field = {"view": view} if isinstance(view := state.get("view"), str) else {}
        query = dict(action.get("query", {}))
        if query.get("view") in GRADIO_PANELS:
            del query["view"]
        if self.lessons and query.get("lesson"):
            query = self.lessons.complete_query(query, self.checkpoint)
        query = view_field | query
        page_state, settings = self.parse_query(query), GenerationSettings.parse(query)
        if page_state.selection.depth == "story" and VIEW_BY_NAME[page_state.selection.view] not in STORY_STEPS:
            page_state = replace(page_state, selection=replace(page_state.selection, depth=Selection.depth))
        page_state = self.with_example_pair(page_state)
        change = run_state_change(page_state) | page_state.selection.as_dict() | settings.as_dict()
        return PageUpdate(change, self.prompt_text(page_state))

    def parse_query(self, query: dict[str, str]) -> PageState:
        """Parse a URL's query; warn of its invalid fields and leave them out.

        Raises:
            UserError, ModelError: no run can be shown even without them.
        """
        first = {"checkpoint": self.checkpoint, "text": self.first_prompt}
        base = self.state_builder.runs.library.catalog.base_models.get(self.checkpoint)
        if base and query.keys().isdisjoint(("checkpoint", *SECOND_RUN_FIELDS)):
            query = query | {"b.checkpoint": base}  # with an adapter and without it
        unreadable_names = ", ".join(invalid_query_fields(query))
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
                page_state = self.state_builder.state_from_query(first | remaining | {"turn": 0})
            except USER_ERRORS as error:
                first_error = first_error or error
                continue
            if first_error:
                warn(UserError(translate(template, wrong=user_message(first_error))))
            return page_state
        raise first_error

    def follow(self, action: Mapping[str, Any], state: dict[str, Any]) -> PageUpdate:
        """Set the prompt box to the state's prompt, after the browser went back to an earlier state."""
        return PageUpdate(prompt=self.prompt_text(self.state_builder.clamp_selection(PageState.parse(state))))

    def run_prompt(self, action: Mapping[str, Any], state: dict[str, Any]) -> PageUpdate:
        """Run a new prompt and select its last token."""
        return self._run_text(action, state, partial(self.state_builder.select_top_key, before=state))

    def run_example(self, action: Mapping[str, Any], state: dict[str, Any]) -> PageUpdate:
        """Run an example and select the head with the largest direct effect."""
        return self._run_text(action, state, self.state_builder.select_top_head)

    def run_chat(self, action: Mapping[str, Any], state: dict[str, Any]) -> PageUpdate:
        """Run a conversation as the model's chat template writes it, and select its last token."""
        self.prompts.acquire()
        messages = action.get("messages", [])
        run = self.state_builder.create_chat_run(state.get("checkpoint", self.checkpoint), messages)
        if not (chat := parse_chat(format_chat(messages))):
            raise UserError(
                _("A conversation has at most {most:,} characters: leave out turns.", most=MAX_CHAT_CHARACTERS)
            )
        return self._run(run, state, self.state_builder.select_last_token, chat)

    def _run_text(
        self, action: Mapping[str, Any], state: dict[str, Any], select: Callable[[PageState], PageState]
    ) -> PageUpdate:
        """Run the action's text by its model, or else the state's.

        Args:
            select: changes the selection of the new state.
        """
        self.prompts.acquire()
        checkpoint = action.get("checkpoint", state.get("checkpoint", self.checkpoint))
        run = self.state_builder.create_run(checkpoint, action.get("text", ""), self.has_bos(state))
        return self._run(run, state, select)

    def _run(
        self, run: RunRequest, state: dict[str, Any], select: Callable[[PageState], PageState], chat: str = ""
    ) -> PageUpdate:
        """Return the update to a run with the state's interventions and second run.

        Args:
            chat: see `PageState`.
        """
        state = self.drop_cross_model_patches(state, run)
        run = self.reapply_interventions(run, state)
        page_state = PageState(run, Selection.parse(state), turn=parse_revision(state) + 1, chat=chat)
        return self._update(select(self.keep_second_run(page_state, state)), state)

    def has_bos(self, state: dict[str, Any]) -> bool:
        """Return whether the state's prompt begins with BOS, or need not; True if the state is invalid.

        A truncated prompt need not, nor a conversation.
        """
        try:
            page_state = PageState.parse(state)
            run = page_state.run
            _lm, tokenizer = self.state_builder.runs.model(run.checkpoint)
        except USER_ERRORS:
            return True
        return bool(run.dropped or page_state.chat) or has_bos(run.prompt, tokenizer)

    def change_model(self, action: Mapping[str, Any], state: dict[str, Any]) -> PageUpdate:
        """Run the same text with another model, keeping the continuation, and the selection if the tokens are the same.

        Args:
            action: has as `own` that model's continuations when it was last open.
        """
        text, checkpoint = action.get("text", ""), action.get("checkpoint", self.checkpoint)
        try:
            before = PageState.parse(state)
            self.state_builder.runs.trace(before.run)
            is_same_text = self.prompt_text(before) == text
            is_same_text = (
                is_same_text or self.state_builder.create_run(before.run.checkpoint, text).prompt == before.run.prompt
            )
        except USER_ERRORS:  # nothing can be kept of it
            is_same_text = False
        if is_same_text and before.chat:
            _lm, tokenizer = self.state_builder.runs.model(self.state_builder.runs.library.catalog.resolve(checkpoint))
            is_same_text = has_chat_template(tokenizer)
        if not is_same_text:
            return self.run_prompt(action, state)
        self.prompts.acquire()
        saved = parse_saved_continuations(checkpoint, action.get("own"))
        page_state = state_with_other_model(self.state_builder, checkpoint, text, before, saved)
        state = self.drop_cross_model_patches(state, page_state.run)
        run = self.reapply_interventions(replace(page_state.run, edits=()), state)
        page_state = replace(page_state, run=run, other=PageState.parse(state).other, turn=before.turn + 1)
        is_same_run = run.token_ids == before.run.token_ids
        select = self.state_builder.clamp_selection if is_same_run else self.state_builder.select_last_token
        return self._update(select(page_state), state)

    def _update(self, page_state: PageState, state: dict[str, Any]) -> PageUpdate:
        """Return the update from a state to one with another run."""
        run = page_state.run
        if run.dropped:
            num_used, (lm, _tokenizer) = len(run.prompt), self.state_builder.runs.model(run.checkpoint)
            cut = _(
                "The prompt has {tokens:,} tokens; the model sees {context:,} at once: the last {seen:,} are used.",
                tokens=run.dropped + num_used,
                context=lm.config.context_length,
                seen=num_used,
            )
            warn(UserError(cut))
        before = Selection.parse(state).as_dict()
        return PageUpdate(run_state_change(page_state) | dict(page_state.selection.as_dict().items() - before.items()))

    def drop_cross_model_patches(self, state: dict[str, Any], run: RunRequest) -> dict:
        """Return the state without patches that would copy values between different models (see the function)."""
        page_state = PageState.parse(state | {"checkpoint": run.checkpoint})
        cleaned = drop_cross_model_patches(page_state).as_dict()
        return state | {name: cleaned[name] for name in ("edits", "b.edits") if state.get(name)}

    def reapply_interventions(self, run: RunRequest, state: dict[str, Any]) -> RunRequest:
        """Return the run with the state's interventions, or without them if the model cannot apply them."""
        run_with_edits = replace(run, edits=PageState.parse(state).run.edits if state.get("edits") else ())
        try:
            self.state_builder.runs.trace(run_with_edits)
        except USER_ERRORS as error:
            warn(UserError(_("{wrong}: the interventions were removed.", wrong=user_message(error))))
            return run
        return run_with_edits

    def keep_second_run(self, page_state: PageState, state: dict[str, Any]) -> PageState:
        """Return the state with the raw state's second run, or without it if the two cannot be compared.

        B follows the prompt if it is the one that was proposed for the prompt before.
        """
        other = None
        if state.get("b.checkpoint"):
            other = self.second_run.follow_prompt(PageState.parse(state), page_state.run)
        with_other = replace(page_state, other=other)
        try:
            self.state_builder.runs.comparison(with_other)
        except USER_ERRORS as error:
            warn(UserError(_("{wrong}: the second run is closed.", wrong=user_message(error))))
            return page_state.without_patches()
        return with_other

    def move(self, action: Mapping[str, Any], state: dict[str, Any]) -> PageUpdate:
        """Go to a branch, take a token, or undo the last generated tokens."""
        before = self.state_builder.clamp_selection(self.state_builder.next_revision(state))
        index = len(before.run.token_ids) - len(self.state_builder.runs.trace(before.run)) + before.selection.query
        return self._moved(before, apply_command(before, index, action))

    def take_step(self, action: Mapping[str, Any], state: dict[str, Any]) -> PageUpdate:
        """Write one more token."""
        change = self.generation.next_token(state)
        return PageUpdate(change) if change else PageUpdate(is_done=False)

    def toggle_bos(self, action: Mapping[str, Any], state: dict[str, Any]) -> PageUpdate:
        """Remove the model's BOS tokens from the prompt, or prepend them if they are missing."""
        before = self.state_builder.next_revision(state)
        return self._moved(before, self.state_builder.toggle_bos(before))

    def _moved(self, before: PageState, after: PageState) -> PageUpdate:
        """Return the update to another run with its last token selected."""
        after = self.state_builder.select_last_token(after)
        return PageUpdate(run_state_change(after), self._prompt_if_changed(before, after))

    def show_example_pair(self, action: Mapping[str, Any], state: dict[str, Any]) -> PageUpdate:
        """Show a second run in a view that compares two, if only the first one is open yet."""
        before = self.state_builder.next_revision(state)
        after = self.with_example_pair(before)
        if after is before:
            return PageUpdate()
        if after.run == before.run:
            return PageUpdate(run_state_change(after) | {"shown": after.selection.shown})
        warn(UserError(_("This view compares two prompts, so an example pair is open. Undo brings your prompt back.")))
        return self._moved(before, after)

    def with_example_pair(self, page_state: PageState) -> PageState:
        """Return the state with two runs where its view compares them and has one alone.

        They are the first pair of prompts while nothing was written yet. Later the run stays, and B reads a similar
        prompt; changes to the model are compared with the unchanged run as it is.
        """
        run, view = page_state.run, VIEW_BY_NAME[page_state.selection.view]
        if not view.is_comparison or page_state.other or (run.edits and not view.needs_two_prompts):
            return page_state
        is_first = not (run.edits or run.generated) and self.prompt_text(page_state) == self.first_prompt
        for command in ({"kind": "pair", "pair": 0}, {"kind": "compare", "with": "similar"})[not is_first :]:
            with suppress(*USER_ERRORS):  # a vocabulary of its own
                after = self.second_run.apply_command(page_state, command)
                return replace(after, selection=after.selection.replace(shown="a"))
        return page_state

    def change_second_run(self, action: Mapping[str, Any], state: dict[str, Any]) -> PageUpdate:
        """Apply a command on the second run."""
        before = self.state_builder.next_revision(state)
        after = self.second_run.apply_command(before, action)
        if after.run.prompt != before.run.prompt:
            after = replace(after, chat="")
        selection = {name: after.selection.as_dict()[name] for name in TWO_RUN_FIELDS}
        return PageUpdate(run_state_change(after) | selection, self._prompt_if_changed(before, after))

    def go_to_place(self, action: Mapping[str, Any], state: dict[str, Any]) -> PageUpdate:
        """Open a slide."""
        return self._replace_state(state, partial(restore_saved_state, self.state_builder, state, action))

    def go_to_lesson_step(self, action: Mapping[str, Any], state: dict[str, Any]) -> PageUpdate:
        """Go to a step of a lesson; UserError if there is none."""
        if not self.lessons:
            raise UserError(_("There is no lesson {name}.", name=f"{action.get('lesson')!r:.60}"))
        return self._replace_state(state, partial(self.lessons.go_to_step, state, action))

    def _replace_state(
        self, state: dict[str, Any], open_state: Callable[[], tuple[PageState, GenerationSettings]]
    ) -> PageUpdate:
        page_state, settings = open_state()
        page_state = replace(page_state, turn=self.state_builder.next_revision(state).turn)
        change = run_state_change(page_state) | page_state.selection.as_dict() | settings.as_dict()
        return PageUpdate(change, self.prompt_text(page_state))

    def prompt_text(self, page_state: PageState) -> str:
        """Return the text of a run's prompt; of a conversation the last of the user's messages."""
        if page_state.chat:
            contents = [message["content"] for message in chat_messages(page_state.chat) if message["role"] == "user"]
            return contents[-1] if contents else ""
        return self.state_builder.runs.text(page_state.run)[0]

    def _prompt_if_changed(self, before: PageState, after: PageState) -> str | None:
        return None if before.run.prompt == after.run.prompt else self.prompt_text(after)
