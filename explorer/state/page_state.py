"""All that is asked: the browser's state, parsed."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from explorer.language import _
from explorer.state.alignment import Pins, parse_pins
from explorer.state.alignment import written as pins_written
from explorer.state.branches import Branches, parse_branches, written
from explorer.state.errors import UserError
from explorer.state.interventions import FromOther
from explorer.state.run import Run
from explorer.state.selection import SIMPLE_TABS, Selection, as_index

OF_OTHER = "b."  # before the names of the second run's fields


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
        other: the run that it is compared with; of one that has no prompt the text is the same. None for none.
        pins: tokens of both that stand beside each other because somebody put them there.

    Changes of either run that take values of another take them of the other one here, as it is without such changes of
    its own.
    """

    run: Run
    selection: Selection
    branches: Branches = ()
    began: int = 0
    turn: int = 0
    other: Run | None = None
    pins: Pins = ()

    def __post_init__(self):
        object.__setattr__(self, "run", self.run.taking_from(self.other, self.pins))
        if self.other:
            back = tuple((b, a) for a, b in self.pins)
            object.__setattr__(self, "other", self.other.taking_from(self.run, back))

    def without_patches(self) -> "PageState":
        """The same without changes that take values of the other run."""
        return replace(self, run=self.run.without_patches(), other=self.other and self.other.without_patches())

    @property
    def patches(self) -> tuple[FromOther, ...]:
        """Such changes of either run."""
        return self.run.patches + (self.other.patches if self.other else ())

    @classmethod
    def parse(cls, state: Mapping[str, Any]) -> "PageState":
        """UserError where the run makes no sense; of the selection, what makes none is left out."""
        if not isinstance(state, Mapping):
            raise UserError(_("the page's state is an object, got {got!r:.80}", got=state))
        selection, run = Selection.parse(state), Run.parse(state)
        began = min(as_index(state.get("began")) or 0, len(run.generated))
        branches = parse_branches(state.get("branches") or "")
        other = {name.removeprefix(OF_OTHER): value for name, value in state.items() if name.startswith(OF_OTHER)}
        pins = parse_pins(other.pop("pins", ""))
        compared = Run.parse(other) if other.get("checkpoint") else None
        return cls(run, selection, branches, began, turn_of(state), compared, pins if compared else ())

    @property
    def seen_other(self) -> Run | None:
        """The other run where the open tab shows two: the simple page shows one."""
        return None if self.selection.view in SIMPLE_TABS else self.other

    def as_dict(self) -> dict[str, Any]:
        return self.run.as_dict() | self.selection.as_dict() | self.tree_as_dict() | self.other_as_dict()

    def other_as_dict(self) -> dict[str, Any]:
        """The second run; where there is none, nothing under the same names."""
        fields = self.other.as_dict() if self.other else dict.fromkeys(self.run.as_dict(), "")
        return {OF_OTHER + name: value for name, value in fields.items()} | {"b.pins": pins_written(self.pins)}

    def tree_as_dict(self) -> dict[str, Any]:
        return {"branches": written(self.branches), "began": self.began}


def turn_of(state: Mapping[str, Any]) -> int:
    return as_index(state.get("turn")) or 0
