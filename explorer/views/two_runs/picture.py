"""What a panel shows of two runs: the one, the other, or the difference."""

from dataclasses import dataclass
from typing import Any

from explorer.language import _, look_up
from explorer.state.selection import Selection
from explorer.tracing.comparison import Comparison
from explorer.tracing.jobs import Job
from explorer.tracing.trace import Trace
from explorer.views.two_runs.difference import Incomparable, difference
from explorer.views.two_runs.grid import grid_difference
from explorer.views.two_runs.pair import Pair
from explorer.views.two_runs.scale import on_one_scale
from explorer.views.view import Panel, SmallMultiples

Look = tuple[Trace, Selection]  # a run, and where it is looked at
FIGURES = Pair(on_one_scale, difference)
GRIDS = Pair(lambda picture, other: picture, grid_difference)  # their colours are the same whatever they show


@dataclass(frozen=True)
class Instead:
    """In the place of a picture: why there is none.

    Attributes:
        job: what it waits for; None where there will be none.
    """

    words: str
    job: Job | None = None


def picture_of_two(panel: Panel, first: Look | None, second: Look | None, comparison: Comparison, shown: str) -> Any:
    """A panel's picture of the first run ("a"), of the second ("b"), or of their "difference"; both runs' are on one
    scale. Where there is none a sentence says why; None where neither has one.

    Args:
        first, second: None of a run that the panel does not apply to.
    """
    if first is None and second is None:
        return None
    if (second if shown == "b" else first) is None or (shown == "difference" and second is None):
        return Instead(_("B has nothing of the kind.") if second is None else _("A has nothing of the kind."))
    if shown == "difference" and (why := panel.alone(first[1])):
        return Instead(why)
    pictures = [look and panel.draw(*look) for look in (first, second)]
    pair = panel.pair or (GRIDS if any(isinstance(each, SmallMultiples) for each in pictures) else FIGURES)
    if shown == "difference":
        try:
            return pair.difference(*pictures, comparison, look_up(panel.title))
        except Incomparable as incomparable:
            return Instead(str(incomparable))
    picture, other = reversed(pictures) if shown == "b" else pictures
    return picture if other is None else pair.on_one_scale(picture, other)
