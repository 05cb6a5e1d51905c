"""A second run beside the first: how it comes about, and what can be done with two."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from explorer.language import _
from explorer.lessons.prompt_pairs import PROMPT_PAIRS
from explorer.state.alignment import parse_pins, written
from explorer.state.errors import UserError
from explorer.state.page_state import PageState
from explorer.state.run import Run
from explorer.state.selection import as_index
from explorer.state.series import model_of
from explorer.tracing.translation import is_begun
from explorer.web.errors import told
from explorer.web.events.opening import Opening
from explorer.web.events.toasts import warn


class SecondRun:
    """Commands that say what B is. Errors are those of `Opening`, and UserError where a command makes no sense."""

    def __init__(self, opening: Opening):
        self.opening = opening
        self.commands: dict[str, Callable[[PageState, Mapping[str, Any]], PageState]] = {
            "compare": self.compared,
            "swap": self.swapped,
            "copy": self.copied,
            "close": self.closed,
            "pin": self.pinned,
            "unpin": self.unpinned,
            "pair": self.paired,
        }

    def after(self, asked: PageState, move: Mapping[str, Any]) -> PageState:
        """What is asked after a command, looked at where it was; the second run is tried, so that none stays that
        cannot be computed."""
        before, asked = asked, self.commands[move["kind"]](asked, move)
        asked = self.taking_what_there_is(before, asked)
        if asked.other:
            self.opening.runs.comparison(asked)
        shown = asked.selection.shown if asked.other else "a"
        return self.opening.within(replace(asked, selection=replace(asked.selection, shown=shown)))

    def taking_what_there_is(self, before: PageState, asked: PageState) -> PageState:
        """With the changes that take the other's values, where it has them; what became of them is told."""
        if not asked.patches:
            if before.patches:
                warn(UserError(_("B is another: the changes that took the other run’s values are gone.")))
            return asked
        asked = within_one_model(asked)
        if not asked.patches:
            return asked
        try:
            self.opening.runs.comparison(asked)
        except UserError as error:
            warn(UserError(_("{wrong}: the changes that took the other run’s values are gone.", wrong=told(error))))
            return asked.without_patches()
        if before.other and {asked.run.prompt, asked.other.prompt} != {before.run.prompt, before.other.prompt}:
            warn(UserError(_("The changes that take the other run’s values now take those of the new B.")))
        return asked

    def compared(self, asked: PageState, move: Mapping[str, Any]) -> PageState:
        """With the same text unchanged, with the same text read by another model, or with another prompt."""
        run = asked.run
        ways = {
            "unchanged": lambda: Run(run.checkpoint, ()),
            "model": lambda: Run(self.known(move.get("checkpoint")), (), edits=()),
            "prompt": lambda: self.prompted(asked, move.get("text")),
        }
        way = move.get("with")
        if not isinstance(way, str) or way not in ways:
            told = _("a run is compared with one of {ways}, got {got!r:.80}")
            raise UserError(told.format(ways=", ".join(ways), got=way))
        shown = asked.selection.shown if asked.other else "difference"
        return replace(asked, other=ways[way](), pins=(), selection=replace(asked.selection, shown=shown))

    def prompted(self, asked: PageState, text: Any) -> Run:
        """B with another prompt: read and changed as it is, or as A is where there was no B."""
        before = asked.other or asked.run.without_patches()
        _lm, tokenizer = self.opening.runs.model(before.checkpoint)
        begun = not before.prompt or is_begun(before.prompt, tokenizer)
        return replace(self.opening.run_of(before.checkpoint, text, begun), edits=before.edits)

    def known(self, checkpoint: Any) -> str:
        if not isinstance(checkpoint, str):
            raise UserError(_("the checkpoint must be a name, got {got!r}", got=checkpoint))
        checkpoint = self.opening.runs.library.offered.resolve(checkpoint)
        self.opening.runs.model(checkpoint)
        return checkpoint

    def swapped(self, asked: PageState, move: Mapping[str, Any]) -> PageState:
        """B becomes A, and A B, without the tree of continuations, which is A's."""
        other = self.opening.runs.other(asked)
        pins = tuple((b, a) for a, b in asked.pins)
        return replace(asked, run=other, other=asked.run, branches=(), began=len(other.generated), pins=pins)

    def copied(self, asked: PageState, move: Mapping[str, Any]) -> PageState:
        """B becomes what A is, to keep it while A goes on."""
        run = asked.run.without_patches()  # they would take its own values
        return replace(asked, run=run, other=run, pins=())

    def closed(self, asked: PageState, move: Mapping[str, Any]) -> PageState:
        return replace(asked.without_patches(), other=None, pins=())

    def pinned(self, asked: PageState, move: Mapping[str, Any]) -> PageState:
        """Two tokens stand beside each other, in place of what stood beside either."""
        a, b = as_index(move.get("a")), as_index(move.get("b"))
        if a is None or b is None or not asked.other:
            raise UserError(_("tokens of two runs are put together by their positions in both"))
        others = tuple(pair for pair in asked.pins if pair[0] != a and pair[1] != b)
        return replace(asked, pins=parse_pins(written((*others, (a, b)))))

    def paired(self, asked: PageState, move: Mapping[str, Any]) -> PageState:
        """A pair of prompts to begin patching with: A reads the corrupted one, B the clean one, both unchanged."""
        place, checkpoint = as_index(move.get("pair")), asked.run.checkpoint
        if place is None or place >= len(PROMPT_PAIRS):
            raise UserError(_("there are {count} pairs of prompts: choose one of them", count=len(PROMPT_PAIRS)))
        pair = PROMPT_PAIRS[place]
        run, other = (self.opening.run_of(checkpoint, text) for text in (pair.corrupted, pair.clean))
        selection = replace(asked.selection, clean_run="b", answer="", wrong="", shown="a")
        last = len(run.prompt) - 1
        selection = replace(selection, query=last, key=max(0, last - 1))
        return PageState(run, selection, turn=asked.turn, other=other)

    def unpinned(self, asked: PageState, move: Mapping[str, Any]) -> PageState:
        return replace(asked, pins=())


def within_one_model(asked: PageState) -> PageState:
    """Return it without the changes that put one model's values into another model, which is told: they mean nothing
    there. Steps of one training are one model."""
    if not asked.patches or model_of(asked.run.checkpoint) == model_of(asked.other.checkpoint):
        return asked
    told = _("A and B are of different models now: the changes that took the other run’s values are gone.")
    warn(UserError(told))
    return asked.without_patches()
