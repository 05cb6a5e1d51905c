"""The difference of two grids of small pictures."""

import numpy as np

from explorer.language import _
from explorer.tracing.comparison import Comparison
from explorer.tracing.layers import Layers
from explorer.views.two_runs.difference import Incomparable
from explorer.views.view import SmallMultiples


def grid_difference(
    first: SmallMultiples, second: SmallMultiples, comparison: Comparison, title: str
) -> SmallMultiples:
    """A − B, head by head, at tokens that are partners; 0 at others.

    Raises:
        Incomparable: the models have different heads, or no token of one stands for one of the other.
    """
    if first.values.shape[:2] != second.values.shape[:2]:
        raise Incomparable(_("A and B have different numbers of layers or heads: look at them in turn."))
    if not comparison.comparable:
        raise Incomparable(_("No token of B stands for one of A: look at them in turn, or put two tokens together."))

    def difference(layer: int) -> np.ndarray:
        others = comparison.at_partners(comparison.at_partners(second.values[layer], -2), -1)
        return np.nan_to_num(first.values[layer] - others)

    values = Layers(len(first.values), difference, first.values.shape[1:])
    most = max(np.abs(layer).max() for layer in values)
    alt = _("A − B of: {title}. The largest difference is {most:.2f}.", title=title, most=most)
    return SmallMultiples(values, alt, signed=True)
