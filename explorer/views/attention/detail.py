"""The attention view's closer looks: every head's score, and one query's way to its weights."""

import numpy as np

from explorer.analysis.attention import score_by_dimension, stages
from explorer.analysis.chance import Chance, chance
from explorer.analysis.heads import HEAD_SCORES, SCORE_NAMES, head_scores
from explorer.architecture.attention import divisor, divisor_in_numbers
from explorer.architecture.caps import written
from explorer.explain.notation import number, quoted
from explorer.language import _, look_up, ngettext
from explorer.tracing.trace import Trace
from explorer.views import graph_objects as go
from explorer.views.chance_words import WHY_NONE, evenly, told
from explorer.views.labels import masked_keys
from explorer.views.score_parts import score_parts
from explorer.views.style import MONO, SELECTED, figure, numbered_axis, positions

MOST_STAGES = 12  # keys whose numbers are written out


def head_map(trace: Trace, name: str, hide_first: bool, layer: int, head: int) -> go.Figure:
    """One of `HEAD_SCORES` for every head: row = layer, column = head; a frame around the chosen head.

    Scores that are no more than chance would give on these tokens stand in brackets.
    """
    scores = head_scores(trace, name, hide_first)  # (L, H)
    by_chance = chance(trace, name, hide_first)
    counts = by_chance is not None
    exceeds = by_chance.is_exceeded(scores) if counts else None
    called = look_up(SCORE_NAMES[name])
    fig = figure(
        go.Heatmap(
            z=scores,
            zmin=0,
            zmax=1,
            autocolorscale=True,
            text=np.where(exceeds, np.char.mod("%.2f", scores), np.char.mod("(%.2f)", scores)) if counts else None,
            texttemplate="%{text}" if counts and scores.shape[1] <= 12 else None,
            hovertext=told(by_chance, exceeds) if counts else None,
            hovertemplate=_("layer %{y} head %{x}<br>score %{z:.3f}<br>%{hovertext}<extra></extra>"),
            xgap=1,
            ygap=1,
            colorbar={"title": {"text": _("head score"), "side": "right"}},
        ),
        alt=_(
            "The {score} score of {heads} heads, {least} to {most}: how much each {does}. Attention spread evenly "
            "would have {even}; {exceeding} heads score more than chance would give.",
            score=called,
            heads=scores.size,
            least=number(scores.min()),
            most=number(scores.max()),
            does=look_up(HEAD_SCORES[name]),
            even=evenly(by_chance),
            exceeding=exceeds.sum(),
        )
        if counts
        else _("No {score} score: {why}.", score=called, why=look_up(WHY_NONE)),
        xaxis={"title": {"text": yardstick(by_chance)}, "dtick": 1, "showgrid": False},
        yaxis={"title": {"text": _("layer")}, "dtick": 1, "showgrid": False, "autorange": "reversed"},
    )
    corners = {"x0": head - 0.5, "x1": head + 0.5, "y0": layer - 0.5, "y1": layer + 0.5}
    fig.add_shape(type="rect", **corners, line={"color": SELECTED, "width": 3})
    if not counts:
        fig.add_annotation(text=look_up(WHY_NONE), xref="paper", yref="paper", x=0.5, y=0.5, showarrow=False)
    return fig


def yardstick(by_chance: Chance | None) -> str:
    """The axis of heads, and what the scores are to be held against below it."""
    if by_chance is None:
        return _("head")
    said = ngettext(
        "head<br>attention spread evenly would<br>have {even} here ({count} query counts,<br>the first token’s never: "
        "it sees itself alone)",
        "head<br>attention spread evenly would<br>have {even} here ({count} queries count,<br>the first token’s "
        "never: it sees itself alone)",
        by_chance.queries,
        even=evenly(by_chance),
    )
    return said if by_chance.within is None else _("{said};<br>in brackets: no more than by chance", said=said)


def ladder(trace: Trace, layer: int, head: int, query: int, key: int) -> go.Figure:
    """The chosen query's numbers on their way, a row a stage, a column a key; colours compare within a row.

    Of many keys, those around the chosen one.
    """
    steps = stages(trace, layer, head, query)
    start = max(0, min(key - MOST_STAGES // 2, len(trace) - MOST_STAGES))
    shown = range(start, min(len(trace), start + MOST_STAGES))
    part = slice(shown.start, shown.stop)
    masked, cap = np.where(steps.allowed, steps.capped, -np.inf), trace.config.score_cap
    within = {_("capped = {cap}", cap=written("score", cap)): steps.capped} if cap else {}
    rows = {
        "q·k": steps.dots,
        _("score = q·k / {divisor}", divisor=divisor_in_numbers(trace.config)): steps.scores,
        **within,
        masked_keys(trace.config, layer): masked,
        _("weight = softmax"): steps.weights,
        _("length of Wₒ v"): steps.lengths,
        _("moved = weight × length"): steps.weights * steps.lengths,
    }
    values = np.stack([row[part] for row in rows.values()])  # (6 or 7, n)
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
            hovertemplate=_("%{y}<br>key %{hovertext}: %{text}<extra></extra>"),
            xgap=1,
            ygap=1,
        ),
        alt=_(
            "From products to weights: {query} gives {key} a score of {score} and a weight of {weight}.",
            query=quoted(trace.tokens[query]),
            key=quoted(trace.tokens[key]),
            score=number(steps.scores[key]),
            weight=number(steps.weights[key]),
        ),
        xaxis=numbered_axis(trace.tokens, keys_shown(steps.weights, shown), shown),
        yaxis={"autorange": "reversed", "showgrid": False},
    )
    fig.add_shape(
        type="rect", x0=key - 0.5, x1=key + 0.5, y0=-0.5, y1=len(rows) - 0.5, line={"color": SELECTED, "width": 2}
    )
    return fig


def keys_shown(weights: np.ndarray, shown: range) -> str:
    """The axis of keys, and how much of a query's attention goes to those that are not shown."""
    rest = len(weights) - len(shown)
    if not rest:
        return _("key")
    return ngettext(
        "key ({first} to {last} of {total}; the {count} other has {elsewhere} of the weight)",
        "key ({first} to {last} of {total}; the {count} others have {elsewhere} of the weight together)",
        rest,
        first=shown.start,
        last=shown[-1],
        total=len(weights),
        elsewhere=number(np.delete(weights, shown).sum(dtype=np.float64)),
    )


def dimensions(trace: Trace, layer: int, head: int, query: int, key: int) -> go.Figure:
    """qᵢ kᵢ / √d as a bar a dimension; they add up to the score of the chosen cell."""
    parts = score_by_dimension(trace, layer, head, query, key)
    score = trace[f"blocks.{layer}.attn.scores"][head, query, key]
    return score_parts(
        parts,
        score,
        hover=_("dimension %{x}<br>adds %{y:.4f}<extra></extra>"),
        alt=_("{count} products of q and k that add up to the score {score}.", count=len(parts), score=number(score)),
        title={"text": _("dimension i of q and k, which adds qᵢ kᵢ / {divisor}", divisor=divisor(trace.config))},
    )
