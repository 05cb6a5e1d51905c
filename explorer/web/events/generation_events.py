"""What the page answers to the buttons that make tokens, and to moves among what they made."""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial, wraps

import gradio as gr

from explorer.language import _
from explorer.state.branches import added
from explorer.state.errors import UserError
from explorer.state.limits import VisitorLimits
from explorer.state.page_state import PageState
from explorer.state.run import MOST_TOKENS
from explorer.state.settings import RANGES, GenerationSettings
from explorer.state.tree_commands import after, rewritten
from explorer.tracing.intervening import edited, edited_steps
from explorer.web.events.lesson_events import LessonEvents
from explorer.web.events.opening import Opening
from explorer.web.events.place_events import gone_to_place
from explorer.web.events.second_run import SecondRun
from explorer.web.events.toasts import telling, warn
from explorer.web.http.request_types import State
from explorer.web.widgets.state_update import StateUpdate
from model.generation.autoregressive import generate
from model.generation.beam import beam_search

SECONDS_AN_ANSWER = 1 / 15  # or more: browsers follow this; tokens that are faster come several at a time
COMPARED_TOKENS = 30
NUM_BEAMS = 4
OF_TWO_RUNS = ("shown", "clean_run", "answer", "wrong")  # of the selection what commands of two runs change


def at_intervals(answers: Callable[..., Iterator[dict]]) -> Callable[..., Iterator[dict]]:
    """Of answers that follow one another faster than browsers do the latest, each with all that is in those before; the
    last in any case, also where an error ends them."""

    @wraps(answers)
    def latest(*args, **kwargs):
        told, left = 0.0, None
        try:
            for left in answers(*args, **kwargs):
                if time.monotonic() >= told + SECONDS_AN_ANSWER:
                    yield left
                    told, left = time.monotonic(), None
        except Exception:
            if left:
                yield left
            raise
        if left:
            yield left

    return latest


class GenerationEvents:
    """Handlers that take the page's state alone and answer with the changes of it.

    Args:
        update: the widget that changes the state, once an event.
        written: another for texts that are being written: of values that come at once Gradio shows the last alone, and
            the last tokens of a text that was cancelled must not hide what cancelled it.
        prompt: the box of the prompt, which a move may shorten.
        seed: the number box of the seed, which Regenerate counts on.
        opening: knows what runs compute, and where they are looked at.
        limits: of one generation.
        lessons: know what a step of a lesson asks; None where there are none.
    """

    def __init__(
        self,
        update: StateUpdate,
        written: StateUpdate,
        prompt: gr.Textbox,
        seed: gr.Number,
        opening: Opening,
        limits: VisitorLimits,
        lessons: LessonEvents | None = None,
    ):
        self.update, self.written = update, written
        self.prompt, self.seed, self.opening, self.limits = prompt, seed, opening, limits
        self.second_run, self.lessons = SecondRun(opening), lessons

    @telling
    def on_step(self, state: State) -> Iterator[dict]:
        settings = replace(GenerationSettings.parse(state), max_new_tokens=1)
        for change in self.steps(self.next_turn(state), settings):
            yield {self.update: change}

    @telling
    def on_generate(self, state: State) -> Iterator[dict]:
        for change in self.steps(begun(self.next_turn(state)), GenerationSettings.parse(state)):
            yield {self.written: change}

    @telling
    def on_regenerate(self, state: State) -> Iterator[dict]:
        """What was written last, with the next seed, as a branch beside it."""
        asked, settings = self.next_turn(state), GenerationSettings.parse(state)
        if len(asked.run.generated) == asked.began:
            raise UserError(_("There is nothing to write anew here: press Generate first."))
        if settings.temperature == 0:
            raise UserError(_("At temperature 0 the likeliest token is always taken: no seed writes another text."))
        settings = replace(settings, seed=(settings.seed + 1) % (RANGES["seed"][1] + 1))
        asked = rewritten(asked, asked.run.generated[: asked.began], asked.began)
        for change in self.steps(asked, settings, seed=settings.seed):
            yield {self.written: change, self.seed: settings.seed}

    @telling
    def on_move(self, state: State) -> dict:
        """Another continuation, one token taken by hand, another beginning of the text, what the second run is, a
        step of a lesson, or a saved place."""
        kind = move.get("kind") if isinstance(move := state.get("move"), dict) else None
        if kind in self.second_run.commands:
            asked = self.second_run.after(self.next_turn(state), move)
            box = {} if asked.run.prompt == PageState.parse(state).run.prompt else {self.prompt: self.text_of(asked)}
            return {
                self.update: StateUpdate.pack(asked, {name: getattr(asked.selection, name) for name in OF_TWO_RUNS})
            } | box

        if kind == "place" or (kind == "lesson" and self.lessons):
            going = self.lessons.gone_to if kind == "lesson" else partial(gone_to_place, self.opening)
            asked, settings = going(state, move)
            asked = replace(asked, turn=self.next_turn(state).turn)
            change = StateUpdate.pack(asked, asked.selection.as_dict() | settings.as_dict())
            return {self.update: change, self.prompt: self.text_of(asked)}

        if kind == "beginning":
            return self.answered(state, self.opening.other_beginning)

        def move(asked: PageState) -> PageState:
            place = len(asked.run.token_ids) - len(self.opening.runs.trace(asked.run)) + asked.selection.query
            return after(asked, place, state.get("move"))

        return self.answered(state, lambda asked: move(self.opening.within(asked)))

    @telling
    def on_compare(self, state: State) -> Iterator[dict]:
        """What greedy search, beam search and sampling would go on with, as branches."""
        asked, settings = self.next_turn(state), GenerationSettings.parse(state)
        run, (lm, tokenizer) = asked.run, self.opening.runs.model(asked.run.checkpoint)
        window, changes = run.window(lm.config.context_length), self.opening.runs.ready(run)
        room = min(lm.config.context_length + 1 - len(window), MOST_TOKENS - len(run.generated))  # the last is not read
        count = min(COMPARED_TOKENS, self.limits.tokens, room)
        stops = tokenizer.ends

        def drawn(**how) -> list[int]:
            limits = {"max_new_tokens": count, "stop_tokens": stops, "num_dropped": run.dropped}
            steps = generate(lm, run.token_ids, tokenizer=tokenizer, **limits, **how)
            return [step.token_id for step in edited_steps(lm, changes, steps)]

        def beam() -> tuple[int, ...]:
            with edited(lm, changes):
                found = beam_search(lm, window, num_beams=NUM_BEAMS, max_new_tokens=count, stop_tokens=stops)
            return found[0].token_ids

        sampling = settings.as_dict()
        del sampling["max_new_tokens"]
        ways = {"greedy": lambda: drawn(temperature=0), "beam": beam, "sampling": lambda: drawn(**sampling)}
        for origin, way in ways.items():
            branches = added(asked.branches, (*run.generated, *way()), origin)
            asked = replace(asked, branches=branches)
            yield {self.written: StateUpdate.pack(asked)}

    @at_intervals
    def steps(self, asked: PageState, settings: GenerationSettings, **change) -> Iterator[dict]:
        """The run after each new token, and in `steps` the place of each among the tokens that the model sees: the
        browser shows them one by one (pace.js).

        Args:
            change: of the state besides.
        """
        room = MOST_TOKENS - len(asked.run.generated)
        if room < 1:
            told = _("{most:,} tokens were generated, as many as fit into a link: press Run to begin anew.")
            warn(UserError(told.format(most=MOST_TOKENS)))
            return
        most = min(settings.max_new_tokens, room, self.limits.tokens)
        run = asked.run
        lm, tokenizer = self.opening.runs.model(run.checkpoint)
        how = settings.as_dict() | {"max_new_tokens": most, "tokenizer": tokenizer, "num_dropped": run.dropped}
        generated = generate(lm, run.token_ids, stop_tokens=tokenizer.ends, **how)
        places, end = [], time.monotonic() + self.limits.seconds
        for done, step in enumerate(edited_steps(lm, self.opening.runs.ready(run), generated), start=1):
            run = replace(run, generated=(*run.generated, step.token_id))
            if run.edits and lm.config.position == "learned":
                self.opening.runs.trace(run)  # moved positions may have ended with it
            places.append(len(run.window(lm.config.context_length)) - 1)
            complete = done == settings.max_new_tokens or step.token_id in tokenizer.ends
            complete = complete or step.stopped_by is not None
            last = complete or done == most or time.monotonic() >= end
            if last and not complete:
                self.tell_why(done)
            seen, ask = seen_from(places[-1], replace(asked, run=run)), "show" if last else "token"
            yield StateUpdate.pack(seen, change, ask) | {"steps": list(places)}
            if last:
                return

    def tell_why(self, done: int):
        """That a limit ended the text, and how to go on."""
        if done == self.limits.tokens:
            told = _("Here at most {most} tokens are written at a time: press Generate to go on.", most=done)
            warn(UserError(told))
        elif self.limits.seconds < float("inf"):
            told = _("Here writing ends after {most:g} seconds: press Generate to go on.", most=self.limits.seconds)
            warn(UserError(told))

    def answered(self, state: State, move: Callable[[PageState], PageState]) -> dict:
        """What is asked after a move, looked at from its last token."""
        asked = self.next_turn(state)
        moved = self.opening.at_end(move(asked))
        box = {} if moved.run.prompt == asked.run.prompt else {self.prompt: self.text_of(moved)}
        return {self.update: StateUpdate.pack(moved)} | box

    def text_of(self, asked: PageState) -> str:
        """Of the prompt."""
        return self.opening.runs.text(asked.run)[0]

    def next_turn(self, state: State) -> PageState:
        """What the state asks, in its next turn. UserError where it makes no sense."""
        asked = PageState.parse(state)
        self.opening.runs.trace(asked.run)
        return replace(asked, turn=asked.turn + 1)


def seen_from(place: int, asked: PageState) -> PageState:
    """Looked at from a token to the one before."""
    return replace(asked, selection=replace(asked.selection, query=place, key=max(0, place - 1)))


def begun(asked: PageState) -> PageState:
    """What is written now begins at the end of the run."""
    return replace(asked, began=len(asked.run.generated))
