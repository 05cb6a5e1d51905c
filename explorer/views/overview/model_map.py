"""The map of the model: its parts as boxes and discs at their places, with this run's numbers."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import plotly.graph_objects as go

from explorer.analysis.overview import Overview
from explorer.state.selection import Selection
from explorer.tracing.trace import Trace
from explorer.views.overview import plan as at
from explorer.views.overview.flow import arrows, flows, lines, rotations, wires
from explorer.views.overview.parts import Part, Parts
from explorer.views.overview.plan import Plan
from explorer.views.overview.words import signed, texts
from explorer.views.style import ATTENTION, EMBEDDING, FEED_FORWARD, NORM, RESIDUAL, SELECTED, figure

BOXES = {
    "token": EMBEDDING,
    "position": EMBEDDING,
    "head": ATTENTION,
    "o_proj": ATTENTION,
    "feed_forward": FEED_FORWARD,
    "lm_head": EMBEDDING,
    "next_token": RESIDUAL,
}
COLOURED = ("head", "feed_forward")  # by what they add to the logit
DISCS = {"norm": NORM, "addition": RESIDUAL, "rotation": EMBEDDING}


def draw(trace: Trace, selection: Selection, found: Overview, score: str, alt: str) -> go.Figure:
    """The map; `score` names the explained logit as plotly text, `alt` says in a sentence what is seen."""
    plan, kinds = Plan(trace.config), in_kinds(Parts(trace, selection, found, score))
    adds = "adds to the lead" if selection.rival else "adds to the logit"
    return figure(
        [
            lines(wires(plan), RESIDUAL),
            lines(rotations(plan), EMBEDDING),
            *(boxes(kinds[kind]) for kind in BOXES if kind in kinds),
            probabilities(kinds["next_token"]),
            arrows(plan),
            *(discs(kinds[kind], kind, color, plan.disc) for kind, color in DISCS.items() if kind in kinds),
            texts(plan, kinds, found, adds),
        ],
        alt=alt,
        shapes=[*flows(plan, found), *frames(plan, selection, kinds["next_token"])],
        coloraxis=contributions(found, adds),
        xaxis={"visible": False, "range": [0, at.WIDTH], "fixedrange": True},
        yaxis={"visible": False, "range": [0, at.HEIGHT], "fixedrange": True},
        barmode="overlay",
        hoverdistance=1,
        margin={"t": 8},
        legend={  # where the map has room: above the list of next tokens
            "orientation": "v",
            "x": at.LM_HEAD[0] / at.WIDTH,
            "xanchor": "left",
            "y": 1,
            "yanchor": "top",
            "itemclick": False,
            "itemdoubleclick": False,
        },
    )


def in_kinds(parts: Iterable[Part]) -> dict[str, list[Part]]:
    kinds = {}
    for part in parts:
        kinds.setdefault(part.kind, []).append(part)
    return kinds


def drawn_kinds(kinds: Mapping[str, Sequence[Part]]) -> list[str | None]:
    """Which kind of parts each line or set of bars of the map is, in their order; None where it is of none."""
    lines_and_bars = [None, None, *(kind for kind in BOXES if kind in kinds), None, None]
    return [*lines_and_bars, *(kind for kind in DISCS if kind in kinds), None]


def contributions(found: Overview, adds: str) -> dict:
    """Settings of the colours of what heads and feed-forwards add to the logit, 0 in the middle."""
    largest = float(max(np.abs(found.parts.heads).max(), np.abs(found.parts.feed_forward).max())) or 1.0
    left, right = at.LM_HEAD[0] / at.WIDTH, at.NEXT_TOKENS[1] / at.WIDTH
    return {
        "cmin": -largest,
        "cmax": largest,
        "autocolorscale": True,
        "colorbar": {
            "orientation": "h",
            "title": {"text": adds, "side": "top", "font": {"size": 11}},
            "x": left,
            "xanchor": "left",
            "len": right - left,
            "y": 0,
            "yanchor": "bottom",
            "thickness": 8,
            "outlinewidth": 0,
            "tickvals": [-largest, 0, largest],
            "ticktext": [signed(-largest), "0", signed(largest)],
            "tickfont": {"size": 11},
        },
    }


def boxes(parts: Sequence[Part]) -> go.Bar:
    """The boxes of one kind, which are bars, as all of a bar can be clicked."""
    kind = parts[0].kind
    color, coloured = BOXES[kind], kind in COLOURED
    left, right = np.array([part.x for part in parts]).T
    low, high = np.array([part.y for part in parts]).T
    faint = f"rgba{(*bytes.fromhex(color[1:]), 0.12)}"
    colours = {"color": [part.value for part in parts], "coloraxis": "coloraxis"} if coloured else {"color": faint}
    return go.Bar(
        x=(left + right) / 2,
        width=right - left,
        base=low,
        y=high - low,
        marker={**colours, "line": {"color": color, "width": 0 if kind == "next_token" else 1.2}},
        text=[part.written if coloured else "" for part in parts],
        textposition="inside",
        insidetextanchor="middle",
        textangle=0,
        constraintext="none",
        textfont={"size": 11},
        customdata=[part.click for part in parts],
        hovertext=[part.told for part in parts],
        hovertemplate="%{hovertext}<extra></extra>",
        showlegend=False,
    )


def discs(parts: Sequence[Part], kind: str, color: str, size: float) -> go.Scatter:
    """The norms, additions or rotations."""
    return go.Scatter(
        x=[part.x for part in parts],
        y=[part.y for part in parts],
        mode="markers",
        marker={
            "symbol": "circle-cross" if kind == "addition" else "circle",
            "size": size,
            "color": color,
            "opacity": 1,
            "line": {"color": "white", "width": 0.075 * size},
        },
        name=kind,
        customdata=[part.click for part in parts],
        text=[part.told for part in parts],
        hovertemplate="%{text}<extra></extra>",
    )


def probabilities(parts: Sequence[Part]) -> go.Scatter:
    """A bar under each listed next token, as long as it is probable."""
    left, right = at.NEXT_TOKENS
    corners = []
    for part in parts:
        low, high, end = part.y[0] + 2, part.y[0] + 5, left + (right - left) * part.value
        corners += [(left, low), (left, high), (end, high), (end, low), (left, low), (None, None)]
    x, y = zip(*corners, strict=True)
    return go.Scatter(x=x, y=y, mode="none", fill="toself", hoverinfo="skip", showlegend=False)


def frames(plan: Plan, selection: Selection, listed: Sequence[Part]) -> Iterator[dict]:
    """Around what is chosen: the head, the explained token and, dotted, its rival."""
    left, right, low, high = plan.head(selection.layer, selection.head)
    yield frame((left, right), (low, high))
    for rank, dash in ((selection.rival, "dot"), (selection.target, "solid")):
        for part in listed:
            if part.click[-1] == rank:
                yield frame(part.x, part.y, dash)


def frame(x: tuple[float, float], y: tuple[float, float], dash: str = "solid") -> dict:
    line = {"color": SELECTED, "width": 2, "dash": dash}
    return {"type": "rect", "x0": x[0], "x1": x[1], "y0": y[0], "y1": y[1], "line": line}
