"""Generation of text: what the buttons that write tokens do, streamed through Gradio's queue."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import wraps
from threading import Lock
from typing import Any

import gradio as gr

from explorer.errors import UserError
from explorer.state.generation_settings import RANGES, GenerationSettings, UserLimits
from explorer.state.page_state import MAX_TOKENS, PageState, add_or_extend_branch, replace_continuation
from explorer.tracing.forward_hooks import apply_interventions, generate_with_interventions
from explorer.tracing.jobs import unlimited_budget
from explorer.translations import _, use_locale
from explorer.web.actions.page_state_builder import PageStateBuilder
from explorer.web.rate_limits import Client, use_client
from explorer.web.request_validation import State
from explorer.web.shared_constants import run_state_change
from explorer.web.user_messages import collect_notices, locale_from_state, warn
from model.generation.autoregressive import beam_search, generate
from model.pretrained.chat_template import end_of_turn_ids
from model.tokenizer import Tokenizer

MIN_ANSWER_INTERVAL_S = 1 / 15  # minimum; faster tokens are sent several at a time
COMPARED_TOKENS = 30
NUM_BEAMS = 4


def as_gradio_event(handler: Callable[..., Iterator[dict[str, Any]]]) -> Callable[..., Iterator[dict[str, Any]]]:
    """Decorate a generator of updates to run in the state's locale, and to send notices and errors with the updates."""

    def updates(self: "GenerationActions", state: State, request: gr.Request = None) -> Iterator[dict[str, Any]]:
        locale = locale_from_state([state])
        client = Client.from_request(request) if request else None
        with closing(handler(self, state)) as answers, self.count_text():
            update = {}
            while update is not None:
                # Anew each time: Gradio has any thread go on.
                with (
                    use_client(client),
                    use_locale(locale),
                    unlimited_budget().activate(),
                    collect_notices() as notices,
                ):
                    try:
                        update = next(answers, None)
                    except Exception as error:
                        warn(error)
                        update = None
                if update is not None or notices:
                    yield (update or {}) | ({"notices": notices} if notices else {})

    updates.__name__, updates.__doc__ = handler.__name__, handler.__doc__
    return updates


def throttle_updates(answers: Callable[..., Iterator[dict[str, Any]]]) -> Callable[..., Iterator[dict[str, Any]]]:
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


class GenerationActions:
    """Generators of changes of the page's state, for Gradio's events.

    Args:
        state_builder: creates runs.
        limits: of one generation.
    """

    def __init__(self, state_builder: PageStateBuilder, limits: UserLimits):
        self.state_builder, self.limits = state_builder, limits
        self.num_texts, self._lock = 0, Lock()  # that are being written

    @contextmanager
    def count_text(self) -> Iterator[None]:
        """Count a text in `num_texts` while it is being written."""
        with self._lock:
            self.num_texts += 1
        try:
            yield
        finally:
            with self._lock:
                self.num_texts -= 1

    def next_token(self, state: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the change of the state by one more token; None if there is no room for it."""
        settings = replace(GenerationSettings.parse(state), max_new_tokens=1)
        updates = list(self.generation_steps(self.state_builder.next_revision(state), settings))
        return updates[-1]["change"] if updates else None

    @as_gradio_event
    def generate(self, state: State) -> Iterator[dict[str, Any]]:
        """Yield the page's changes while the run is continued with the state's settings."""
        page_state = mark_generation_start(self.state_builder.next_revision(state))
        yield from self.generation_steps(page_state, GenerationSettings.parse(state))

    @as_gradio_event
    def regenerate(self, state: State) -> Iterator[dict[str, Any]]:
        """Generate the last continuation again with the next seed, as another branch.

        At temperature 0 no seed matters, so a notice tells if the text is the same.
        """
        page_state, settings = self.state_builder.next_revision(state), GenerationSettings.parse(state)
        if len(page_state.run.generated) == page_state.began:
            raise UserError(_("There is nothing to regenerate: press Generate first."))
        if settings.temperature > 0:
            settings = replace(settings, seed=(settings.seed + 1) % (RANGES["seed"][1] + 1))
        ended, update = page_state.run.generated, {}
        page_state = replace_continuation(page_state, ended[: page_state.began], page_state.began)
        for update in self.generation_steps(page_state, settings, seed=settings.seed):
            yield update
        if settings.temperature == 0 and update and tuple(update["change"]["generated"]) == ended:
            warn(UserError(_("The same ending again: at temperature 0 the likeliest token is always taken.")))

    @as_gradio_event
    def compare(self, state: State) -> Iterator[dict[str, Any]]:
        """Add the continuations by greedy search, beam search and sampling as branches."""
        page_state, settings = self.state_builder.next_revision(state), GenerationSettings.parse(state)
        run, (lm, tokenizer) = page_state.run, self.state_builder.runs.model(page_state.run.checkpoint)
        window, interventions = run.window(lm.config.context_length), self.state_builder.runs.resolve_patches(run)
        max_new_tokens = min(
            lm.config.context_length + 1 - len(window), MAX_TOKENS - len(run.generated)
        )  # the last is not read
        count = min(COMPARED_TOKENS, self.limits.tokens, max_new_tokens)
        stop_ids = find_stop_ids(page_state, tokenizer)

        def sample(**options) -> list[int]:
            limits = {"max_new_tokens": count, "stop_tokens": stop_ids, "num_dropped": run.dropped}
            steps = generate(lm, run.token_ids, tokenizer=tokenizer, **limits, **options)
            return [step.token_id for step in generate_with_interventions(lm, interventions, steps)]

        def beam() -> tuple[int, ...]:
            with apply_interventions(lm, interventions):
                beams = beam_search(lm, window, num_beams=NUM_BEAMS, max_new_tokens=count, stop_tokens=stop_ids)
            return beams[0].token_ids

        sampling = settings.as_dict()
        del sampling["max_new_tokens"]
        methods = {"greedy": lambda: sample(temperature=0), "beam": beam, "sampling": lambda: sample(**sampling)}
        for origin, method in methods.items():
            branches = add_or_extend_branch(page_state.branches, (*run.generated, *method()), origin)
            page_state = replace(page_state, branches=branches)
            yield {"change": run_state_change(page_state), "ask": "show"}

    @throttle_updates
    def generation_steps(
        self, page_state: PageState, settings: GenerationSettings, **change
    ) -> Iterator[dict[str, Any]]:
        """Yield the run after each new token.

        `steps` has the position of each new token among the tokens that the model sees: the browser shows them one
        by one (page_actions.js).

        Args:
            change: further changes of the state.
        """
        num_free = MAX_TOKENS - len(page_state.run.generated)
        if num_free < 1:
            message = _("{most:,} tokens were generated, as many as fit into a link: press Run to start again.")
            warn(UserError(message.format(most=MAX_TOKENS)))
            return
        max_tokens = min(settings.max_new_tokens, num_free, self.limits.tokens)
        run = page_state.run
        lm, tokenizer = self.state_builder.runs.model(run.checkpoint)
        options = settings.as_dict() | {
            "max_new_tokens": max_tokens,
            "tokenizer": tokenizer,
            "num_dropped": run.dropped,
        }
        stop_ids = find_stop_ids(page_state, tokenizer)
        generated = generate(lm, run.token_ids, stop_tokens=stop_ids, **options)
        positions, end = [], time.monotonic() + self.limits.seconds
        for num_done, step in enumerate(
            generate_with_interventions(lm, self.state_builder.runs.resolve_patches(run), generated), start=1
        ):
            run = replace(run, generated=(*run.generated, step.token_id))
            if run.edits and lm.config.position == "learned":
                self.state_builder.runs.trace(run)  # raises if shifted positions exceed the learned ones
            positions.append(len(run.window(lm.config.context_length)) - 1)
            is_complete = num_done == settings.max_new_tokens or step.token_id in stop_ids
            is_complete = is_complete or step.stopped_by is not None
            is_last = is_complete or num_done == max_tokens or time.monotonic() >= end
            if is_last and not is_complete:
                self.warn_limit_reached(num_done)
            new_state, ask = (
                select_position(positions[-1], replace(page_state, run=run)),
                "show" if is_last else "token",
            )
            yield {"change": run_state_change(new_state) | change, "ask": ask, "steps": list(positions)}
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


def find_stop_ids(page_state: PageState, tokenizer: Tokenizer) -> tuple[int, ...]:
    """Return the ids that end a generation: of a text's end and, in a conversation, of a turn's."""
    return (*tokenizer.eos_ids, *(end_of_turn_ids(tokenizer) if page_state.chat else ()))


def select_position(index: int, page_state: PageState) -> PageState:
    """Return the state with this position as the query and the one before as the key."""
    return replace(page_state, selection=replace(page_state.selection, query=index, key=max(0, index - 1)))


def mark_generation_start(page_state: PageState) -> PageState:
    """Return the state with the generation's start at the end of the run."""
    return replace(page_state, began=len(page_state.run.generated))
