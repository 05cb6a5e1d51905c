"""The attention view's closer looks: every head's score, and one query's way to its weights."""

import numpy as np
import plotly.graph_objects as go

from explorer.analysis.attention import score_by_dimension, stages
from explorer.analysis.chance import Chance, chance
from explorer.analysis.heads import HEAD_SCORES, head_scores
from explorer.explain.notation import number, quoted
from explorer.tracing.trace import Trace
from explorer.views.score_parts import score_parts
from explorer.views.style import MONO, SELECTED, figure, label, positions

MOST_STAGES = 12  # keys whose numbers are written out


def head_map(trace: Trace, name: str, hide_first: bool, layer: int, head: int) -> go.Figure:
    """One of `HEAD_SCORES` for every head: row = layer, column = head; a frame around the chosen head.

    Scores that are no more than chance would give on these tokens stand in brackets.
    """
    scores = head_scores(trace, name, hide_first)  # (L, H)
    by_chance = chance(trace, name, hide_first)
    counts = by_chance is not None
    exceeds = by_chance.is_exceeded(scores) if counts else None
    words = name.replace("_", " ")
    fig = figure(
        go.Heatmap(
            z=scores,
            zmin=0,
            zmax=1,
            autocolorscale=True,
            text=np.where(exceeds, np.char.mod("%.2f", scores), np.char.mod("(%.2f)", scores)) if counts else None,
            texttemplate="%{text}" if counts and scores.shape[1] <= 12 else None,
            hovertext=told(by_chance, exceeds) if counts else None,
            hovertemplate="layer %{y} head %{x}<br>score %{z:.3f}<br>%{hovertext}<extra></extra>",
            xgap=1,
            ygap=1,
            colorbar={"title": {"text": "score", "side": "right"}},
        ),
        alt=(
            f"The {words} score of {scores.size} heads, {number(scores.min())} to {number(scores.max())}: "
            f"how much each {HEAD_SCORES[name]}. Attention spread evenly would score {number(by_chance.even)}; "
            f"{exceeds.sum()} heads score more than chance would give."
            if counts
            else f"No {words} score: {WHY_NONE}."
        ),
        xaxis={"title": {"text": f"head{yardstick(by_chance)}"}, "dtick": 1, "showgrid": False},
        yaxis={"title": {"text": "layer"}, "dtick": 1, "showgrid": False, "autorange": "reversed"},
    )
    corners = {"x0": head - 0.5, "x1": head + 0.5, "y0": layer - 0.5, "y1": layer + 0.5}
    fig.add_shape(type="rect", **corners, line={"color": SELECTED, "width": 3})
    if not counts:
        fig.add_annotation(text=WHY_NONE, xref="paper", yref="paper", x=0.5, y=0.5, showarrow=False)
    return fig


WHY_NONE = "no token of this prompt occurs twice"


LEFT_OUT = "the first token’s never: it sees itself alone"


def yardstick(by_chance: Chance | None) -> str:
    """What the scores are to be held against, below the axis."""
    if by_chance is None:
        return ""
    queries = f"{by_chance.queries} quer{'y counts' if by_chance.queries == 1 else 'ies count'}"
    said = f"<br>attention spread evenly would<br>score {number(by_chance.even)} here ({queries},<br>{LEFT_OUT})"
    return said if by_chance.within is None else f"{said};<br>in brackets: no more than by chance"


def told(by_chance: Chance, exceeds: np.ndarray) -> list[list[str]]:
    """What hovering over each head tells of chance."""
    even = f"attention spread evenly would score {number(by_chance.even)}"
    if by_chance.within is None:
        return [[even] * exceeds.shape[1]] * len(exceeds)
    return [
        [
            f"{even};<br>weights as sharp as this head’s, but anywhere,<br>stay within {number(most)} in 19 of 20 "
            f"tries: {'more than chance' if more else 'this may be chance'}"
            for most, more in zip(*row, strict=True)
        ]
        for row in zip(by_chance.within, exceeds, strict=True)
    ]


def ladder(trace: Trace, layer: int, head: int, query: int, key: int) -> go.Figure:
    """The chosen query's numbers on their way, a row a stage, a column a key; colours compare within a row.

    Of many keys, those around the chosen one.
    """
    steps = stages(trace, layer, head, query)
    start = max(0, min(key - MOST_STAGES // 2, len(trace) - MOST_STAGES))
    shown = range(start, min(len(trace), start + MOST_STAGES))
    part = slice(shown.start, shown.stop)
    masked = np.where(steps.allowed, steps.scores, -np.inf)
    rows = {
        "q·k": steps.dots,
        f"score = q·k / √{trace.config.d_head}": steps.scores,
        "masked: no key after the query": masked,
        "weight = softmax": steps.weights,
        "length of Wₒ v": steps.lengths,
        "moved = weight × length": steps.weights * steps.lengths,
    }
    values = np.stack([row[part] for row in rows.values()])  # (6, n)
    finite = np.where(np.isfinite(values), values, np.nan)
    largest = np.array([np.abs(row[np.isfinite(row)]).max(initial=0.0) or 1.0 for row in rows.values()])[:, None]
    fig = figure(
        go.Heatmap(
            x=list(shown),
            y=list(rows),
            z=finite / largest,
            zmin=-1,
            zmax=1,
            autocolorscale=True,
            showscale=False,
            text=[["−∞" if v == -np.inf else number(v) for v in row] for row in values],
            texttemplate="%{text}",
            textfont={"family": MONO, "size": 11},
            hovertext=[positions(trace.tokens)[start : shown.stop]] * len(rows),
            hovertemplate="%{y}<br>key %{hovertext}: %{text}<extra></extra>",
            xgap=1,
            ygap=1,
        ),
        alt=(
            f"From products to weights: {quoted(trace.tokens[query])} gives {quoted(trace.tokens[key])} "
            f"a score of {number(steps.scores[key])} and a weight of {number(steps.weights[key])}."
        ),
        xaxis={
            "tickvals": list(shown),
            "ticktext": [label(trace.tokens[i]) for i in shown],
            "tickfont": {"family": MONO, "size": 11},
            "tickangle": -60,
            "title": {"text": f"key{left_out(steps.weights, shown)}"},
            "showgrid": False,
        },
        yaxis={"autorange": "reversed", "showgrid": False},
    )
    fig.add_shape(type="rect", x0=key - 0.5, x1=key + 0.5, y0=-0.5, y1=5.5, line={"color": SELECTED, "width": 2})
    return fig


def left_out(weights: np.ndarray, shown: range) -> str:
    """How much of a query's attention goes to keys that are not shown, as in "; 16 others have 0.31 of the weight"."""
    rest = len(weights) - len(shown)
    if not rest:
        return ""
    elsewhere = number(np.delete(weights, shown).sum(dtype=np.float64))
    others = f"1 other has {elsewhere} of the weight"
    if rest > 1:
        others = f"{rest} others have {elsewhere} of the weight together"
    return f" ({shown.start} to {shown[-1]} of {len(weights)}; the {others})"


def dimensions(trace: Trace, layer: int, head: int, query: int, key: int) -> go.Figure:
    """qᵢ kᵢ / √d as a bar a dimension; they add up to the score of the chosen cell."""
    parts = score_by_dimension(trace, layer, head, query, key)
    score = trace[f"blocks.{layer}.attn.scores"][head, query, key]
    return score_parts(
        parts,
        score,
        part="dimension",
        alt=f"{len(parts)} products of q and k that add up to the score {number(score)}.",
        title={"text": "dimension i of q and k, which adds qᵢ kᵢ / √d"},
    )
