"""What stands around the tabs, by element ids: the tokens, the text, the next token, the continuations."""

from typing import Any

from explorer.analysis.divergence import on_vocabulary
from explorer.analysis.next_token import NextToken, next_token
from explorer.analysis.shades import SHADES, shaded, shaded_by_change
from explorer.analysis.stand_ins import stand_ins
from explorer.analysis.why import why
from explorer.lessons import stand_ins as of_stand_ins
from explorer.lessons.advice import advice
from explorer.lessons.why import told
from explorer.state.branches import tree
from explorer.state.page_state import PageState
from explorer.state.run import Run
from explorer.state.selection import MOST_FOUND_BY, SIMPLE_TABS
from explorer.state.settings import GenerationSettings
from explorer.tracing.runs import Runs
from explorer.tracing.trace import Trace
from explorer.tracing.translation import is_begun, without_beginning
from explorer.tracing.work import TooMuch
from explorer.web.answers.continuations import Continuations
from explorer.web.protocol import (
    ADVICE,
    BRANCHES,
    BRIEF,
    GUESS,
    NEXT_TOKEN,
    NEXT_TOKEN_WORDS,
    PLAYBACK,
    PROBLEM,
    RUNS,
    STAND_INS,
    STORY,
    STRIP,
    STRIP_B,
    WHY,
)
from explorer.web.widgets.advice import Advice
from explorer.web.widgets.asked import Asked
from explorer.web.widgets.branches import Branches
from explorer.web.widgets.brief import Brief
from explorer.web.widgets.distribution import Distribution
from explorer.web.widgets.distribution.other import OtherNextToken
from explorer.web.widgets.distribution.words import summary
from explorer.web.widgets.guess import Guess
from explorer.web.widgets.playback import Playback
from explorer.web.widgets.runs import Runs as RunsWidget
from explorer.web.widgets.token_strip import TokenStrip


class AroundTabs:
    """Errors are those of `Runs`."""

    def __init__(self, runs: Runs):
        self.runs, self.continuations = runs, Continuations(runs.library)

    def tokens(self, asked: PageState, trace: Trace) -> dict[str, Any]:
        run = asked.run
        prompt, generated = self.runs.text(run)
        strip = token_strip(run, trace)
        other = {STRIP_B: None}
        if asked.seen_other:
            comparison = self.runs.comparison(asked, of=self.runs.logits)
            change, back = shaded_by_change(comparison)
            beside = token_strip(self.runs.other(asked), comparison.other)
            other = {STRIP_B: TokenStrip.pack(**beside | {"shades": {"change": back}})}
            strip["shades"] = {"change": change}
        return other | {
            STRIP: TokenStrip.pack(**strip, beginning=self.beginning(run)),
            STORY: {"prompt": prompt, "generated": generated},
            PLAYBACK: Playback.pack(strip["tokens"], strip["num_prompt"], len(run.generated)),
        }

    def beginning(self, run: Run) -> tuple[str, bool]:
        """What the model expects before every text, "" for nothing, and whether it is there; nothing of a text whose
        beginning the model does not see."""
        _lm, tokenizer = self.runs.model(run.checkpoint)
        expected = "" if run.dropped else "".join(map(tokenizer.token_text, tokenizer.beginning))
        return expected, is_begun(run.prompt, tokenizer)

    def prediction(self, asked: PageState, settings: GenerationSettings, trace: Trace) -> dict[str, Any]:
        position, vocabulary = min(asked.selection.query, len(trace) - 1), trace.vocabulary
        prediction = prediction_after(asked.run, position, settings, trace)
        find, guess = (text[:MOST_FOUND_BY] for text in (asked.selection.find, asked.selection.guess))
        drawn = prediction.drawn
        before = self.draw_before(asked, position, settings, trace)
        other = self.other_prediction(asked, position, settings) if asked.seen_other else None
        return {
            NEXT_TOKEN: Distribution.pack(prediction, vocabulary, settings, find, other),
            NEXT_TOKEN_WORDS: summary(prediction, vocabulary, trace.tokens[position], position),
            GUESS: Guess.pack(prediction, vocabulary, settings, trace.tokens[position], guess, before),
            BRIEF: Brief.pack(trace.tokens[: position + 1], vocabulary[drawn], prediction.sampled[drawn]),
        }

    def draw_before(
        self, asked: PageState, position: int, settings: GenerationSettings, trace: Trace
    ) -> NextToken | None:
        """Return what a generated token was drawn from; None of the prompt's, and where no page says it."""
        is_generated = position + len(asked.run.token_ids) - len(trace) >= len(asked.run.prompt)
        if asked.selection.view not in SIMPLE_TABS or not is_generated or not position:
            return None
        return prediction_after(asked.run, position - 1, settings, trace)

    def other_prediction(self, asked: PageState, position: int, settings: GenerationSettings) -> OtherNextToken:
        """What B predicts after the token that stands for A's, drawn with the same random number as A's."""
        comparison = self.runs.comparison(asked, of=self.runs.logits)
        trace, other = comparison.runs
        there = comparison.alignment.nearest(position)
        start = asked.run.dropped + len(asked.run.token_ids) - len(trace) + position - there
        found = prediction_in(other, there, settings, start)
        plain = on_vocabulary(found.plain, other.vocabulary, trace.vocabulary)
        return OtherNextToken(plain, other.vocabulary[found.drawn], other.tokens[there], there)

    def runs_of(self, asked: PageState) -> dict[str, Any]:
        """One run or two, and the ways to a second."""
        comparison = self.runs.comparison(asked) if asked.seen_other else None
        texts = self.runs.text(asked.run)[0], self.runs.text(self.runs.other(asked))[0] if asked.seen_other else ""
        return {RUNS: RunsWidget.pack(asked, comparison, self.runs.library.checkpoints, texts)}

    def advice(self, run: Run) -> dict[str, Any]:
        """How to end the prompt better, before anything is written to it."""
        found = None if run.generated else advice(self.runs.trace(run))
        if found is None:
            return {ADVICE: Advice.pack()}
        _lm, tokenizer = self.runs.model(run.checkpoint)
        text = tokenizer.decode(run.prompt)
        better = found.follow(text)
        own = without_beginning(run.prompt, tokenizer)
        whole = not run.dropped and tuple(tokenizer.encode(text)) == own  # or else the text is not all there is
        return {ADVICE: Advice.pack(found.words, better if whole and better != text else "")}

    def asked(self, asked: PageState) -> dict[str, Any]:
        """Why the explained token was predicted, and what stands in for what, where somebody asked."""
        _lm, trace = self.runs.held(asked.run)  # the model is to stay as long as it is run again
        selection, shown = asked.selection.within(trace), {WHY: [], STAND_INS: []}
        place = trace, selection.query, selection.target
        if selection.why == "open":
            shown[WHY] = Asked.pack(told(trace, selection.query, why(*place)))
        if selection.stand_ins == "open":
            shown[STAND_INS] = Asked.pack(of_stand_ins.told(trace, selection.query, stand_ins(*place)))
        return shown

    def tree(self, asked: PageState) -> dict[str, Any]:
        _, tokenizer = self.runs.model(asked.run.checkpoint)
        try:
            stretches = tree(self.continuations.surprisals(asked))
        except TooMuch as error:  # and what there is beside the tree is shown
            return {PROBLEM: str(error)}
        shown, kept = asked.run.generated, asked.branches
        return {BRANCHES: Branches.pack(stretches, shown, kept, tokenizer.vocabulary.__getitem__)}


def token_strip(run: Run, trace: Trace) -> dict[str, Any]:
    """The tokens the model sees, and how many it does not.

    Args:
        trace: of the run; the logits suffice.
    """
    unseen = len(run.token_ids) - len(trace)
    return {
        "tokens": trace.tokens,
        "shades": {name: shaded(trace, name) for name in SHADES},
        "num_prompt": max(0, len(run.prompt) - unseen),
        "earlier": unseen + run.dropped,
    }


def prediction_after(run: Run, position: int, settings: GenerationSettings, trace: Trace) -> NextToken:
    """The distribution after a token.

    Args:
        position: of the token, in the trace.
        trace: of the run; the logits suffice.
    """
    return prediction_in(trace, position, settings, run.dropped + len(run.token_ids) - len(trace))


def prediction_in(trace: Trace, position: int, settings: GenerationSettings, start: int) -> NextToken:
    """The same where so many tokens come before the trace's first, by which random numbers are counted."""
    return next_token(
        trace,
        position,
        settings.temperature,
        settings.top_k,
        top_p=settings.top_p,
        min_p=settings.min_p,
        repetition_penalty=settings.repetition_penalty,
        seed=settings.seed,
        start=start,
    )
