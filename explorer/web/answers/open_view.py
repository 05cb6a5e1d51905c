"""A view of a run, looked at in one place."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from explorer.explain.point import Point
from explorer.language import _, look_up
from explorer.state.errors import NoSuchPoint
from explorer.state.page_state import PageState
from explorer.state.selection import Selection
from explorer.tracing.runs import Runs
from explorer.tracing.trace import Trace
from explorer.views import VIEW_NAMED
from explorer.views.checks import Mark
from explorer.views.choices import Choice, choices
from explorer.views.view import Panel, View
from explorer.views.what_if import WhatIf, offered


@dataclass(frozen=True)
class OpenView:
    """What a view shows of a run at a selection that exists in it; nothing is drawn before it is asked for.

    Where the view does not apply to the model its words say why, and its panels are empty.

    Attributes:
        lm: the model that ran, so that it is there as long as something is drawn: the trace does not keep it.
    """

    view: View
    trace: Trace
    selection: Selection
    lm: Any = field(default=None, repr=False)

    @property
    def applies(self) -> bool:
        return self.view.applies_to(self.trace)

    @property
    def words(self) -> str:
        return look_up(self.view.words) if self.applies else self.view.otherwise(self.trace.config)

    @property
    def formula(self) -> str:
        return self.view.formula(self.trace, self.selection) if self.applies else ""

    @property
    def in_full(self) -> tuple[str, dict[str, Any]] | None:
        """Where the full page goes further than a step of the simple one."""
        return self.view.in_full(self.trace, self.selection) if self.view.in_full and self.applies else None

    @property
    def choices(self) -> list[Choice]:
        return choices(self.view.controls, self.trace, self.selection) if self.applies else []

    @property
    def what_ifs(self) -> list[tuple[WhatIf, float]]:
        return offered(self.view.what_ifs, self.trace, self.selection)

    def panels(self, newly: bool) -> Sequence[Panel]:
        """All panels of a view that is `newly` shown, else those that follow the selection."""
        return [panel for panel in self.view.panels if newly or not panel.once]

    def has(self, panel: Panel) -> bool:
        return self.applies and panel.applies_to(self.trace)

    def draw(self, panel: Panel) -> Any:
        """The panel's picture; None where it does not apply to the model."""
        return panel.draw(self.trace, self.selection) if self.has(panel) else None

    def mark(self, panel: Panel) -> Mark | None:
        """What vouches for the panel's numbers."""
        return panel.mark(self.trace, self.selection) if panel.mark and self.has(panel) else None

    def inspect(self, panel_name: str, point: Point) -> str:
        """How the number at a point of a panel comes about, as lines of text; "" where there is none.

        Raises:
            NoSuchPoint: the picture has no such point.
        """
        layer, head, config = point.index("layer"), point.index("head"), self.trace.config
        if (layer or 0) >= config.num_layers or (head or 0) >= config.num_heads:
            raise NoSuchPoint(_("the model has no layer {layer} head {head}", layer=layer, head=head))
        panels = [panel for panel in self.view.panels if panel.name == panel_name and panel.inspect and self.has(panel)]
        found = [panel.inspect(self.trace, self.selection, point) for panel in panels]
        several = (told if isinstance(told, tuple) else (told,) for told in found)
        return "\n".join(line for each in several for one in each if one for line in one.lines())


def open_view_of(runs: Runs, asked: PageState) -> OpenView:
    """The tab that is asked for, of its run."""
    lm, trace = runs.held(asked.run)
    return OpenView(VIEW_NAMED[asked.selection.view], trace, asked.selection.within(trace), lm)
