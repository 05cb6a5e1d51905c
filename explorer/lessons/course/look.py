"""A state of the page, looked at: what a lesson's questions are worked out from."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, Protocol

from explorer.state.page_state import OF_OTHER, PageState
from explorer.state.run import Run
from explorer.state.selection import Selection
from explorer.state.settings import GenerationSettings
from explorer.tracing.trace import Trace

SELECTED = tuple(name.name for name in fields(Selection) if name.name not in ("lesson", "step", "reply"))
SETTINGS = tuple(name.name for name in fields(GenerationSettings))
OF_RUN = ("text", "checkpoint", "edits", *(OF_OTHER + name for name in ("text", "checkpoint", "edits")))
# What of the page's address a lesson may say; ids of tokens say nothing to its reader.
NAMES = (*OF_RUN, *SELECTED, *SETTINGS)
Opened = Callable[[Mapping[str, Any]], PageState]


class Runs(Protocol):
    """Who knows what models compute (`explorer.tracing.runs`)."""

    def held(self, run: Run) -> tuple[Any, Trace]:
        """The model, to be there as long as its trace is asked for more, and the trace."""


@dataclass(frozen=True)
class Look:
    """What a state asks for, computed once.

    Attributes:
        runs: know what models compute.
        opened: a state's mapping -> what it asks, with its text as tokens.
        state: by the names of the address.
    """

    runs: Runs
    opened: Opened
    state: Mapping[str, Any]
    seen: dict[Any, "Look"] = field(default_factory=dict, repr=False)

    @cached_property
    def asked(self) -> PageState:
        return self.opened(self.state)

    @cached_property
    def held(self) -> tuple[Any, Trace]:
        """The model, to be there as long as its trace is asked for more, and the trace."""
        return self.runs.held(self.asked.run)

    @property
    def trace(self) -> Trace:
        return self.held[1]

    @cached_property
    def selection(self) -> Selection:
        return self.asked.selection.within(self.trace)

    @cached_property
    def settings(self) -> GenerationSettings:
        return GenerationSettings.parse(self.state)

    @property
    def run(self) -> Run:
        return self.asked.run

    def but(self, change: Mapping[str, Any]) -> "Look":
        """The same state with other values of some names; another text is looked at from its last token."""
        if not change:
            return self
        key = tuple(sorted((name, str(value)) for name, value in change.items()))
        if key not in self.seen:
            self.seen[key] = self._but(change)
        return self.seen[key]

    def _but(self, change: Mapping[str, Any]) -> "Look":
        if set(change) <= {*SELECTED, *SETTINGS}:
            other = Look(self.runs, self.opened, {**self.state, **change})
            chosen = {name: value for name, value in change.items() if name in SELECTED}
            asked = replace(self.asked, selection=replace(self.asked.selection, **chosen))
            vars(other).update(asked=asked, held=self.held)
            return other
        left_out = ("prompt", "generated", "query", "key", "branches", "began", "dropped") if "text" in change else ()
        kept = {name: value for name, value in self.state.items() if name not in left_out}
        return Look(self.runs, self.opened, kept | dict(change))
