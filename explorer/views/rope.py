"""RoPE: how positions turn queries and keys."""

import numpy as np
import plotly.graph_objects as go

from explorer.analysis.rope import rotated_pairs, wrapped
from explorer.selection import Selection
from explorer.style import (
    ATTENTION,
    FEED_FORWARD,
    RESIDUAL,
    SELECTED,
    figure,
    label,
    number,
    positions,
    quoted,
    token_axis,
)
from explorer.trace import Trace
from explorer.views.phrases import dimensions_of_pair, shared_head, slowed
from explorer.views.rope_detail import by_distance, by_pair, wavelengths
from explorer.views.view import Panel, View
from model.config import ModelConfig

COLUMNS = 8  # clocks a row
SPACING = 2.5  # between the centres of clocks, in radii


def angles(trace: Trace, query: int | None = None, key: int | None = None) -> go.Figure:
    """Rotation angle by position and pair, wrapped to one turn; hover has the whole angle."""
    radians = trace["rope.angles"]  # (T, F)
    pairs = radians.shape[1]
    fig = figure(
        go.Heatmap(
            y=positions(trace.tokens),
            z=wrapped(radians),
            customdata=radians,
            zmin=-np.pi,
            zmax=np.pi,
            autocolorscale=True,
            hovertemplate="position %{y}, pair %{x}<br>angle %{customdata:.4g} rad<extra></extra>",
            colorbar={
                "title": {"text": "angle within a turn", "side": "right"},
                "tickvals": [-np.pi, 0, np.pi],
                "ticktext": ["−π", "0", "π"],
            },
        ),
        alt=f"Rotation angles of {len(trace)} positions by {pairs} pairs of dimensions, fast pairs left.",
        xaxis={
            "title": {"text": "pair of dimensions (fast → slow)"},
            "showgrid": False,
            "tickangle": 0,
        },
        yaxis={**token_axis(trace.tokens, "position"), "autorange": "reversed"},
    )
    for position, dash in ((query, "solid"), (key, "dot")):
        if position is not None:
            line = {"color": SELECTED, "width": 1.5, "dash": dash}
            fig.add_hrect(position - 0.5, position + 0.5, line=line)
    return fig


def clocks(trace: Trace, layer: int, head: int, query: int, key: int) -> go.Figure:
    """Each pair of the query's q and the key's k as an arrow in its own circle, before and after rotation.

    Arrows are scaled by the longest pair of q or of k, each vector by its own, so that lengths within one vector
    compare.
    """
    vectors = {
        f"q of {label(trace.tokens[query])}": (rotated_pairs(trace, "q", layer, head, query), ATTENTION),
        f"k of {label(trace.tokens[key])}": (rotated_pairs(trace, "k", layer, head, key), FEED_FORWARD),
    }
    num_pairs = trace["rope.angles"].shape[1]
    pair = np.arange(num_pairs)
    centres = SPACING * np.stack([pair % COLUMNS, -(pair // COLUMNS)], axis=1)  # (F, 2)
    around = np.linspace(0, 2 * np.pi, 49)
    circle = np.stack([np.cos(around), np.sin(around)], axis=1)
    traces = [lines([c + circle for c in centres], color=RESIDUAL, width=0.6, hoverinfo="skip", showlegend=False)]
    for name, (pairs, color) in vectors.items():
        longest = max(np.hypot(*pairs.before.T).max(), 1e-12)
        for stage, values, width, opacity in (("before", pairs.before, 1.5, 0.4), ("after", pairs.after, 3, 1.0)):
            tips = centres + values / longest
            hover = [
                f"{name}, pair {i} {stage} rotation<br>({number(a)}, {number(b)}), turned by {number(angle)} rad"
                for i, ((a, b), angle) in enumerate(zip(values, pairs.angles, strict=True))
            ]
            arrows = [np.stack([c, tip]) for c, tip in zip(centres, tips, strict=True)]
            group = {"legendgroup": f"{name} {stage}", "opacity": opacity}
            traces.append(lines(arrows, color=color, width=width, hoverinfo="skip", showlegend=False, **group))
            traces.append(
                go.Scatter(
                    x=tips[:, 0],
                    y=tips[:, 1],
                    mode="markers",
                    marker={"color": color, "size": 5 if stage == "before" else 8},
                    name=f"{name}, {stage}",
                    text=hover,
                    hovertemplate="%{text}<extra></extra>",
                    **group,
                )
            )
    rows = -(-num_pairs // COLUMNS)
    return figure(
        traces,
        alt=f"{num_pairs} pairs of dimensions of q and k in layer {layer} head {head}, before and after rotation.",
        xaxis={"visible": False, "range": [-1.3, SPACING * (COLUMNS - 1) + 1.3]},
        yaxis={"visible": False, "range": [-SPACING * (rows - 1) - 1.4, 1.6], "scaleanchor": "x"},
        legend={"y": 1.02},
        annotations=[
            {"x": x, "y": y + 1.2, "text": f"pair {i}", "showarrow": False, "font": {"size": 10, "color": RESIDUAL}}
            for i, (x, y) in enumerate(centres)
        ],
    )


def lines(strokes: list[np.ndarray], color: str, width: float, **kwargs) -> go.Scatter:
    """Several strokes, each (n, 2), as one trace."""
    gap = [[np.nan, np.nan]]
    points = np.concatenate([part for stroke in strokes for part in (stroke, gap)])
    return go.Scatter(x=points[:, 0], y=points[:, 1], mode="lines", line={"color": color, "width": width}, **kwargs)


def formula(trace: Trace, selection: Selection) -> str:
    d, theta = trace.config.d_head, trace.config.rope_theta
    query, key = selection.query, selection.key
    pairs = rotated_pairs(trace, "q", selection.layer, selection.head, query)
    slow = len(pairs.angles) - 1
    norms = np.linalg.norm(pairs.before), np.linalg.norm(pairs.after)
    shared = shared_head(trace.config, selection.head)
    lines = (
        f"angle(position, pair) = position · θ^(−2·pair/d), θ = {theta:g}, d = {d}; "
        f"pair i: dimensions {dimensions_of_pair(trace.config)}",
        slowed(trace.config),
        f"query {quoted(trace.tokens[query])} ({query}): pair 0 turns by {number(pairs.angles[0])} rad, "
        f"pair {slow} by {number(pairs.angles[slow])} rad; "
        f"its distance to key {quoted(trace.tokens[key])} ({key}) is {query - key}",
        f"k is that of {shared}" if shared else "",
        f"‖q‖ = {number(norms[0])} before, {number(norms[1])} after: turning changes no length   "
        f"recomputed from q and the angles, off by {number(pairs.error)}",
    )
    return "\n".join(filter(None, lines))


def otherwise(config: ModelConfig) -> str:
    added = "is added to each token's own before the first layer"
    see = "choose position_embed under Activations to see them"
    instead = {
        "sinusoidal": f"Instead a vector of waves, different at every position, {added} (sinusoidal positions): {see}.",
        "learned": f"Instead a vector that was learned for its position {added} (learned positions): {see}.",
        "none": "Nothing tells it where a token stands: all it can go by is that each token sees only itself and those "
        "before it (the causal mask).",
    }
    return f"This model turns nothing, so there are no angles to show. {instead.get(config.position, '')}".rstrip()


VIEW = View(
    name="rope",
    title="RoPE",
    words=(
        "The model knows the order of tokens by turning: each pair of dimensions of a query or key is turned like "
        "the hand of a clock, further for later positions, fast in the first pairs and slowly in the last. "
        "Two tokens' match then depends on how far apart they are, not on where they stand; choose tokens to see "
        "their hands move."
    ),
    formula=formula,
    needs=("rope.angles", "blocks.*.attn.q_rot"),
    otherwise=otherwise,
    controls=("layer", "head", "query", "key"),
    panels=(
        Panel(
            name="clocks",
            title="The chosen head's q and k, pair by pair, before (faint) and after rotation",
            draw=lambda trace, s: clocks(trace, s.layer, s.head, s.query, s.key),
            height=320,
            min_width=640,
        ),
        Panel(
            name="pairs",
            title="What each pair adds to the score of the chosen query and key",
            draw=lambda trace, s: by_pair(trace, s.layer, s.head, s.query, s.key),
            height=280,
            width="half",
        ),
        Panel(
            name="distances",
            title="The same q and k at other distances",
            draw=lambda trace, s: by_distance(trace, s.layer, s.head, s.query, s.key),
            height=280,
            width="half",
        ),
        Panel(
            name="angles",
            title="Angle by position and pair",
            draw=lambda trace, s: angles(trace, s.query, s.key),
            selects={"y": "query"},
            height=420,
            width="half",
        ),
        Panel(
            name="wavelengths",
            title="How far a pair goes for a whole turn",
            draw=lambda trace, s: wavelengths(trace),
            once=True,
            height=420,
            width="half",
        ),
    ),
)
