"""Figures of the memory that the KV cache takes and of the computation that it saves."""

import numpy as np

from explorer.analysis.kv_cache import megabytes_stored, positions_computed
from explorer.tracing.trace import Trace
from explorer.translations import _
from explorer.views import graph_objects as go
from explorer.views.style import ATTENTION, RESIDUAL, SELECTED, figure
from model.parameter_and_flop_counts import kv_cache_bytes_per_token


def cache_size(trace: Trace, query: int) -> go.Figure:
    """Draw the cache's bytes by number of positions; with shared kv heads also the bytes without sharing."""
    config = trace.config
    filled = np.arange(1, config.context_length + 1)
    position_bytes = kv_cache_bytes_per_token(config)
    lines = [(_("as it is"), True, ATTENTION, "solid")]
    if config.kv_heads < config.num_heads:
        lines.append((_("if no heads shared"), False, RESIDUAL, "dot"))
    fig = figure(
        [
            go.Scatter(
                x=filled,
                y=megabytes_stored(config, filled, shared),
                name=name,
                mode="lines",
                line={"color": color, "dash": dash},
                hovertemplate=_("%{x} positions<br>%{y:.4g} MB<extra></extra>"),
            )
            for name, shared, color, dash in lines
        ],
        alt=_(
            "The cache grows by {each:,} bytes a position: {now:,} bytes after this step, {most:,} at the end of the "
            "context of {context}.",
            each=position_bytes,
            now=(query + 1) * position_bytes,
            most=config.context_length * position_bytes,
            context=config.context_length,
        ),
        xaxis={"title": {"text": _("positions stored")}, "showgrid": False},
        yaxis={"title": {"text": _("MB in the cache")}, "rangemode": "tozero"},
        showlegend=len(lines) > 1,
    )
    fig.add_vline(query + 1, line={"color": SELECTED, "width": 1.5})
    return fig


def positions_computed_lines(trace: Trace, query: int) -> go.Figure:
    """Draw the number of positions computed up to each step, with a cache and without."""
    cached, uncached = positions_computed(len(trace))
    fig = figure(
        [
            go.Scatter(
                x=cached,
                y=values,
                name=name,
                mode="lines+markers" if len(trace) == 1 else "lines",
                line={"color": color},
                hovertemplate=_("{cache}: %{{y:,}} positions computed in %{{x}} steps<extra></extra>", cache=name),
            )
            for name, values, color in ((_("with the cache"), cached, ATTENTION), (_("without"), uncached, RESIDUAL))
        ],
        alt=_(
            "By step {step}, {cached:,} positions were computed with the cache; without it {uncached:,} would have "
            "been.",
            step=query + 1,
            cached=cached[query],
            uncached=uncached[query],
        ),
        xaxis={"title": {"text": _("step (a token each)")}, "showgrid": False},
        yaxis={"title": {"text": _("positions computed so far")}, "rangemode": "tozero"},
    )
    fig.add_vline(query + 1, line={"color": SELECTED, "width": 1.5})
    return fig
