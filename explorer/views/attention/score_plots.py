"""Detail figures of the attention view: every head's score, and one query's scores and weights."""

import numpy as np

from explorer.analysis.attention import query_attention_stages, score_by_dimension
from explorer.analysis.head_scores import HEAD_SCORES, ChanceHeadScores, chance_head_scores, head_scores
from explorer.architecture.formulas import score_divisor_formula, score_divisor_in_numbers, softcap_formula
from explorer.explain.notation import format_number, quote_token
from explorer.tracing.trace import Trace
from explorer.translations import _, ngettext, translate
from explorer.views import graph_objects as go
from explorer.views.head_scores import NO_REPEATED_TOKEN, chance_hover, uniform_score_text
from explorer.views.labels import masked_keys_text
from explorer.views.plots import score_term_bars
from explorer.views.style import MONO, SELECTED, figure, frame_head, numbered_axis, positions

MAX_STAGE_KEYS = 12  # keys whose numbers are written out


def head_score_map(trace: Trace, name: str, hide_first: bool, layer: int, head: int) -> go.Figure:
    """Draw one of `HEAD_SCORES` for every head: row = layer, column = head; the chosen head framed.

    Scores that do not exceed chance on these tokens are in brackets.
    """
    scores = head_scores(trace, name, hide_first)  # (L, H)
    baseline = chance_head_scores(trace, name, hide_first)
    has_chance = baseline is not None
    exceeds = baseline.is_exceeded(scores) if has_chance else None
    score_name = translate(HEAD_SCORES[name].label)
    fig = figure(
        go.Heatmap(
            z=scores,
            zmin=0,
            zmax=1,
            autocolorscale=True,
            text=np.where(exceeds, np.char.mod("%.2f", scores), np.char.mod("(%.2f)", scores)) if has_chance else None,
            texttemplate="%{text}" if has_chance and scores.shape[1] <= 12 else None,
            hovertext=chance_hover(baseline, exceeds) if has_chance else None,
            hovertemplate=_("layer %{y} head %{x}<br>score %{z:.3f}<br>%{hovertext}<extra></extra>"),
            xgap=1,
            ygap=1,
            colorbar={"title": {"text": _("head score"), "side": "right"}},
        ),
        alt=_(
            "The {score} score of {heads} heads, {least} to {most}: how much each {does}. Attention spread evenly "
            "would have {even}; {exceeding} heads score more than chance would give.",
            score=score_name,
            heads=scores.size,
            least=format_number(scores.min()),
            most=format_number(scores.max()),
            does=translate(HEAD_SCORES[name].description),
            even=uniform_score_text(baseline),
            exceeding=exceeds.sum(),
        )
        if has_chance
        else _("No {score} score: {why}.", score=score_name, why=translate(NO_REPEATED_TOKEN)),
        xaxis={"title": {"text": head_axis_title(baseline)}, "dtick": 1, "showgrid": False},
        yaxis={"title": {"text": _("layer")}, "dtick": 1, "showgrid": False, "autorange": "reversed"},
    )
    frame_head(fig, layer, head)
    if not has_chance:
        fig.add_annotation(text=translate(NO_REPEATED_TOKEN), xref="paper", yref="paper", x=0.5, y=0.5, showarrow=False)
    return fig


def head_axis_title(baseline: ChanceHeadScores | None) -> str:
    """Return the title of the axis of heads, with the score that uniform attention would have."""
    if baseline is None:
        return _("head")
    title = ngettext(
        "head<br>attention spread evenly would<br>have {even} here ({count} query counts,<br>the first token’s never: "
        "it sees itself alone)",
        "head<br>attention spread evenly would<br>have {even} here ({count} queries count,<br>the first token’s "
        "never: it sees itself alone)",
        baseline.queries,
        even=uniform_score_text(baseline),
    )
    return title if baseline.quantiles is None else _("{said};<br>in brackets: no more than by chance", said=title)


def attention_stages(trace: Trace, layer: int, head: int, query: int, key: int) -> go.Figure:
    """Draw the chosen query's numbers from dot products to weights: a row for each stage, a column for each key.

    Colours compare within a row. With many keys, those around the chosen one are drawn.
    """
    steps = query_attention_stages(trace, layer, head, query)
    start = max(0, min(key - MAX_STAGE_KEYS // 2, len(trace) - MAX_STAGE_KEYS))
    keys = range(start, min(len(trace), start + MAX_STAGE_KEYS))
    key_slice = slice(keys.start, keys.stop)
    masked, cap = np.where(steps.allowed, steps.capped, -np.inf), trace.config.score_cap
    softcap_row = {_("capped = {cap}", cap=softcap_formula("score", cap)): steps.capped} if cap else {}
    rows = {
        "q·k": steps.dots,
        _("score = q·k / {divisor}", divisor=score_divisor_in_numbers(trace.config)): steps.scores,
        **softcap_row,
        masked_keys_text(trace.config, layer): masked,
        _("weight = softmax"): steps.weights,
        _("length of Wₒ v"): steps.output_norms,
        _("moved = weight × length"): steps.weights * steps.output_norms,
    }
    values = np.stack([row[key_slice] for row in rows.values()])  # (6 or 7, n)
    finite = np.where(np.isfinite(values), values, np.nan)
    largest = np.array([np.abs(row[np.isfinite(row)]).max(initial=0.0) or 1.0 for row in rows.values()])[:, None]
    fig = figure(
        go.Heatmap(
            x=list(keys),
            y=list(rows),
            z=finite / largest,
            zmin=-1,
            zmax=1,
            autocolorscale=True,
            showscale=False,
            text=[["−∞" if v == -np.inf else format_number(v) for v in row] for row in values],
            texttemplate="%{text}",
            textfont={"family": MONO, "size": 11},
            hovertext=[positions(trace.tokens)[start : keys.stop]] * len(rows),
            hovertemplate=_("%{y}<br>key %{hovertext}: %{text}<extra></extra>"),
            xgap=1,
            ygap=1,
        ),
        alt=_(
            "From products to weights: {query} gives {key} a score of {score} and a weight of {weight}.",
            query=quote_token(trace.tokens[query]),
            key=quote_token(trace.tokens[key]),
            score=format_number(steps.scores[key]),
            weight=format_number(steps.weights[key]),
        ),
        xaxis=numbered_axis(trace.tokens, key_axis_title(steps.weights, keys), keys),
        yaxis={"autorange": "reversed", "showgrid": False},
    )
    fig.add_shape(
        type="rect", x0=key - 0.5, x1=key + 0.5, y0=-0.5, y1=len(rows) - 0.5, line={"color": SELECTED, "width": 2}
    )
    return fig


def key_axis_title(weights: np.ndarray, keys: range) -> str:
    """Return the title of the axis of keys, with the share of attention to keys that are not drawn."""
    num_hidden = len(weights) - len(keys)
    if not num_hidden:
        return _("key")
    return ngettext(
        "key ({first} to {last} of {total}; the {count} other has {elsewhere} of the weight)",
        "key ({first} to {last} of {total}; the {count} others have {elsewhere} of the weight together)",
        num_hidden,
        first=keys.start,
        last=keys[-1],
        total=len(weights),
        elsewhere=format_number(np.delete(weights, keys).sum(dtype=np.float64)),
    )


def score_by_dimension_bars(trace: Trace, layer: int, head: int, query: int, key: int) -> go.Figure:
    """Draw qᵢ kᵢ / √d as a bar for each dimension; they add up to the score of the chosen cell."""
    terms = score_by_dimension(trace, layer, head, query, key)
    score = trace[f"blocks.{layer}.attn.scores"][head, query, key]
    return score_term_bars(
        terms,
        score,
        hover=_("dimension %{x}<br>adds %{y:.4f}<extra></extra>"),
        alt=_(
            "{count} products of q and k that add up to the score {score}.",
            count=len(terms),
            score=format_number(score),
        ),
        title={
            "text": _(
                "dimension i of q and k, which adds qᵢ kᵢ / {divisor}", divisor=score_divisor_formula(trace.config)
            )
        },
    )
