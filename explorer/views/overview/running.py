"""The explained logit as a running sum along the depth of the model, at the places that its parts have on
the map of a wide page."""

import html
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from explorer.analysis.attribution import is_put_in
from explorer.analysis.overview import Overview
from explorer.architecture import shifts
from explorer.explain.notation import full, number
from explorer.language import _
from explorer.state.selection import Selection
from explorer.tracing.trace import Trace
from explorer.views import graph_objects as go
from explorer.views.overview.wide import WIDTH, Wide
from explorer.views.style import ATTENTION, EMBEDDING, FEED_FORWARD, NORM, RESIDUAL, figure

CLICK = ("view", "layer")  # what a click on a bar selects


class Step(NamedTuple):
    """What is added to the sum; `chosen` is what a click on it selects."""

    x: float
    value: float
    color: str
    name: str
    chosen: dict


def running_sum(trace: Trace, selection: Selection, found: Overview, score: str, alt: str) -> go.Figure:
    """A bar from what the sum is before each part to what it is after it, and in the end one of the whole.

    Args:
        score: name of the logit that is explained.
        alt: what is seen, in a sentence.
    """
    plan, layers = Wide(trace.config), range(trace.config.num_layers)
    end = (plan.after("lm_head") + plan.after("lm_head_end")) / 2
    x, values, colors, names, chosen = zip(*steps(trace, plan, found), strict=True)
    after = np.cumsum(values)
    before = after - values
    told = [
        _("{part} adds {value}<br>{first} → {last}", part=name, value=full(value), first=full(first), last=full(last))
        for name, value, first, last in zip(names, values, before, after, strict=True)
    ]
    whole = _(
        "sum {total}<br>{score} was {logit}",
        total=full(after[-1]),
        score=html.escape(score, quote=False),
        logit=full(found.parts.logit),
    )
    clicks = [selection.as_dict() | change for change in (*chosen, {"view": "prediction"})]
    bars = go.Bar(
        x=[*x, end],
        y=[*values, after[-1]],
        base=[*before, 0.0],
        width=min(18, 0.2 * plan.block),
        marker={"color": [*colors, RESIDUAL]},
        text=[*told, whole],
        textposition="none",
        customdata=[tuple(click[field] for field in CLICK) for click in clicks],
        hovertemplate="%{text}<extra></extra>",
    )
    ends = [i for i, color in enumerate(colors) if color == FEED_FORWARD][:-1] if plan.roomy else []
    sums = go.Scatter(
        x=[*((x[i] + x[i + 1]) / 2 for i in ends), end],
        y=[*after[ends], after[-1]],
        text=[number(value) for value in (*after[ends], after[-1])],
        mode="text",
        textposition="top center",
        textfont={"size": 11},
        hoverinfo="skip",
        cliponaxis=False,
    )
    joints = [
        {"type": "line", "x0": left, "x1": right, "y0": y, "y1": y, "line": {"color": RESIDUAL, "width": 1}}
        for (left, right), y in zip(pairwise([*x, end]), after, strict=True)
    ]
    return figure(
        [bars, sums],
        alt=alt,
        shapes=[{**joint, "layer": "below"} for joint in joints],
        showlegend=False,
        margin={"l": 0, "r": 0},  # as wide as the map, so that each bar is below its part
        xaxis={
            "automargin": "height",
            "range": [0, WIDTH],
            "fixedrange": True,
            "showgrid": False,
            "tickvals": [float(np.mean(plan.token)), *(plan.at(layer, 0.5) for layer in layers), end],
            "ticktext": [_("embedding"), *(plan.title(layer) for layer in layers), _("logit")],
        },
        yaxis={"automargin": False, "fixedrange": True, "showgrid": False, "showticklabels": False},
    )


def steps(trace: Trace, plan: Wide, found: Overview) -> Iterator[Step]:
    """The parts of the logit in the order of the data's way."""
    parts = found.parts
    yield Step(float(np.mean(plan.token)), parts.token, EMBEDDING, _("the token’s embedding"), {"view": "tokens"})
    if "position_embed" in trace:
        yield Step(plan.position_added, parts.positions, EMBEDDING, _("its position"), {"view": "positions"})
    for layer, (attention, feed_forward) in enumerate(found.adds):
        x, view = plan.sum(layer, "attn"), {"view": "attention", "layer": layer}
        yield Step(x, attention, ATTENTION, _("attention of layer {layer}", layer=layer), view)
        x, view = plan.sum(layer, "ffn"), {"view": "feed_forward", "layer": layer}
        yield Step(x, feed_forward, FEED_FORWARD, _("feed-forward of layer {layer}", layer=layer), view)
    if shifts.has_shifts(trace.config):
        yield Step(plan.after("final_norm"), parts.shift, NORM, shifts.words(trace.config), {"view": "residual"})
    if is_put_in(trace):
        told = _("what the changes of the run put in")
        yield Step(plan.after("final_norm"), parts.changes, RESIDUAL, told, {"view": "experiments"})
