"""RoPE's rotations as clocks: each pair of dimensions is a hand."""

from typing import NamedTuple

import numpy as np

from explorer.analysis.positions import rotated_pairs
from explorer.explain.notation import format_number
from explorer.tracing.trace import Trace
from explorer.translations import N_, _, translate
from explorer.views import graph_objects as go
from explorer.views.style import ATTENTION, FEED_FORWARD, RESIDUAL, figure, label

COLUMNS = 8  # clocks a row
SPACING = 2.5  # between the centres of clocks, in radii


class HandTexts(NamedTuple):
    """Texts about hands before or after rotation, translated on use: legend and hover template."""

    name: str
    hover: str


BEFORE = HandTexts(
    N_("before"), N_("{vector}, pair {pair} before rotation<br>({first}, {second}), turned by {angle} rad")
)
AFTER = HandTexts(N_("after"), N_("{vector}, pair {pair} after rotation<br>({first}, {second}), turned by {angle} rad"))


def rotation_clocks(trace: Trace, layer: int, head: int, query: int, key: int) -> go.Figure:
    """Draw each pair of the query's q and the key's k as an arrow in its own circle, before and after rotation.

    Each vector's arrows are scaled by its own longest pair, so that norms compare within one vector.
    """
    vectors = {
        _("q of {token}", token=label(trace.tokens[query])): (rotated_pairs(trace, "q", layer, head, query), ATTENTION),
        _("k of {token}", token=label(trace.tokens[key])): (rotated_pairs(trace, "k", layer, head, key), FEED_FORWARD),
    }
    num_pairs = trace["rope.angles"].shape[1]
    pair = np.arange(num_pairs)
    centres = SPACING * np.stack([pair % COLUMNS, -(pair // COLUMNS)], axis=1)  # (F, 2)
    turn = np.linspace(0, 2 * np.pi, 49)
    circle = np.stack([np.cos(turn), np.sin(turn)], axis=1)
    traces = [
        stroke_trace([c + circle for c in centres], color=RESIDUAL, width=0.6, hoverinfo="skip", showlegend=False)
    ]
    for name, (pairs, color) in vectors.items():
        max_norm = max(np.hypot(*pairs.before.T).max(), np.hypot(*pairs.after.T).max(), 1e-12)
        for stage, values, width, opacity in ((BEFORE, pairs.before, 1.5, 0.4), (AFTER, pairs.after, 3, 1.0)):
            tips = centres + values / max_norm
            hover = [
                translate(
                    stage.hover,
                    vector=name,
                    pair=i,
                    first=format_number(a),
                    second=format_number(b),
                    angle=format_number(angle),
                )
                for i, ((a, b), angle) in enumerate(zip(values, pairs.angles, strict=True))
            ]
            arrows = [np.stack([c, tip]) for c, tip in zip(centres, tips, strict=True)]
            group = {"legendgroup": f"{name} {stage.name}", "opacity": opacity}
            traces.append(stroke_trace(arrows, color=color, width=width, hoverinfo="skip", showlegend=False, **group))
            traces.append(
                go.Scatter(
                    x=tips[:, 0],
                    y=tips[:, 1],
                    mode="markers",
                    marker={"color": color, "size": 5 if stage is BEFORE else 8},
                    name=f"{name}, {translate(stage.name)}",
                    text=hover,
                    hovertemplate="%{text}<extra></extra>",
                    **group,
                )
            )
    rows = -(-num_pairs // COLUMNS)
    return figure(
        traces,
        alt=_(
            "{pairs} pairs of dimensions of q and k in layer {layer} head {head}, before and after rotation.",
            pairs=num_pairs,
            layer=layer,
            head=head,
        ),
        xaxis={"visible": False, "range": [-1.3, SPACING * (COLUMNS - 1) + 1.3]},
        yaxis={"visible": False, "range": [-SPACING * (rows - 1) - 1.4, 1.6], "scaleanchor": "x"},
        legend={"y": 1.02},
        annotations=[
            {"x": x, "y": y + 1.2, "text": _("pair {pair}", pair=i), "showarrow": False, "font": {"size": 10}}
            for i, (x, y) in enumerate(centres)
        ],
    )


def stroke_trace(strokes: list[np.ndarray], color: str, width: float, **kwargs) -> go.Scatter:
    """Return several strokes, each (n, 2), as one trace."""
    gap = [[np.nan, np.nan]]
    points = np.concatenate([segment for stroke in strokes for segment in (stroke, gap)])
    return go.Scatter(x=points[:, 0], y=points[:, 1], mode="lines", line={"color": color, "width": width}, **kwargs)
