"""What the browser asks for: the open view and the prediction, as the contents of widgets by their element ids."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from explorer.analysis.next_token import NextToken, next_token
from explorer.analysis.shades import SHADES, shaded
from explorer.explain.inspection import Point
from explorer.state.branches import tree
from explorer.state.errors import UserError
from explorer.state.page_state import PageState
from explorer.state.run import Run
from explorer.state.selection import MOST_FOUND_BY
from explorer.state.settings import GenerationSettings
from explorer.tracing.runs import Runs
from explorer.tracing.trace import Trace
from explorer.tracing.work import TooMuch, go_on
from explorer.views import view_named
from explorer.views.choices import OF_TOKENS, choices
from explorer.views.view import Panel, SmallMultiples
from explorer.web.continuations import Continuations
from explorer.web.hints import hint
from explorer.web.open_view import OpenView, open_view_of
from explorer.web.opening import page_state
from explorer.web.protocol import (
    ABOUT,
    BRANCHES,
    BRIEF,
    CHANGES,
    CHOOSERS,
    COACH,
    FORMULA,
    MARK,
    NEXT_TOKEN,
    NEXT_TOKEN_WORDS,
    PARTS,
    PICKER,
    PLAYBACK,
    PROBLEM,
    STORY,
    STRIP,
    WHAT_IFS,
    WORDS,
    in_tab,
)
from explorer.web.server_functions import server_function
from explorer.web.widgets.branches import Branches
from explorer.web.widgets.brief import Brief
from explorer.web.widgets.changes import Changes
from explorer.web.widgets.choosers import Choosers
from explorer.web.widgets.coach import Coach
from explorer.web.widgets.distribution import Distribution
from explorer.web.widgets.distribution.words import summary
from explorer.web.widgets.figure import Figure
from explorer.web.widgets.head_grid import HeadGrid
from explorer.web.widgets.picker import Picker
from explorer.web.widgets.playback import Playback
from explorer.web.widgets.token_strip import TokenStrip
from explorer.web.widgets.what_ifs import WhatIfs

SEEN_AT_ONCE = 2  # pictures that fill a screen: they do not wait for those below them
RENEWED = "The model’s files were written anew: all that is shown is computed with the new ones."


class Endpoints:
    """Answers that pass Gradio's events and its updates of widgets by: they take longer than all that is computed.

    Args:
        runs: know what the models compute.
    """

    def __init__(self, runs: Runs):
        self.runs, self.continuations = runs, Continuations(runs.library)

    @property
    def functions(self) -> list[Callable]:
        """For the browser to call."""
        return [server_function(self.answer), server_function(self.inspect)]

    def answer(self, about: str, state: Mapping[str, Any], part: int = 0) -> dict[str, Any]:
        """What a change of the state asks for.

        Args:
            about: "show" for the whole open view and the prediction, "pick" for what of them follows the selection,
                "token" for the tokens, the text and the prediction, "tune" for the prediction alone.
            state: anything, as anybody may send it.
            part: 0 for what is seen at once, 1 for the other pictures and the tree of continuations, 2 for what vouches
                for the pictures' numbers.

        Returns:
            `contents`, element id -> what it shows, None where it gives up its place; `more`, whether there is a rest;
            `version`, of the model's files, which the browser names in the state that it asks about next. Where they
            were written anew since, there are no contents but `ask`, what to ask in place of this.

        Raises:
            UserError, CheckpointError: there is no answer to that.
        """
        if about not in ABOUT or part not in PARTS:
            raise UserError(f"an answer is about {', '.join(ABOUT)}, in parts 0 to 2, got {about!r:.40}, {part!r:.40}")
        asked, settings = page_state(state), GenerationSettings.parse(state)
        version, known = self.runs.version(asked.run.checkpoint), state.get("version")
        renewed = isinstance(known, str) and known != version and known.partition("@")[0] == asked.run.checkpoint
        if renewed and (about != "show" or part):
            return {"contents": {}, "more": False, "ask": "show"}
        shown = {} if part else {PROBLEM: RENEWED if renewed else ""}
        if part == 0:
            trace = self.runs.logits(asked.run) if about == "token" else self.runs.trace(asked.run)
            shown |= self.prediction(asked, settings, trace)
            shown |= self.tokens(asked, trace) if about in ("token", "show") else {}
            shown |= self.choosers(asked, trace) if about == "token" else {}
        if about in ("tune", "token"):
            return {"contents": shown, "more": False, "version": version}
        if about == "show" and part == 0:
            shown |= self.coach(asked) | {PICKER: Picker.pack(self.runs.library.checkpoints)}
        open_view = open_view_of(self.runs, asked)
        shown |= self.part(open_view, about == "show", part)
        if about == "show" and part == 1:
            shown |= self.tree(asked)
        return {"contents": shown, "more": part < 2, "version": version}

    def part(self, open_view: OpenView, newly: bool, part: int) -> dict[str, Any]:
        """What the open view shows in a part of an answer."""
        name, panels = open_view.view.name, open_view.panels(newly)
        if part == 2:
            marks = {panel.name: piece(open_view.mark, panel) for panel in panels}
            return {in_tab(name, panel) + MARK: mark and mark.as_dict() for panel, mark in marks.items()}
        later = [panel for panel in panels if open_view.has(panel)][SEEN_AT_ONCE:]
        now = later if part else [panel for panel in panels if panel not in later]
        pictures = {in_tab(name, panel.name): packed(piece(open_view.draw, panel)) for panel in now}
        if part:
            return pictures
        return pictures | {
            CHANGES: Changes.pack(open_view.trace.edits, open_view.trace.config),
            in_tab(name, WORDS): open_view.words,
            in_tab(name, FORMULA): open_view.formula,
            in_tab(name, CHOOSERS): Choosers.pack(open_view.choices),
            in_tab(name, WHAT_IFS): WhatIfs.pack(open_view.what_ifs),
        }

    def inspect(self, state: Mapping[str, Any], picture: str, point: Mapping[str, Any]) -> str:
        """How the number at a clicked point of a picture comes about, as lines of text; "" where there is none.

        Args:
            picture: element id.
            point: its coordinates, see `Point`; anything, as anybody may send it.

        Raises:
            UserError, CheckpointError: there is no such point, or no such picture.
        """
        if not isinstance(picture, str):
            raise UserError(f"a picture has a name, got {picture!r:.80}")
        open_view = open_view_of(self.runs, page_state(state))
        return open_view.inspect(picture.removeprefix(in_tab(open_view.view.name, "")), Point.parse(point))

    def tokens(self, asked: PageState, trace: Trace) -> dict[str, Any]:
        prompt, generated = self.runs.text(asked.run)
        strip = token_strip(asked.run, trace)
        return {
            STRIP: TokenStrip.pack(**strip),
            STORY: {"prompt": prompt, "generated": generated},
            PLAYBACK: Playback.pack(strip["tokens"], strip["num_prompt"], len(asked.run.generated)),
        }

    def choosers(self, asked: PageState, trace: Trace) -> dict[str, Any]:
        """The open view's lists that name tokens."""
        view, selection = view_named(asked.selection.view), asked.selection.within(trace)
        found = choices([field for field in view.controls if field in OF_TOKENS], trace, selection)
        return {in_tab(view.name, CHOOSERS): Choosers.pack(found, all_of_them=False)}

    def tree(self, asked: PageState) -> dict[str, Any]:
        _, tokenizer = self.runs.model(asked.run.checkpoint)
        try:
            stretches = tree(self.continuations.surprisals(asked))
        except TooMuch as error:  # and what there is beside the tree is shown
            return {PROBLEM: str(error)}
        shown, kept = asked.run.generated, asked.branches
        return {BRANCHES: Branches.pack(stretches, shown, kept, tokenizer.vocabulary.__getitem__)}

    def coach(self, asked: PageState) -> dict[str, Any]:
        return {COACH: Coach.pack(*hint(self.runs, asked.run))}

    def prediction(self, asked: PageState, settings: GenerationSettings, trace: Trace) -> dict[str, Any]:
        prediction, vocabulary, words = prediction_after(asked, settings, trace)
        drawn = prediction.drawn
        table = Distribution.pack(prediction, vocabulary, settings, asked.selection.find[:MOST_FOUND_BY])
        brief = Brief.pack(trace.tokens[: asked.selection.query + 1], vocabulary[drawn], prediction.sampled[drawn])
        return {NEXT_TOKEN: table, NEXT_TOKEN_WORDS: words, BRIEF: brief}


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


def prediction_after(
    asked: PageState, settings: GenerationSettings, trace: Trace
) -> tuple[NextToken, Sequence[str], str]:
    """The distribution after the selected token, the texts of all tokens, and the distribution in a sentence.

    Args:
        trace: of the run; the logits suffice.
    """
    position = min(asked.selection.query, len(trace) - 1)
    prediction = next_token(
        trace,
        position,
        settings.temperature,
        settings.top_k,
        top_p=settings.top_p,
        min_p=settings.min_p,
        repetition_penalty=settings.repetition_penalty,
        seed=settings.seed,
        start=asked.run.dropped + len(asked.run.token_ids) - len(trace),
    )
    words = summary(prediction, trace.vocabulary, trace.tokens[position], position)
    return prediction, trace.vocabulary, words


def piece(work: Callable[[Panel], Any], panel: Panel) -> Any:
    """What there is to be done for a panel, if the answer is still wanted."""
    go_on()
    return work(panel)


def packed(picture: Any) -> Any:
    """A picture as its widget takes it."""
    if picture is None:
        return None
    return HeadGrid.pack(picture) if isinstance(picture, SmallMultiples) else Figure.pack(picture)
