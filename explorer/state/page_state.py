"""The page's state, parsed from the browser's."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from explorer.state.alignment import Pins, format_pins, parse_pins
from explorer.state.branches import Branches, format_branches, parse_branches
from explorer.state.errors import UserError
from explorer.state.interventions import CrossRunIntervention
from explorer.state.run import Run
from explorer.state.selection import Selection, parse_index
from explorer.state.view_registry import is_story_view
from explorer.translations import _

OTHER_PREFIX = "b."  # before the names of the second run's fields


@dataclass(frozen=True)
class PageState:
    """The page's state: the runs, and the selection.

    Attributes:
        run: with the continuation that is displayed.
        selection: the selected elements and options.
        branches: other continuations of the same prompt.
        began: number of tokens generated before the last generation.
        turn: revision of the run, so that the browser can drop late responses: the last tokens of a cancelled
            generation may arrive after the response to the command that cancelled it.
        other: the run that it is compared with; without a prompt it has the same text. None for none.
        pins: pairs of positions that the user aligned.

    Patches of either run take values of the other one here, computed without that run's own patches.
    """

    run: Run
    selection: Selection
    branches: Branches = ()
    began: int = 0
    turn: int = 0
    other: Run | None = None
    pins: Pins = ()

    def __post_init__(self):
        object.__setattr__(self, "run", self.run.with_patch_source(self.other, self.pins))
        if self.other:
            reverse_pins = tuple((b, a) for a, b in self.pins)
            object.__setattr__(self, "other", self.other.with_patch_source(self.run, reverse_pins))

    def without_patches(self) -> "PageState":
        """Return the state without patches in either run."""
        return replace(self, run=self.run.without_patches(), other=self.other and self.other.without_patches())

    @property
    def patches(self) -> tuple[CrossRunIntervention, ...]:
        """Patches of both runs."""
        return self.run.patches + (self.other.patches if self.other else ())

    @classmethod
    def parse(cls, state: Mapping[str, Any]) -> "PageState":
        """Parse the browser's state; invalid parts of the selection are left out.

        Raises:
            UserError: the run is invalid.
        """
        if not isinstance(state, Mapping):
            raise UserError(_("the page's state is an object, got {got!r:.80}", got=state))
        selection, run = Selection.parse(state), Run.parse(state)
        began = min(parse_index(state.get("began")) or 0, len(run.generated))
        branches = parse_branches(state.get("branches") or "")
        other = {
            name.removeprefix(OTHER_PREFIX): value for name, value in state.items() if name.startswith(OTHER_PREFIX)
        }
        pins = parse_pins(other.pop("pins", ""))
        other_run = Run.parse(other) if other.get("checkpoint") else None
        return cls(run, selection, branches, began, parse_revision(state), other_run, pins if other_run else ())

    @property
    def visible_other(self) -> Run | None:
        """The second run if the open tab shows two runs: the story shows one."""
        return None if is_story_view(self.selection.view) else self.other

    def as_dict(self) -> dict[str, Any]:
        return self.run.as_dict() | self.selection.as_dict() | self.tree_as_dict() | self.other_as_dict()

    def other_as_dict(self) -> dict[str, Any]:
        """Return the fields of the second run; empty values under the same names if there is none."""
        fields = self.other.as_dict() if self.other else dict.fromkeys(self.run.as_dict(), "")
        return {OTHER_PREFIX + name: value for name, value in fields.items()} | {"b.pins": format_pins(self.pins)}

    def tree_as_dict(self) -> dict[str, Any]:
        return {"branches": format_branches(self.branches), "began": self.began}


def parse_revision(state: Mapping[str, Any]) -> int:
    """Return the revision of an untrusted state; 0 if it is missing or invalid."""
    return parse_index(state.get("turn")) or 0
