"""Figures of ablation: the effect of each head and sublayer on a prediction."""

from collections.abc import Sequence

import numpy as np

from explorer.analysis.intervention_effects import ablation_effects
from explorer.analysis.prediction_reasons import Component
from explorer.analysis.residual import sublayer_labels
from explorer.analysis.tolerance import rounding_threshold
from explorer.explain.notation import format_contribution, format_number, quote_token
from explorer.interventions import Intervention
from explorer.tracing.trace import Trace
from explorer.translations import _
from explorer.views import graph_objects as go
from explorer.views.intervention_effects import annotate_empty
from explorer.views.stage_axes import sublayer_axis
from explorer.views.style import ATTENTION, FEED_FORWARD, SELECTED, figure


def head_ablation_map(
    trace: Trace,
    query: int,
    token_id: int,
    layer: int | None = None,
    head: int = 0,
    interventions: Sequence[Intervention] = (),
) -> go.Figure:
    """Draw the effect of ablating each head on a token's log-probability after the query, in bits; row = layer.

    Args:
        interventions: of the run: the ablated heads among them are marked.
    """
    effects = ablation_effects(trace, query, token_id)
    values = effects.heads  # (L, H)
    limit, largest = rounding_threshold(trace.dtype) * max(1.0, -effects.before), float(np.abs(values).max())
    is_negligible, baseline_text = largest <= limit, format_number(2**effects.before)
    largest_index = np.unravel_index(np.abs(values).argmax(), values.shape)
    fig = figure(
        go.Heatmap(
            z=values,
            zmin=-1 if is_negligible else -largest,
            zmax=1 if is_negligible else largest,
            autocolorscale=True,
            text=[[format_contribution(value) for value in row] for row in values],
            customdata=2 ** (effects.before + values),
            texttemplate="%{text}" if values.shape[1] <= 12 else None,
            hovertemplate=_(
                "without layer %{{y}} head %{{x}}<br>%{{text}} bits: probability {before} → %{{customdata:.3g}}"
                "<extra></extra>",
                before=baseline_text,
            ),
            xgap=1,
            ygap=1,
            colorbar={"title": {"text": _("bits, without it"), "side": "right"}},
        ),
        alt=_(
            "Change of the probability of {token} after {query}, {probability}, when each of {heads} heads is silenced "
            "alone: most without layer {layer} head {head}, {bits} bits.",
            token=quote_token(trace.vocabulary[token_id]),
            query=quote_token(trace.tokens[query]),
            probability=baseline_text,
            heads=values.size,
            layer=largest_index[0],
            head=largest_index[1],
            bits=format_contribution(values[largest_index]),
        ),
        xaxis={"title": {"text": _("head")}, "dtick": 1, "showgrid": False},
        yaxis={"title": {"text": _("layer")}, "dtick": 1, "showgrid": False, "autorange": "reversed"},
    )
    if layer is not None:
        corners = {"x0": head - 0.5, "x1": head + 0.5, "y0": layer - 0.5, "y1": layer + 0.5}
        fig.add_shape(type="rect", **corners, line={"color": SELECTED, "width": 3})
    texts = [[str(Component(row, column).ablation) for column in range(values.shape[1])] for row in range(len(values))]
    for intervention in interventions:
        for row, column in zip(*np.nonzero(np.array(texts) == str(intervention)), strict=True):
            corners = {"x0": column - 0.4, "x1": column + 0.4, "y0": row - 0.4, "y1": row + 0.4}
            fig.add_shape(type="rect", **corners, line={"color": SELECTED, "width": 2, "dash": "dot"})
    if is_negligible:
        alike = _(
            "without any head it is as likely, as far as {dtype} can tell ({limit} bits)",
            dtype=trace.dtype,
            limit=format_number(limit),
        )
        annotate_empty(fig, alike)
    return fig.set_click_interventions(texts)


def sublayer_ablation_bars(trace: Trace, query: int, token_id: int) -> go.Figure:
    """Draw the effect of ablating all heads of a layer, or its feed-forward, on a token's log-probability, in bits."""
    effects = ablation_effects(trace, query, token_id)
    values = effects.sublayers.ravel()  # (2 L,)
    names = sublayer_labels(trace.config)
    chance = format_number(2**effects.before)
    largest_index = int(np.abs(values).argmax())
    layers = range(len(effects.sublayers))
    texts = [text for layer in layers for text in (f"blocks.{layer}.attn.z*zero", str(Component(layer).ablation))]
    return figure(
        go.Bar(
            x=np.arange(len(names)),
            y=values,
            customdata=np.arange(len(names)) // 2,
            text=[
                _(
                    "without {part}: {bits} bits<br>probability {before} → {after}",
                    part=name,
                    bits=format_contribution(value),
                    before=chance,
                    after=format_number(2 ** (effects.before + value)),
                )
                for name, value in zip(names, values, strict=True)
            ],
            textposition="none",
            marker={"color": [ATTENTION, FEED_FORWARD] * len(effects.sublayers)},
            hovertemplate="%{text}<extra></extra>",
        ),
        alt=_(
            "Change of the probability of {token} after {query}, {probability}, without each sublayer: most without "
            "{part}, {bits} bits.",
            token=quote_token(trace.vocabulary[token_id]),
            query=quote_token(trace.tokens[query]),
            probability=chance,
            part=names[largest_index],
            bits=format_contribution(values[largest_index]),
        ),
        xaxis={**sublayer_axis(names), "title": {"text": _("without (blue: all heads, orange: feed-forward)")}},
        yaxis={"title": {"text": _("change of log₂ probability, bits")}},
        bargap=0.3,
        hovermode="x",  # a short bar is hard to hit
    ).set_click_interventions(texts)
