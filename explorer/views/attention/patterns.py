"""Heatmaps and bars of attention patterns."""

from collections.abc import Sequence

import numpy as np

from explorer.analysis.attention import PATTERNS, displayed_pattern
from explorer.explain.notation import format_number, quote_token
from explorer.tracing.trace import Trace
from explorer.translations import _, translate
from explorer.views import graph_objects as go
from explorer.views.style import SELECTED, figure, positions, token_axis, window_around
from explorer.views.view import SmallMultiples


def all_head_patterns(trace: Trace) -> SmallMultiples:
    """Return the patterns of every head of every layer."""
    values = trace.layers("blocks.*.attn.pattern")  # (L, H, T, T)
    layers, heads = values.shape[:2]
    alt = _("Attention patterns of {heads} heads in each of {layers} layers; choose one.", heads=heads, layers=layers)
    return SmallMultiples(values, alt)


def pattern(
    trace: Trace,
    layer: int,
    head: int,
    query: int | None = None,
    key: int | None = None,
    kind: str = "weight",
    window: int = 0,
    chosen_heads: Sequence[tuple[int, int]] = (),
) -> go.Figure:
    """Draw one of `PATTERNS`: row = query, column = key; the chosen cell framed.

    Colours of weights run from 0 to 1, those of value-weighted attention from 0 to its maximum. `window` tokens
    around the cell are visible at first, all where 0.

    Args:
        chosen_heads: (layer, head) of the heads that the kinds "chosen_mean" and "chosen_max" aggregate.
    """
    values = displayed_pattern(trace, layer, head, kind, chosen_heads)  # (T, T)
    labels = positions(trace.tokens)
    queries, keys = (window_around(position or 0, window, len(trace)) for position in (query, key))
    measure = _("weight × length") if kind == "moved" else _("weight")
    if kind in ("layer_mean", "layer_max"):
        whose = _("layer {layer}", layer=layer)
    else:
        heads = (chosen_heads if kind in ("chosen_mean", "chosen_max") else ()) or ((layer, head),)
        whose = ", ".join(_("layer {layer} head {head}", layer=i, head=j) for i, j in heads)
    fig = figure(
        go.Heatmap(
            x=labels,
            y=labels,
            z=np.where(np.tri(len(trace), dtype=bool), values, np.nan),
            zmin=0,
            zmax=float(values.max()) or 1.0 if kind == "moved" else 1,
            autocolorscale=True,
            hovertemplate=_("query %{{y}} → key %{{x}}<br>{measure} %{{z:.3f}}<extra></extra>", measure=measure),
            hoverongaps=False,
            xgap=0.5 if len(keys) <= 48 else 0,
            ygap=0.5 if len(keys) <= 48 else 0,
            colorbar={"title": {"text": measure, "side": "right"}},
        ),
        alt=_(
            "Attention pattern of {whose}, {tokens} queries by {tokens} keys: {kind}.",
            whose=whose,
            tokens=len(trace),
            kind=translate(PATTERNS[kind]),
        ),
        xaxis={
            **token_axis(trace.tokens, _("key (looked at)"), max_labels=24, visible=keys),
            "tickangle": -60,
            "range": [keys[0] - 0.5, keys[-1] + 0.5],
        },
        yaxis={
            **token_axis(trace.tokens, _("query (looks back)"), visible=queries),
            "range": [queries[-1] + 0.5, queries[0] - 0.5],
        },
    )
    if query is not None:
        fig.add_hrect(query - 0.5, query + 0.5, line={"color": SELECTED, "width": 1})
    if key is not None:
        fig.add_shape(
            type="rect",
            **{"x0": key - 0.5, "x1": key + 0.5, "y0": query - 0.5, "y1": query + 0.5},
            line={"color": SELECTED, "width": 3},
        )
    return fig


def query_weight_bars(trace: Trace, layer: int, head: int, query: int, key: int | None = None) -> go.Figure:
    """Draw one query's weights as bars over its keys; they sum to 1 unless an intervention changes them."""
    weights = trace[f"blocks.{layer}.attn.pattern"][head, query, : query + 1]
    strongest, finite = int(weights.argmax()), np.nan_to_num(weights)
    tokens = trace.tokens[: query + 1]
    labels = positions(tokens)
    hover = _("key %{hovertext}<br>weight %{y:.3f}<extra></extra>")
    bars = [go.Bar(x=labels, y=weights, hovertext=labels, hovertemplate=hover)]
    if key is not None:
        selected_label = [labels[key]]
        bars.append(
            go.Bar(
                x=selected_label,
                y=[weights[key]],
                hovertext=selected_label,
                hovertemplate=hover,
                marker={"color": SELECTED},
            )
        )
    return figure(
        bars,
        alt=_(
            "Attention of {token} at position {position}: most, {weight}, to {key} at {strongest}.",
            token=quote_token(trace.tokens[query]),
            position=query,
            weight=format_number(weights[strongest]),
            key=quote_token(tokens[strongest]),
            strongest=strongest,
        ),
        xaxis={**token_axis(tokens, _("key")), "tickangle": -60},
        yaxis={"range": [min(0, finite.min()), max(1, finite.max())], "title": {"text": _("weight")}},
        bargap=0.15,
        barmode="overlay",
        showlegend=False,
    )
