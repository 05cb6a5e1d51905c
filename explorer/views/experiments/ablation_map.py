"""The experiments' maps of what each part does to a prediction: the model without it."""

from collections.abc import Sequence

import numpy as np

from explorer.analysis.ablation import ablation
from explorer.analysis.residual import update_names
from explorer.analysis.rounding import resolution
from explorer.analysis.why import Part
from explorer.explain.notation import added, number, quoted
from explorer.language import _
from explorer.state.interventions import Intervention
from explorer.tracing.trace import Trace
from explorer.views import graph_objects as go
from explorer.views.change import say
from explorer.views.stage_axes import sublayer_axis
from explorer.views.style import ATTENTION, FEED_FORWARD, SELECTED, figure


def heads(
    trace: Trace,
    query: int,
    token_id: int,
    layer: int | None = None,
    head: int = 0,
    edits: Sequence[Intervention] = (),
) -> go.Figure:
    """By how many bits each head, silenced alone, changes the probability of a token after the query; row = layer.

    Args:
        edits: of the run: those heads among them that are silenced are marked.
    """
    found = ablation(trace, query, token_id)
    values = found.heads  # (L, H)
    limit, largest = resolution(trace.dtype) * max(1.0, -found.before), float(np.abs(values).max())
    none, chance = largest <= limit, number(2**found.before)
    most = np.unravel_index(np.abs(values).argmax(), values.shape)
    fig = figure(
        go.Heatmap(
            z=values,
            zmin=-1 if none else -largest,
            zmax=1 if none else largest,
            autocolorscale=True,
            text=[[added(value) for value in row] for row in values],
            customdata=2 ** (found.before + values),
            texttemplate="%{text}" if values.shape[1] <= 12 else None,
            hovertemplate=_(
                "without layer %{{y}} head %{{x}}<br>%{{text}} bits: probability {before} → %{{customdata:.3g}}"
                "<extra></extra>",
                before=chance,
            ),
            xgap=1,
            ygap=1,
            colorbar={"title": {"text": _("bits, without it"), "side": "right"}},
        ),
        alt=_(
            "Change of the probability of {token} after {query}, {probability}, when each of {heads} heads is silenced "
            "alone: most without layer {layer} head {head}, {bits} bits.",
            token=quoted(trace.vocabulary[token_id]),
            query=quoted(trace.tokens[query]),
            probability=chance,
            heads=values.size,
            layer=most[0],
            head=most[1],
            bits=added(values[most]),
        ),
        xaxis={"title": {"text": _("head")}, "dtick": 1, "showgrid": False},
        yaxis={"title": {"text": _("layer")}, "dtick": 1, "showgrid": False, "autorange": "reversed"},
    )
    if layer is not None:
        corners = {"x0": head - 0.5, "x1": head + 0.5, "y0": layer - 0.5, "y1": layer + 0.5}
        fig.add_shape(type="rect", **corners, line={"color": SELECTED, "width": 3})
    texts = [[str(Part(row, column).silenced) for column in range(values.shape[1])] for row in range(len(values))]
    for edit in edits:
        for row, column in zip(*np.nonzero(np.array(texts) == str(edit)), strict=True):
            corners = {"x0": column - 0.4, "x1": column + 0.4, "y0": row - 0.4, "y1": row + 0.4}
            fig.add_shape(type="rect", **corners, line={"color": SELECTED, "width": 2, "dash": "dot"})
    if none:
        alike = _(
            "without any head it is as likely, as far as {dtype} can tell ({limit} bits)",
            dtype=trace.dtype,
            limit=number(limit),
        )
        say(fig, alike)
    return fig.changes(texts)


def sublayers(trace: Trace, query: int, token_id: int) -> go.Figure:
    """The same without all heads of a layer, or without its feed-forward."""
    found = ablation(trace, query, token_id)
    values = found.sublayers.ravel()  # (2 L,)
    names = update_names(trace.config)
    chance = number(2**found.before)
    most = int(np.abs(values).argmax())
    layers = range(len(found.sublayers))
    texts = [text for layer in layers for text in (f"blocks.{layer}.attn.z*zero", str(Part(layer).silenced))]
    return figure(
        go.Bar(
            x=np.arange(len(names)),
            y=values,
            customdata=np.arange(len(names)) // 2,
            text=[
                _(
                    "without {part}: {bits} bits<br>probability {before} → {after}",
                    part=name,
                    bits=added(value),
                    before=chance,
                    after=number(2 ** (found.before + value)),
                )
                for name, value in zip(names, values, strict=True)
            ],
            textposition="none",
            marker={"color": [ATTENTION, FEED_FORWARD] * len(found.sublayers)},
            hovertemplate="%{text}<extra></extra>",
        ),
        alt=_(
            "Change of the probability of {token} after {query}, {probability}, without each sublayer: most without "
            "{part}, {bits} bits.",
            token=quoted(trace.vocabulary[token_id]),
            query=quoted(trace.tokens[query]),
            probability=chance,
            part=names[most],
            bits=added(values[most]),
        ),
        xaxis={**sublayer_axis(names), "title": {"text": _("without (blue: all heads, orange: feed-forward)")}},
        yaxis={"title": {"text": _("change of log₂ probability, bits")}},
        bargap=0.3,
        hovermode="x",  # a short bar is hard to hit
    ).changes(texts)
