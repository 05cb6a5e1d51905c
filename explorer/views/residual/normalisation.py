"""The residual view's look at a layer's two norms: what they divide by, what they make of a token, and their gains."""

import numpy as np
import plotly.graph_objects as go

from explorer.analysis.residual import SUBLAYERS, NormReading, norm_reading
from explorer.explain.notation import number, quoted
from explorer.tracing.trace import Trace
from explorer.views.style import NORM, RESIDUAL, SELECTED, figure, positions, token_axis

DASHES = {"attn": "solid", "ffn": "dot"}


def norm_scales(trace: Trace, layer: int, query: int) -> go.Figure:
    """What each norm of a layer divides every token by, and of LayerNorm the mean that it takes off before."""
    layernorm = trace.config.norm == "layernorm"
    places = positions(trace.tokens)
    lines, found = [], {}
    for sublayer in SUBLAYERS:
        found[sublayer] = reading = norm_reading(trace, layer, sublayer)
        shown = [(f"{sublayer}_norm: {'√(var + ε)' if layernorm else 'RMS'}", reading.scales, NORM)]
        if layernorm:
            shown.append((f"{sublayer}_norm: mean", reading.means, RESIDUAL))
        for name, values, color in shown:
            lines.append(
                go.Scatter(
                    x=places,
                    y=values,
                    name=name,
                    mode="lines+markers" if len(trace) <= 48 else "lines",
                    line={"color": color, "dash": DASHES[sublayer]},
                    marker={"size": 5},
                    hovertext=places,
                    hovertemplate=f"token %{{hovertext}}<br>{name} %{{y:.4g}}<extra></extra>",
                )
            )
    divisor = "standard deviation" if layernorm else "root mean square"
    fig = figure(
        lines,
        alt=(
            f"The {divisor} that layer {layer}'s norms divide tokens by: at {quoted(trace.tokens[query])} "
            + " and ".join(f"{number(found[name].scales[query])} for {name}_norm" for name in SUBLAYERS)
            + "."
        ),
        xaxis={**token_axis(trace.tokens, "token", most=24), "tickangle": -60},
        yaxis={
            "title": {"text": "divided by" + " (grey: the mean,<br>taken off before)" * layernorm},
            "rangemode": "tozero",
        },
        hovermode="x",
    )
    fig.add_vline(query, line={"color": SELECTED, "width": 1})
    return fig


def gains(trace: Trace, layer: int) -> go.Figure:
    """Each norm's gains, largest first."""
    lines = []
    for sublayer in SUBLAYERS:
        values = trace.weights[f"blocks.{layer}.{sublayer}_norm.weight"]
        order = np.argsort(-values, kind="stable")
        lines.append(
            go.Scatter(
                y=values[order],
                customdata=order,
                name=f"{sublayer}_norm",
                mode="lines",
                line={"color": NORM, "dash": DASHES[sublayer]},
                hovertemplate=f"{sublayer}_norm, dimension %{{customdata}}<br>gain %{{y:.4g}}<extra></extra>",
            )
        )
    return figure(
        lines,
        alt=f"Gains of layer {layer}'s norms over {trace.config.d_model} dimensions: "
        + ", ".join(f"{line.name} from {number(min(line.y))} to {number(max(line.y))}" for line in lines)
        + ".",
        xaxis={"title": {"text": "dimensions, largest gain first"}, "showgrid": False},
        yaxis={"title": {"text": "gain"}, "rangemode": "tozero"},
    )


def before_and_after(trace: Trace, layer: int, query: int) -> go.Figure:
    """One token's vector before and after either norm of a layer, dimension by dimension; one scale for all."""
    readings = [norm_reading(trace, layer, sublayer) for sublayer in SUBLAYERS]
    titles = [f"{reading.before.split('.')[-1]},<br>{reading.name.split('.')[-1]}" for reading in readings]
    traces = []
    for row, (sublayer, reading) in enumerate(zip(SUBLAYERS, readings, strict=True), start=1):
        for when, tap, color in (("before", reading.before, RESIDUAL), ("after", reading.name, NORM)):
            traces.append(
                go.Bar(
                    x=np.arange(trace.config.d_model),
                    y=trace[tap][query],
                    name=f"{when} the norm",
                    yaxis=f"y{row}",
                    marker={"color": color, "line": {"width": 0}, "opacity": 0.6 if when == "before" else 1},
                    hovertemplate=f"dimension %{{x}}<br>{when} {sublayer}_norm: %{{y:.4g}}<extra></extra>",
                    showlegend=row == 1,
                )
            )
    return figure(
        traces,
        alt=f"{trace.config.d_model} numbers of {quoted(trace.tokens[query])} before and after the norms of layer "
        f"{layer}: length {described(trace, readings[0], query)} at attn_norm, "
        f"{described(trace, readings[1], query)} at ffn_norm.",
        xaxis={"title": {"text": "dimension"}, "showgrid": False, "anchor": "y2"},
        yaxis={"title": {"text": titles[0]}, "domain": [0.54, 1]},
        yaxis2={"title": {"text": titles[1]}, "domain": [0, 0.46], "matches": "y"},
        barmode="overlay",
        bargap=0,
    )


def described(trace: Trace, reading: NormReading, query: int) -> str:
    """The token's length before and after, as in "2.5 to 13.9"."""
    before, after = (np.linalg.norm(trace[tap][query].astype(np.float64)) for tap in (reading.before, reading.name))
    return f"{number(before)} to {number(after)}"
