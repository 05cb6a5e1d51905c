"""What a picture shows of one run, less what it shows of another."""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from explorer.explain.notation import added, number
from explorer.language import _
from explorer.tracing.comparison import Comparison
from explorer.views import graph_objects as go
from explorer.views.change import say
from explorer.views.style import OF_TOKENS
from explorer.views.two_runs.scale import axis_name, value_of

MOST_WRITTEN = 400  # differences that are written into cells
SETTINGS_OF_VALUES = (
    "range",
    "autorangeoptions",
    "type",
    "dtick",
    "tickvals",
    "ticktext",
    "tickformat",
    "exponentformat",
)


class Incomparable(Exception):
    """Why two pictures have no difference, in a sentence."""


def difference(first: go.Figure, second: go.Figure, comparison: Comparison, title: str) -> go.Figure:
    """A − B: of every value of the first figure, B's value at the same place is taken away; blank where B has none.

    Places are the same where tokens are partners, or else where what stands on the axis is.

    Args:
        title: of the picture.

    Raises:
        Incomparable: they show no values at the same places.
    """
    traces, layout = first.parts
    others, other_layout = second.parts
    if [each["type"] for each in traces] != [each["type"] for each in others]:
        raise Incomparable(_("A and B are drawn in different ways here: look at them in turn."))
    if not comparison.comparable and layout["meta"][OF_TOKENS]:
        raise Incomparable(_("No token of B stands for one of A: look at them in turn, or put two tokens together."))
    found = [_less(one, two, layout, other_layout, comparison) for one, two in zip(traces, others, strict=True)]
    values = np.concatenate([np.ravel(np.asarray(each[value_of(each)], float)) for each in found])
    finite = np.abs(values[np.isfinite(values)])
    if not finite.size:
        raise Incomparable(_("Nothing that is drawn of A has its like in B: look at them in turn."))
    largest = float(finite.max())
    alt = _("A − B of: {title}. The largest difference is {most}.", title=title, most=number(largest))
    if not largest:
        alt = _("A − B of: {title}. There is no difference.", title=title)
    figure = first.remade([_signed(each, largest) for each in found], _layout_of(found, layout, alt))
    if not largest:
        say(figure, _("A and B are the same here."))
    return figure


def _less(one: go.Trace, two: go.Trace, layout: Mapping, other_layout: Mapping, comparison: Comparison) -> go.Trace:
    letter = value_of(one)
    values, others = (np.asarray(each[letter], float) for each in (one, two))
    for axis, places in enumerate({"z": "yx", "y": "x", "x": "y"}[letter]):
        mine = _places(one, places, layout, values.shape[axis])
        theirs = _places(two, places, other_layout, others.shape[axis])
        if places in layout["meta"][OF_TOKENS]:
            back = comparison.alignment.back
            theirs = [back[place] if place < len(back) else None for place in theirs]
        others = _taken(others, _found(mine, theirs), axis)
    return one | {letter: values - others}


def _places(trace: go.Trace, letter: str, layout: Mapping[str, Any], count: int) -> list[Hashable]:
    """What stands where on an axis: positions of tokens, or else the names of ticks, or else numbers."""
    axis = layout.get(axis_name(trace, letter), {})
    shown = trace.get(letter, range(count))
    values = shown.tolist() if isinstance(shown, np.ndarray) else list(shown)
    if letter in layout["meta"][OF_TOKENS]:
        order = {place: i for i, place in enumerate(axis.get("categoryarray", ()))}
        return [order.get(value, value) for value in values]
    ticks = [value.item() if isinstance(value, np.generic) else value for value in axis.get("tickvals", ())]
    names = dict(zip(ticks, axis.get("ticktext", ()), strict=False))
    return [names.get(value, value) for value in values] if set(values) <= set(names) else values


def _found(mine: Sequence[Hashable], theirs: Sequence[Hashable]) -> np.ndarray:
    """Where each of mine is among theirs, -1 where it is not.

    Raises:
        Incomparable: a place stands there more than once.
    """
    if list(mine) == list(theirs):
        return np.arange(len(mine))
    named = [place for place in theirs if place is not None]
    if len(set(named)) < len(named) or len(set(mine)) < len(mine):
        raise Incomparable(_("A and B are drawn in different ways here: look at them in turn."))
    where = {place: i for i, place in enumerate(theirs)}
    return np.array([where.get(place, -1) if place is not None else -1 for place in mine], dtype=int)


def _taken(values: np.ndarray, places: np.ndarray, axis: int) -> np.ndarray:
    if not values.shape[axis]:
        return np.full([len(places) if i == axis else size for i, size in enumerate(values.shape)], np.nan)
    taken = np.take(values, places, axis)
    gaps = places < 0
    return np.where(gaps if axis == taken.ndim - 1 else gaps[:, None], np.nan, taken) if gaps.any() else taken


def _signed(trace: go.Trace, largest: float) -> go.Trace:
    """With a scale of signed values, and words that say what they are."""
    letter = value_of(trace)
    values = trace[letter]
    place = "%{hovertext}" if "hovertext" in trace and trace["type"] != "heatmap" else "%{x}"
    place = "%{x} · %{y}" if letter == "z" else place if letter == "y" else "%{y}"
    new = {"hovertemplate": f"{place}<br>A − B %{{{letter}:+.3g}}<extra></extra>", "texttemplate": None, "text": None}
    if letter == "z":
        bar = {**trace.get("colorbar", {}), "title": {"text": "A − B", "side": "right"}}
        new |= {
            "zmin": -(largest or 1),
            "zmax": largest or 1,
            "autocolorscale": True,
            "colorbar": bar,
            "showscale": True,
        }
        new |= {"hoverongaps": False}
    if trace.get("texttemplate") and values.size <= MOST_WRITTEN:
        new |= {"text": [["" if np.isnan(v) else added(v) for v in row] for row in values], "texttemplate": "%{text}"}
    return trace | new


def _layout_of(traces: Sequence[go.Trace], layout: Mapping[str, Any], alt: str) -> dict[str, Any]:
    """Of a picture of differences: without what only holds for values, such as marks at some of them."""
    new = {**layout, "meta": {**layout["meta"], "alt": alt}, "annotations": []}
    for axis in {axis_name(each, value_of(each)) for each in traces if value_of(each) != "z"}:
        kept = {name: value for name, value in layout.get(axis, {}).items() if name not in SETTINGS_OF_VALUES}
        new[axis] = {**kept, "title": {"text": "A − B"}}
        letter = axis[0]
        new["shapes"] = [shape for shape in new.get("shapes", ()) if _is_beside(shape, letter)]
    return new


def _is_beside(shape: Mapping[str, Any], letter: str) -> bool:
    """Whether a mark goes all along an axis of values, and not to some of them."""
    return shape.get(f"{letter}ref", letter) != letter
