"""How a number that is pointed at in an open view comes about."""

from dataclasses import replace

from explorer.explain.point import Point
from explorer.language import _
from explorer.state.errors import NoSuchPoint
from explorer.tracing.comparison import Comparison
from explorer.tracing.jobs import NotYet
from explorer.tracing.models import ModelGone
from explorer.tracing.trace import Trace
from explorer.views.two_runs.difference import Incomparable
from explorer.views.view import Panel
from explorer.web.answers.open_view import OpenView, lacking
from explorer.web.answers.told import of_each, told


def inspect(shown: OpenView, panel_name: str, point: Point) -> str:
    """How the number at a point of a panel comes about, as lines of text; "" where there is none.

    Args:
        point: of the picture that is shown; of a difference it is a point of the first run's.

    Raises:
        NoSuchPoint: the picture has no such point.
    """
    _check(point, shown.trace)
    panels = [panel for panel in shown.view.panels if panel.name == panel_name and panel.inspect and shown.has(panel)]
    if not panels:
        return ""
    (panel,) = panels
    try:
        return _derivation(shown, panel, point)
    except (NotYet, Incomparable):
        return ""
    except ModelGone as gone:
        return lacking(gone)


def _derivation(shown: OpenView, panel: Panel, point: Point) -> str:
    if panel.compares:
        return told(panel.inspect(shown.compared_in(panel), shown.selection, point))
    if not all(shown.fits(panel, trace) for trace, _selection in shown.told):
        return ""
    points = [point] if len(shown.told) == 1 else [point, _partner_of(shown.comparison, panel, point)]
    found = []
    for look, place in zip(shown.told, points, strict=True):
        _check(point, look[0])
        found.append(told(panel.inspect(*look, place)) if place else "")
    return of_each(found)


def _partner_of(comparison: Comparison, panel: Panel, point: Point) -> Point | None:
    """In the second run's picture the point that stands for one of the first's; None where none does."""
    partners, moved = comparison.alignment.partners, {}
    for axis in panel.tokens:
        place = point.index(axis)
        if place is None:
            continue
        if place >= len(partners) or partners[place] is None:
            return None
        moved[axis] = partners[place]
    return replace(point, **moved)


def _check(point: Point, trace: Trace):
    """NoSuchPoint where a model has no such head."""
    layer, head, config = point.index("layer"), point.index("head"), trace.config
    if (layer or 0) >= config.num_layers or (head or 0) >= config.num_heads:
        raise NoSuchPoint(_("the model has no layer {layer} head {head}", layer=layer, head=head))
