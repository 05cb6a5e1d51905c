"""All that is asked: the browser's state, parsed."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from explorer.language import _
from explorer.state.branches import Branches, parse_branches, written
from explorer.state.errors import UserError
from explorer.state.run import Run
from explorer.state.selection import Selection, as_index


@dataclass(frozen=True)
class PageState:
    """The page's state: what runs, and what of it is looked at.

    Attributes:
        run: with the continuation that is shown.
        selection: what of it is looked at.
        branches: continuations of the same prompt besides it.
        began: how many tokens were generated before those that were written last.
        turn: counts what changed the run, so that the browser can tell what comes too late: the last tokens of a
            generation that was cancelled may arrive after what cancelled it.
    """

    run: Run
    selection: Selection
    branches: Branches = ()
    began: int = 0
    turn: int = 0

    @classmethod
    def parse(cls, state: Mapping[str, Any]) -> "PageState":
        """UserError where the run makes no sense; of the selection, what makes none is left out."""
        if not isinstance(state, Mapping):
            raise UserError(_("the page's state is an object, got {got!r:.80}", got=state))
        selection, run = Selection.parse(state), Run.parse(state)
        began = min(as_index(state.get("began")) or 0, len(run.generated))
        branches = parse_branches(state.get("branches") or "")
        return cls(run, selection, branches, began, turn_of(state))

    def as_dict(self) -> dict[str, Any]:
        return self.run.as_dict() | self.selection.as_dict() | self.tree_as_dict()

    def tree_as_dict(self) -> dict[str, Any]:
        return {"branches": written(self.branches), "began": self.began}


def turn_of(state: Mapping[str, Any]) -> int:
    return as_index(state.get("turn")) or 0
