"""The residual view's look at a layer's two norms: what they divide by, what they make of a token, and their gains."""

import numpy as np

from explorer.analysis.norms import kinds
from explorer.analysis.residual import NormReading, norm_readings
from explorer.architecture.stream import norms_of
from explorer.explain.notation import listed, number, quoted
from explorer.language import N_, _, look_up
from explorer.tracing.trace import Trace
from explorer.views import graph_objects as go
from explorer.views.style import NORM, RESIDUAL, SELECTED, figure, positions, token_axis

DASHES = ("solid", "dot", "dash", "dashdot")  # of a layer's norms, in their order

ALT = {
    "rmsnorm": N_("The root mean square that layer {layer}'s norms divide tokens by: at {token} {divisors}."),
    "layernorm": N_("The standard deviation that layer {layer}'s norms divide tokens by: at {token} {divisors}."),
    "none": N_("What layer {layer}'s norms, of which the run changed a kind, divide tokens by: at {token} {divisors}."),
}
NAMES = {"rmsnorm": "RMS", "layernorm": "√(var + ε)", "none": "1"}
DIVIDED_BY = {
    "none": N_("divided by"),
    "rmsnorm": N_("divided by"),
    "layernorm": N_("divided by (grey: the mean,<br>taken off before)"),
}
WHEN = {"before": N_("before the norm"), "after": N_("after the norm")}
HOVER = {
    "before": N_("dimension %{{x}}<br>before {norm}: %{{y:.4g}}<extra></extra>"),
    "after": N_("dimension %{{x}}<br>after {norm}: %{{y:.4g}}<extra></extra>"),
}


def lines_of_norms(trace: Trace, layer: int) -> list[tuple[str, bool]]:
    """Of each line the norm that it is of, and whether it is the mean that LayerNorm takes off, not its divisor."""
    norms = ((norm, kinds(trace, norm, np.arange(len(trace)))) for norm in norms_of(trace.config, layer))
    return [(norm, is_mean) for norm, of in norms for is_mean in (False, True)[: 1 + ("layernorm" in of)]]


def norm_scales(trace: Trace, layer: int, query: int) -> go.Figure:
    """What each norm of a layer divides every token by, and of LayerNorm the mean that it takes off before."""
    places, lines = positions(trace.tokens), []
    readings = {reading.name: reading for reading in norm_readings(trace, layer)}
    dashes = dict(zip(readings, DASHES, strict=False))
    met = {kind for reading in readings.values() for kind in reading.kinds}
    alike = met.pop() if len(met) == 1 else "none"
    divisors = (
        _("{divisor} for {norm}", divisor=number(reading.scales[query]), norm=short(reading.name))
        for reading in readings.values()
    )
    for of, is_mean in lines_of_norms(trace, layer):
        reading, norm = readings[of], short(of)
        divisor = " / ".join(name for kind, name in NAMES.items() if kind in reading.kinds)
        name = _("{norm}: mean", norm=norm) if is_mean else f"{norm}: {divisor}"
        lines.append(
            go.Scatter(
                x=places,
                y=reading.means if is_mean else reading.scales,
                name=name,
                mode="lines+markers" if len(trace) <= 48 else "lines",
                line={"color": RESIDUAL if is_mean else NORM, "dash": dashes[of]},
                marker={"size": 5},
                hovertext=places,
                hovertemplate=_("token %{{hovertext}}<br>{name} %{{y:.4g}}<extra></extra>", name=name),
            )
        )
    fig = figure(
        lines,
        alt=look_up(ALT[alike], layer=layer, token=quoted(trace.tokens[query]), divisors=listed(divisors)),
        xaxis={**token_axis(trace.tokens, _("token"), most=24), "tickangle": -60},
        yaxis={"title": {"text": look_up(DIVIDED_BY[alike])}, "rangemode": "tozero"},
        hovermode="x",
    )
    fig.add_vline(query, line={"color": SELECTED, "width": 1})
    return fig


def gains(trace: Trace, layer: int) -> go.Figure:
    """Each norm's gains, largest first."""
    lines = []
    for dash, norm in zip(DASHES, norms_of(trace.config, layer), strict=False):
        values = trace.weights[f"{norm}.weight"]
        order = np.argsort(-values, kind="stable")
        lines.append(
            go.Scatter(
                y=values[order],
                customdata=order,
                name=short(norm),
                mode="lines",
                line={"color": NORM, "dash": dash},
                hovertemplate=_(
                    "{norm}, dimension %{{customdata}}<br>gain %{{y:.4g}}<extra></extra>", norm=short(norm)
                ),
            )
        )
    ranges = (
        _("{norm} from {least} to {most}", norm=line["name"], least=number(min(line["y"])), most=number(max(line["y"])))
        for line in lines
    )
    return figure(
        lines,
        alt=_(
            "Gains of layer {layer}'s norms over {dimensions} dimensions: {ranges}.",
            layer=layer,
            dimensions=trace.config.d_model,
            ranges=", ".join(ranges),
        ),
        xaxis={"title": {"text": _("dimensions, largest gain first")}, "showgrid": False},
        yaxis={"title": {"text": _("gain")}, "rangemode": "tozero"},
    )


def before_and_after(trace: Trace, layer: int, query: int) -> go.Figure:
    """One token's vector before and after each norm of a layer, dimension by dimension; one scale for all."""
    readings = norm_readings(trace, layer)
    titles = [f"{reading.before.split('.')[-1]},<br>{reading.name.split('.')[-1]}" for reading in readings]
    traces = []
    axes = [f"y{i + 1}" if i else "y" for i in range(len(readings))]
    for axis, reading in zip(axes, readings, strict=True):
        for when, tap, color in (("before", reading.before, RESIDUAL), ("after", reading.name, NORM)):
            traces.append(
                go.Bar(
                    x=np.arange(trace.config.d_model),
                    y=trace[tap][query],
                    name=look_up(WHEN[when]),
                    yaxis=axis,
                    marker={"color": color, "line": {"width": 0}, "opacity": 0.6 if when == "before" else 1},
                    hovertemplate=look_up(HOVER[when], norm=short(reading.name)),
                    showlegend=axis == "y",
                )
            )
    changes = (
        _("{change} at {norm}", change=described(trace, reading, query), norm=short(reading.name))
        for reading in readings
    )
    return figure(
        traces,
        alt=_(
            "{count} numbers of {token} before and after the norms of layer {layer}: length {lengths}.",
            count=trace.config.d_model,
            token=quoted(trace.tokens[query]),
            layer=layer,
            lengths=listed(changes),
        ),
        xaxis={"title": {"text": _("dimension")}, "showgrid": False, "anchor": axes[-1]},
        **{
            f"yaxis{axis[1:]}": {"title": {"text": title}, "domain": span} | ({"matches": "y"} if axis[1:] else {})
            for axis, title, span in zip(axes, titles, stacked(len(axes)), strict=True)
        },
        barmode="overlay",
        bargap=0,
    )


def stacked(count: int, gap: float = 0.08) -> list[list[float]]:
    """The shares of the height that so many axes have, from the top down."""
    each = (1 - gap * (count - 1)) / count
    return [[(each + gap) * (count - 1 - i), (each + gap) * (count - 1 - i) + each] for i in range(count)]


def short(norm: str) -> str:
    """A norm's name within its layer."""
    return norm.rpartition(".")[2]


def described(trace: Trace, reading: NormReading, query: int) -> str:
    """The token's length before and after, as in "2.5 to 13.9"."""
    before, after = (np.linalg.norm(trace[tap][query].astype(np.float64)) for tap in (reading.before, reading.name))
    return _("{before} to {after}", before=number(before), after=number(after))
