"""The difference of two grids of small images."""

import numpy as np

from explorer.tracing.comparison import Comparison
from explorer.tracing.trace import LazyLayerStack
from explorer.translations import _
from explorer.views.two_runs.difference import NoDifferenceError
from explorer.views.view import SmallMultiples


def small_multiples_difference(
    first: SmallMultiples, second: SmallMultiples, comparison: Comparison, title: str
) -> SmallMultiples:
    """Return A − B, head by head, at aligned tokens; 0 at others.

    Raises:
        NoDifferenceError: the models have different heads, or no tokens are aligned.
    """
    if first.values.shape[:2] != second.values.shape[:2]:
        raise NoDifferenceError(_("A and B have different numbers of layers or heads. View them one at a time."))
    if not comparison.is_comparable:
        raise NoDifferenceError(
            _("No token of B is aligned with one of A. View them one at a time, or align two tokens.")
        )

    def layer_difference(layer: int) -> np.ndarray:
        values_b = comparison.take_aligned(comparison.take_aligned(second.values[layer], -2), -1)
        return np.nan_to_num(first.values[layer] - values_b)

    values = LazyLayerStack(len(first.values), layer_difference, first.values.shape[1:])
    largest = max(np.abs(layer).max() for layer in values)
    alt = _("A − B of: {title}. The largest difference is {most:.2f}.", title=title, most=largest)
    return SmallMultiples(values, alt, signed=True)
