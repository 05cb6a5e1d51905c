"""Reasons why some panels have no difference of two runs."""

from collections.abc import Callable

from explorer.state.selection import Selection
from explorer.translations import N_, translate

LISTS = N_("Each run has a list of its own here: look at A and B in turn.")
COURSE = N_(
    "A running sum has a course of its own in each run: look at A and B in turn, or at each part’s difference in the "
    "tab Prediction."
)
PLANE = N_("Each run’s vectors are drawn in a plane of their own: look at A and B in turn.")
BINS = N_("Each run’s values are counted between bounds of their own: look at A and B in turn.")
ROWS = N_("Each row has a scale of its own in each run: look at A and B in turn, or at the pattern’s difference.")
LINES = N_("Lines have no difference: look at A and B in turn, or at the difference of the pattern.")
CURVES = N_("Each run has curves of its own here: look at A and B in turn, or at the difference of the map below.")
CLOCKS = N_("Hands of clocks have no difference: look at A and B in turn, or at the difference of the angles.")
RANKS = N_("Ranks have no difference on this scale of orders of magnitude: choose another colour.")


def make_no_difference_reason(reason: str) -> Callable[[Selection], str]:
    """Return a `no_difference_reason` for a panel that never has a difference; `reason` is translated on use."""
    return lambda selection: translate(reason)


def no_rank_difference_reason(selection: Selection) -> str:
    """Return why ranks have no difference; "" for other lenses."""
    return translate(RANKS) if selection.option("lens") == "rank" else ""
