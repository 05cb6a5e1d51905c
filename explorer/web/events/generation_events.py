"""Handlers of the buttons that generate tokens, and of navigation among continuations."""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial, wraps

import gradio as gr

from explorer.state.branch_commands import apply_command, replace_continuation
from explorer.state.branches import add_branch
from explorer.state.errors import UserError
from explorer.state.generation_settings import RANGES, GenerationSettings
from explorer.state.limits import UserLimits
from explorer.state.page_state import PageState
from explorer.state.run import MAX_TOKENS
from explorer.tracing.intervene import apply_interventions, generate_with_interventions
from explorer.translations import _
from explorer.web.events.lesson_events import LessonHandlers
from explorer.web.events.place_events import go_to_saved_state
from explorer.web.events.run_factory import RunFactory
from explorer.web.events.second_run import SecondRunCommands
from explorer.web.events.toasts import warn, with_error_toasts
from explorer.web.http.request_types import State
from explorer.web.widgets.state_update import StateUpdate
from model.generation.autoregressive import generate
from model.generation.beam import beam_search

MIN_ANSWER_INTERVAL_S = 1 / 15  # minimum; faster tokens are sent several at a time
COMPARED_TOKENS = 30
NUM_BEAMS = 4
TWO_RUN_FIELDS = ("shown", "clean_run", "answer", "wrong")  # fields of the selection that second-run commands change


def throttle(answers: Callable[..., Iterator[dict]]) -> Callable[..., Iterator[dict]]:
    """Drop updates that follow one another faster than browsers draw; each update includes the earlier ones.

    The last update is always sent, also if an error ends the generator.
    """

    @wraps(answers)
    def latest(*args, **kwargs):
        last_sent, pending = 0.0, None
        try:
            for pending in answers(*args, **kwargs):
                if time.monotonic() >= last_sent + MIN_ANSWER_INTERVAL_S:
                    yield pending
                    last_sent, pending = time.monotonic(), None
        except Exception:
            if pending:
                yield pending
            raise
        if pending:
            yield pending

    return latest


class GenerationHandlers:
    """Handlers that take the page's state and return its changes.

    Args:
        update: widget that changes the state, once per event.
        generation_update: another one for texts during generation: of values in quick succession Gradio shows only
            the last, and the last tokens of a cancelled text must not hide what cancelled it.
        prompt: textbox of the prompt, which a command may shorten.
        seed: number box of the seed, which Regenerate increments.
        run_factory: creates runs and their first selection.
        limits: of one generation.
        lessons: handlers of lesson steps; None for none.
    """

    def __init__(
        self,
        update: StateUpdate,
        generation_update: StateUpdate,
        prompt: gr.Textbox,
        seed: gr.Number,
        run_factory: RunFactory,
        limits: UserLimits,
        lessons: LessonHandlers | None = None,
    ):
        self.update, self.generation_update = update, generation_update
        self.prompt, self.seed, self.run_factory, self.limits = prompt, seed, run_factory, limits
        self.second_run, self.lessons = SecondRunCommands(run_factory), lessons

    @with_error_toasts
    def on_step(self, state: State) -> Iterator[dict]:
        settings = replace(GenerationSettings.parse(state), max_new_tokens=1)
        for change in self.generation_steps(self.next_revision(state), settings):
            yield {self.update: change}

    @with_error_toasts
    def on_generate(self, state: State) -> Iterator[dict]:
        for change in self.generation_steps(
            mark_generation_start(self.next_revision(state)), GenerationSettings.parse(state)
        ):
            yield {self.generation_update: change}

    @with_error_toasts
    def on_regenerate(self, state: State) -> Iterator[dict]:
        """Generate the last continuation again with the next seed, as another branch."""
        page_state, settings = self.next_revision(state), GenerationSettings.parse(state)
        if len(page_state.run.generated) == page_state.began:
            raise UserError(_("There is nothing to write anew here: press Generate first."))
        if settings.temperature == 0:
            raise UserError(_("At temperature 0 the likeliest token is always taken: no seed writes another text."))
        settings = replace(settings, seed=(settings.seed + 1) % (RANGES["seed"][1] + 1))
        page_state = replace_continuation(page_state, page_state.run.generated[: page_state.began], page_state.began)
        for change in self.generation_steps(page_state, settings, seed=settings.seed):
            yield {self.generation_update: change, self.seed: settings.seed}

    @with_error_toasts
    def on_move(self, state: State) -> dict:
        """Apply a command: go to a branch, take a token, toggle BOS, change run B, open a step or a saved view."""
        kind = move.get("kind") if isinstance(move := state.get("move"), dict) else None
        if kind in self.second_run.commands:
            page_state = self.second_run.apply_command(self.next_revision(state), move)
            prompt_update = (
                {}
                if page_state.run.prompt == PageState.parse(state).run.prompt
                else {self.prompt: self.prompt_text(page_state)}
            )
            return {
                self.update: StateUpdate.pack(
                    page_state, {name: page_state.selection.as_dict()[name] for name in TWO_RUN_FIELDS}
                )
            } | prompt_update

        if kind == "place" or (kind == "lesson" and self.lessons):
            handler = self.lessons.go_to_step if kind == "lesson" else partial(go_to_saved_state, self.run_factory)
            page_state, settings = handler(state, move)
            page_state = replace(page_state, turn=self.next_revision(state).turn)
            change = StateUpdate.pack(page_state, page_state.selection.as_dict() | settings.as_dict())
            return {self.update: change, self.prompt: self.prompt_text(page_state)}

        if kind == "beginning":
            return self.command_update(state, self.run_factory.toggle_bos)

        def move(page_state: PageState) -> PageState:
            index = (
                len(page_state.run.token_ids)
                - len(self.run_factory.runs.trace(page_state.run))
                + page_state.selection.query
            )
            return apply_command(page_state, index, state.get("move"))

        return self.command_update(state, lambda page_state: move(self.run_factory.clamp_selection(page_state)))

    @with_error_toasts
    def on_compare(self, state: State) -> Iterator[dict]:
        """Add the continuations by greedy search, beam search and sampling as branches."""
        page_state, settings = self.next_revision(state), GenerationSettings.parse(state)
        run, (lm, tokenizer) = page_state.run, self.run_factory.runs.model(page_state.run.checkpoint)
        window, interventions = run.window(lm.config.context_length), self.run_factory.runs.resolve_patches(run)
        max_new_tokens = min(
            lm.config.context_length + 1 - len(window), MAX_TOKENS - len(run.generated)
        )  # the last is not read
        count = min(COMPARED_TOKENS, self.limits.tokens, max_new_tokens)
        eos_ids = tokenizer.eos_ids

        def sample(**options) -> list[int]:
            limits = {"max_new_tokens": count, "stop_tokens": eos_ids, "num_dropped": run.dropped}
            steps = generate(lm, run.token_ids, tokenizer=tokenizer, **limits, **options)
            return [step.token_id for step in generate_with_interventions(lm, interventions, steps)]

        def beam() -> tuple[int, ...]:
            with apply_interventions(lm, interventions):
                beams = beam_search(lm, window, num_beams=NUM_BEAMS, max_new_tokens=count, stop_tokens=eos_ids)
            return beams[0].token_ids

        sampling = settings.as_dict()
        del sampling["max_new_tokens"]
        methods = {"greedy": lambda: sample(temperature=0), "beam": beam, "sampling": lambda: sample(**sampling)}
        for origin, method in methods.items():
            branches = add_branch(page_state.branches, (*run.generated, *method()), origin)
            page_state = replace(page_state, branches=branches)
            yield {self.generation_update: StateUpdate.pack(page_state)}

    @throttle
    def generation_steps(self, page_state: PageState, settings: GenerationSettings, **change) -> Iterator[dict]:
        """Yield the run after each new token.

        `steps` has the position of each new token among the tokens that the model sees: the browser shows them one
        by one (pace.js).

        Args:
            change: further changes of the state.
        """
        num_free = MAX_TOKENS - len(page_state.run.generated)
        if num_free < 1:
            message = _("{most:,} tokens were generated, as many as fit into a link: press Run to begin anew.")
            warn(UserError(message.format(most=MAX_TOKENS)))
            return
        max_tokens = min(settings.max_new_tokens, num_free, self.limits.tokens)
        run = page_state.run
        lm, tokenizer = self.run_factory.runs.model(run.checkpoint)
        options = settings.as_dict() | {
            "max_new_tokens": max_tokens,
            "tokenizer": tokenizer,
            "num_dropped": run.dropped,
        }
        generated = generate(lm, run.token_ids, stop_tokens=tokenizer.eos_ids, **options)
        positions, end = [], time.monotonic() + self.limits.seconds
        for num_done, step in enumerate(
            generate_with_interventions(lm, self.run_factory.runs.resolve_patches(run), generated), start=1
        ):
            run = replace(run, generated=(*run.generated, step.token_id))
            if run.edits and lm.config.position == "learned":
                self.run_factory.runs.trace(run)  # raises if shifted positions exceed the learned ones
            positions.append(len(run.window(lm.config.context_length)) - 1)
            is_complete = num_done == settings.max_new_tokens or step.token_id in tokenizer.eos_ids
            is_complete = is_complete or step.stopped_by is not None
            is_last = is_complete or num_done == max_tokens or time.monotonic() >= end
            if is_last and not is_complete:
                self.warn_limit_reached(num_done)
            new_state, ask = (
                select_position(positions[-1], replace(page_state, run=run)),
                "show" if is_last else "token",
            )
            yield StateUpdate.pack(new_state, change, ask) | {"steps": list(positions)}
            if is_last:
                return

    def warn_limit_reached(self, num_tokens: int):
        """Warn that a limit ended the generation, and say how to continue."""
        if num_tokens == self.limits.tokens:
            message = _("Limit of {most} tokens per generation reached. Press Generate to continue.", most=num_tokens)
            warn(UserError(message))
        elif self.limits.seconds < float("inf"):
            message = _(
                "Limit of {most:g} seconds per generation reached. Press Generate to continue.",
                most=self.limits.seconds,
            )
            warn(UserError(message))

    def command_update(self, state: State, command: Callable[[PageState], PageState]) -> dict:
        """Return the update for a command, with the last token selected."""
        page_state = self.next_revision(state)
        new_state = self.run_factory.select_last_token(command(page_state))
        prompt_update = (
            {} if new_state.run.prompt == page_state.run.prompt else {self.prompt: self.prompt_text(new_state)}
        )
        return {self.update: StateUpdate.pack(new_state)} | prompt_update

    def prompt_text(self, page_state: PageState) -> str:
        return self.run_factory.runs.text(page_state.run)[0]

    def next_revision(self, state: State) -> PageState:
        """Return the parsed state with the next turn number.

        Raises:
            UserError, CheckpointError: the state is invalid, or its run cannot be computed.
        """
        page_state = PageState.parse(state)
        self.run_factory.runs.trace(page_state.run)
        return replace(page_state, turn=page_state.turn + 1)


def select_position(index: int, page_state: PageState) -> PageState:
    """Return the state with this position as the query and the one before as the key."""
    return replace(page_state, selection=replace(page_state.selection, query=index, key=max(0, index - 1)))


def mark_generation_start(page_state: PageState) -> PageState:
    """Return the state with the generation's start at the end of the run."""
    return replace(page_state, began=len(page_state.run.generated))
