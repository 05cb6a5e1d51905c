"""A panel's figure for two runs: A's, B's, or their difference."""

from dataclasses import dataclass
from typing import Any

from explorer.state.selection import Selection
from explorer.tracing.comparison import Comparison
from explorer.tracing.jobs import Job
from explorer.tracing.trace import Trace
from explorer.translations import _, translate
from explorer.views.two_runs.difference import NoDifferenceError, subtract_figures
from explorer.views.two_runs.renderer import TwoRunRenderer
from explorer.views.two_runs.scale import share_scale
from explorer.views.two_runs.small_multiples_difference import small_multiples_difference
from explorer.views.view import Panel, SmallMultiples

RunAndSelection = tuple[Trace, Selection]  # a run and its selection
FIGURES = TwoRunRenderer(share_scale, subtract_figures)
GRIDS = TwoRunRenderer(lambda picture, other: picture, small_multiples_difference)  # their colour scale is fixed


@dataclass(frozen=True)
class Placeholder:
    """A sentence in place of a figure.

    Attributes:
        message: why there is no figure.
        job: the job that it waits for; None if there will be no figure.
    """

    message: str
    job: Job | None = None


def draw_two_runs(
    panel: Panel,
    first: RunAndSelection | None,
    second: RunAndSelection | None,
    comparison: Comparison,
    visible_run: str,
) -> Any:
    """Draw a panel for the first run ("a"), for the second ("b"), or their "difference".

    Both runs' figures have one scale. A Placeholder says why there is none; None if neither run has one.

    Args:
        first, second: None for a run that the panel does not apply to.
    """
    if first is None and second is None:
        return None
    if (second if visible_run == "b" else first) is None or (visible_run == "difference" and second is None):
        return Placeholder(_("B has nothing of the kind.") if second is None else _("A has nothing of the kind."))
    if visible_run == "difference" and (reason := panel.no_difference_reason(first[1])):
        return Placeholder(reason)
    figures = [run_selection and panel.draw(*run_selection) for run_selection in (first, second)]
    renderer = panel.two_run_renderer or (
        GRIDS if any(isinstance(panel_figure, SmallMultiples) for panel_figure in figures) else FIGURES
    )
    if visible_run == "difference":
        try:
            return renderer.difference(*figures, comparison, translate(panel.title))
        except NoDifferenceError as incomparable:
            return Placeholder(str(incomparable))
    figure, other = reversed(figures) if visible_run == "b" else figures
    return figure if other is None else renderer.share_scale(figure, other)
