"""Figures of the components of a logit."""

import numpy as np

from explorer.analysis.direct_logit_attribution import direct_logit_attribution
from explorer.architecture import logits
from explorer.explain.notation import format_contribution, format_number, quote_token
from explorer.tracing.trace import Trace
from explorer.translations import _
from explorer.views import graph_objects as go
from explorer.views.logit_bars import component_bar_data
from explorer.views.style import SELECTED, figure
from explorer.views.target_token import logit_label


def component_bars(
    trace: Trace, query: int, token_id: int, contrast_id: int | None = None, layer: int = 0
) -> go.Figure:
    """Draw each component's contribution to a logit, or to a logit difference, after the query.

    The contributions add up to it.

    Args:
        layer: chosen; clicks on components outside layers keep it.
    """
    contributions = direct_logit_attribution(trace, query, token_id, contrast_id)
    bars = list(component_bar_data(trace, contributions))
    names, values, colours, descriptions, layers = zip(*bars, strict=True)
    largest_index = int(np.argmax(np.abs(values)))
    return figure(
        go.Bar(
            x=np.arange(len(bars)),
            y=values,
            marker={"color": colours},
            text=[
                f"{description}<br>{contribution_phrase(value)}"
                for description, value in zip(descriptions, values, strict=True)
            ],
            textposition="none",
            customdata=[layer if bar_layer is None else bar_layer for bar_layer in layers],
            hovertemplate="%{text}<extra></extra>",
        ),
        alt=_(
            "{count} parts that add up to {logit} after {token}, {value}; the largest: {part}, {adds}.",
            count=len(bars),
            logit=logit_label(trace, token_id, contrast_id),
            token=quote_token(trace.tokens[query]),
            value=format_number(contributions.logit),
            part=descriptions[largest_index],
            adds=contribution_phrase(values[largest_index]),
        ),
        xaxis={
            "tickvals": np.arange(len(bars)),
            "ticktext": names,
            "tickangle": -60,
            "showgrid": False,
            "title": {"text": colour_legend(trace)},
        },
        yaxis={
            "title": {
                "text": _(
                    "adds; sum {total}, off by {error}",
                    total=format_number(contributions.total),
                    error=format_number(contributions.error),
                )
            }
        },
        bargap=0.2,
    )


def colour_legend(trace: Trace) -> str:
    """Describe the colours of the bars."""
    if "position_embed" in trace:
        text = _("green: embedding and position, blue: attention,<br>orange: feed-forward")
    else:
        text = _("green: embedding, blue: attention,<br>orange: feed-forward")
    if not logits.has_logit_constants(trace.config):
        return text
    return _("{colours},<br>purple: {shifts}", colours=text, shifts=logits.logit_constants_short_label(trace.config))


def head_contribution_map(
    trace: Trace, query: int, token_id: int, contrast_id: int | None = None, layer: int | None = None, head: int = 0
) -> go.Figure:
    """Draw each head's contribution to a logit, or to a logit difference, after the query; row = layer."""
    values = direct_logit_attribution(trace, query, token_id, contrast_id).heads  # (L, H)
    largest = float(np.abs(values).max()) or 1.0
    largest_index = np.unravel_index(np.abs(values).argmax(), values.shape)
    fig = figure(
        go.Heatmap(
            z=values,
            zmin=-largest,
            zmax=largest,
            autocolorscale=True,
            text=[[format_contribution(value) for value in row] for row in values],
            texttemplate="%{text}" if values.shape[1] <= 12 else None,
            hovertemplate=_("layer %{y} head %{x}<br>adds %{z:.4f}<extra></extra>"),
            xgap=1,
            ygap=1,
            colorbar={"title": {"text": _("adds"), "side": "right"}},
        ),
        alt=_(
            "What {heads} heads add to {logit} after {token}: most, {adds}, layer {layer} head {head}.",
            heads=values.size,
            logit=logit_label(trace, token_id, contrast_id),
            token=quote_token(trace.tokens[query]),
            adds=contribution_phrase(values[largest_index]),
            layer=largest_index[0],
            head=largest_index[1],
        ),
        xaxis={"title": {"text": _("head")}, "dtick": 1, "showgrid": False},
        yaxis={"title": {"text": _("layer")}, "dtick": 1, "showgrid": False, "autorange": "reversed"},
    )
    if layer is not None:
        corners = {"x0": head - 0.5, "x1": head + 0.5, "y0": layer - 0.5, "y1": layer + 0.5}
        fig.add_shape(type="rect", **corners, line={"color": SELECTED, "width": 3})
    return fig


def contribution_phrase(value: float) -> str:
    """Return a contribution as a phrase: adds or takes."""
    size = format_number(abs(value))
    return _("adds {value}", value=size) if value >= 0 else _("takes {value}", value=size)
