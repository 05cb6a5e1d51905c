"""What flows between the parts on the map of a model: lines, as thick as vectors are long where they are written."""

from itertools import pairwise

import numpy as np
import plotly.graph_objects as go

from explorer.analysis.overview import Overview
from explorer.views.overview import plan as at
from explorer.views.overview.plan import Plan
from explorer.views.style import ATTENTION, EMBEDDING, FEED_FORWARD, RESIDUAL

Stroke = list[tuple[float, float]]  # the corners of a line


def flows(plan: Plan, found: Overview) -> list[dict]:
    """Shapes of all vectors on the stream and those added to it: one scale of thickness for all."""
    longest = max(found.stream.max(), found.writes.max(), found.token, found.positions) or 1.0

    def flow(color: str, length: float, *corners: tuple[float, float]) -> dict:
        path = "M" + "L".join(f"{x:.2f},{y:.2f}" for x, y in corners)
        line = {"color": color, "width": max(1.0, round(plan.thickest * float(length / longest), 2))}
        return {"type": "path", "path": path, "line": line, "layer": "below"}

    shapes = []
    for layer, (attention, feed_forward) in enumerate(found.writes):
        x = plan.place(layer, "add attn")
        shapes.append(flow(ATTENTION, attention, (x, at.O_PROJ[0]), (x, at.STREAM)))
        x = plan.place(layer, "add ffn")
        shapes.append(flow(FEED_FORWARD, feed_forward, (x, at.FEED_FORWARD[1]), (x, at.STREAM)))
    start = at.TOKEN[1]
    if found.positions:
        x, y = at.POSITION_ADDED, sum(at.POSITION) / 2
        shapes.append(flow(EMBEDDING, found.positions, (start, y), (x, y), (x, at.STREAM)))
        shapes.append(flow(EMBEDDING, found.token, (start, at.STREAM), (x, at.STREAM)))
        start = x
    ends = [start, *plan.changes(), at.LM_HEAD[0] if plan.post else at.FINAL_NORM]
    for length, (left, right) in zip(found.stream, pairwise(ends), strict=True):
        shapes.append(flow(RESIDUAL, length, (left, at.STREAM), (right, at.STREAM)))
    return shapes


def wires(plan: Plan) -> list[Stroke]:
    """Where vectors are read, and how they pass through a sublayer."""
    strokes = [[(at.LM_HEAD[1], at.STREAM), (at.NEXT_TOKENS[0], at.STREAM)]]
    if not plan.post:
        strokes.append([(at.FINAL_NORM, at.STREAM), (at.LM_HEAD[0], at.STREAM)])
    for layer in range(plan.config.num_layers):
        for name, start, end in (
            ("read attn", at.STREAM, at.HEADS[0]),
            ("add attn", at.HEADS[0], at.O_PROJ[1]),
            ("read ffn", at.STREAM, at.FEED_FORWARD[1]),
        ):
            x = plan.place(layer, name)
            strokes.append([(x, start), (x, end)])
    return strokes


def rotations(plan: Plan) -> list[Stroke]:
    """How the angles of the positions reach every layer's attention; none in a model that does not rotate."""
    if plan.config.position != "rope":
        return []
    middles = [plan.at(layer, 0.5) for layer in range(plan.config.num_layers)]
    along = [(at.LEFT + 2, at.ROTATION), (middles[-1], at.ROTATION)]
    return [along, *([(x, at.ROTATION), (x, at.HEADS[1])] for x in middles)]


def arrows(plan: Plan) -> go.Scatter:
    """Heads of the arrows, which say where the lines lead."""
    layers = range(plan.config.num_layers)
    right = [(x - 4, at.STREAM) for x in (at.LM_HEAD[0], at.NEXT_TOKENS[0])]
    up = [(plan.place(layer, "read attn"), at.HEADS[0] - 4) for layer in layers]
    down = [(plan.place(layer, "read ffn"), at.FEED_FORWARD[1] + 4) for layer in layers]
    down += [(plan.place(layer, "add attn"), at.O_PROJ[1] + 4) for layer in layers]
    if plan.config.position == "rope":
        down += [(plan.at(layer, 0.5), at.HEADS[1] + 4) for layer in layers]
    x, y = np.array(right + up + down).T
    return go.Scatter(
        x=x,
        y=y,
        mode="markers",
        marker={
            "symbol": ["triangle-right"] * len(right) + ["triangle-up"] * len(up) + ["triangle-down"] * len(down),
            "size": min(7, plan.disc),
            "color": RESIDUAL,
        },
        hoverinfo="skip",
        showlegend=False,
    )


def lines(strokes: list[Stroke], color: str) -> go.Scatter:
    """Thin lines as one trace."""
    corners = [corner for stroke in strokes for corner in (*stroke, (None, None))]
    x, y = zip(*corners, strict=True) if corners else ((), ())
    return go.Scatter(x=x, y=y, mode="lines", line={"color": color, "width": 1.2}, hoverinfo="skip", showlegend=False)
