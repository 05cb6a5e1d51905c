"""The context in which a lesson's questions are evaluated: a page state with its run."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, Protocol

from explorer.state.generation_settings import GenerationSettings
from explorer.state.page_state import OTHER_PREFIX, PageState
from explorer.state.run import Run
from explorer.state.selection import Selection
from explorer.tracing.trace import Trace

SETTINGS_FIELDS = tuple(name.name for name in fields(GenerationSettings))
RUN_FIELDS = ("text", "checkpoint", "edits", *(OTHER_PREFIX + name for name in ("text", "checkpoint", "edits")))
StateOpener = Callable[[Mapping[str, Any]], PageState]


def selection_fields() -> tuple[str, ...]:
    """Return the fields of the selection, but those of the lesson."""
    return tuple(name for name in Selection().as_dict() if name not in ("lesson", "step", "reply"))


def state_fields() -> tuple[str, ...]:
    """Return the state fields that a lesson may set; token ids would mean nothing to its reader."""
    return (*RUN_FIELDS, *selection_fields(), *SETTINGS_FIELDS)


class TraceSource(Protocol):
    """Source of each run's model and trace (implemented in `explorer.tracing.run_service`)."""

    def model_and_trace(self, run: Run) -> tuple[Any, Trace]:
        """Return the model, which must be kept alive as long as its trace is in use, and the trace."""


@dataclass(frozen=True)
class EvaluationContext:
    """A page state, with its model, trace and settings computed once.

    Attributes:
        runs: the source of traces.
        open_state: a raw state -> the page state, with its text tokenized.
        state: the raw state, by the URL's names.
        derived: contexts that `replace` returned, by their changes.
    """

    runs: TraceSource
    open_state: StateOpener
    state: Mapping[str, Any]
    derived: dict[Any, "EvaluationContext"] = field(default_factory=dict, repr=False)

    @cached_property
    def page_state(self) -> PageState:
        return self.open_state(self.state)

    @cached_property
    def model_and_trace(self) -> tuple[Any, Trace]:
        """The model, which must be kept alive as long as its trace is in use, and the trace."""
        return self.runs.model_and_trace(self.page_state.run)

    @property
    def trace(self) -> Trace:
        return self.model_and_trace[1]

    @cached_property
    def selection(self) -> Selection:
        return self.page_state.selection.clamp_to_trace(self.trace)

    @cached_property
    def settings(self) -> GenerationSettings:
        return GenerationSettings.parse(self.state)

    @property
    def run(self) -> Run:
        return self.page_state.run

    def replace(self, change: Mapping[str, Any]) -> "EvaluationContext":
        """Return the context with other values of some state fields; another text is evaluated at its last token."""
        if not change:
            return self
        key = tuple(sorted((name, str(value)) for name, value in change.items()))
        if key not in self.derived:
            self.derived[key] = self._replace(change)
        return self.derived[key]

    def _replace(self, change: Mapping[str, Any]) -> "EvaluationContext":
        if set(change) <= {*selection_fields(), *SETTINGS_FIELDS}:
            changed = EvaluationContext(self.runs, self.open_state, {**self.state, **change})
            selection_change = {name: value for name, value in change.items() if name in selection_fields()}
            page_state = replace(self.page_state, selection=self.page_state.selection.replace(**selection_change))
            vars(changed).update(page_state=page_state, model_and_trace=self.model_and_trace)
            return changed
        outdated = ("prompt", "generated", "query", "key", "branches", "began", "dropped") if "text" in change else ()
        state = {name: value for name, value in self.state.items() if name not in outdated}
        return EvaluationContext(self.runs, self.open_state, state | dict(change))
