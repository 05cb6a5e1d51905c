"""Derivation of a selected number in an open view."""

from dataclasses import replace

from explorer.explain.clicked_point import ClickedPoint
from explorer.state.errors import PointNotFoundError
from explorer.tracing.comparison import Comparison
from explorer.tracing.jobs import ResultNotReadyError
from explorer.tracing.model_registry import ModelUnloadedError
from explorer.tracing.trace import Trace
from explorer.translations import _
from explorer.views.two_runs.difference import NoDifferenceError
from explorer.views.view import Panel
from explorer.web.answers.derivation_text import derivation_text, join_run_texts
from explorer.web.answers.open_view import OpenView, unavailable_message


def point_derivation_text(open_view: OpenView, panel_name: str, point: ClickedPoint) -> str:
    """Return the derivation of the number at a point of a panel as lines of text; "" if there is none.

    Args:
        point: a point of the visible figure; in a difference, a point of the first run's figure.

    Raises:
        PointNotFoundError: the figure has no such point.
    """
    _check_head(point, open_view.trace)
    panels = [
        panel for panel in open_view.view.panels if panel.name == panel_name and panel.inspect and open_view.has(panel)
    ]
    if not panels:
        return ""
    (panel,) = panels
    try:
        return _derivation_text(open_view, panel, point)
    except (ResultNotReadyError, NoDifferenceError):
        return ""
    except ModelUnloadedError as gone:
        return unavailable_message(gone)


def _derivation_text(open_view: OpenView, panel: Panel, point: ClickedPoint) -> str:
    if panel.compared_run:
        return derivation_text(panel.inspect(open_view.panel_comparison(panel), open_view.selection, point))
    if not all(open_view.fits(panel, trace) for trace, _selection in open_view.visible_runs):
        return ""
    points = (
        [point] if len(open_view.visible_runs) == 1 else [point, _aligned_point(open_view.comparison, panel, point)]
    )
    texts = []
    for run_and_selection, run_point in zip(open_view.visible_runs, points, strict=True):
        _check_head(point, run_and_selection[0])
        texts.append(derivation_text(panel.inspect(*run_and_selection, run_point)) if run_point else "")
    return join_run_texts(texts)


def _aligned_point(comparison: Comparison, panel: Panel, point: ClickedPoint) -> ClickedPoint | None:
    """Return the aligned point in the second run's figure; None if there is none."""
    partners, coordinates = comparison.alignment.partners, {}
    for axis in panel.token_coordinates:
        index = point.coordinate_or_none(axis)
        if index is None:
            continue
        if index >= len(partners) or partners[index] is None:
            return None
        coordinates[axis] = partners[index]
    return replace(point, **coordinates)


def _check_head(point: ClickedPoint, trace: Trace):
    """Raise PointNotFoundError if the model has no such layer or head."""
    layer, head, config = point.coordinate_or_none("layer"), point.coordinate_or_none("head"), trace.config
    if (layer or 0) >= config.num_layers or (head or 0) >= config.num_heads:
        raise PointNotFoundError(_("the model has no layer {layer} head {head}", layer=layer, head=head))
