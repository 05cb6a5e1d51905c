"""Figures of a layer's norms: their divisors, their inputs and outputs, and their gains."""

import numpy as np

from explorer.analysis.residual import NormStatistics, norm_statistics_in_layer
from explorer.architecture.residual_stream import norms_in_layer
from explorer.explain.captured.norms import norm_kinds
from explorer.explain.notation import format_number, join_names, quote_token
from explorer.tracing.trace import Trace
from explorer.translations import N_, _, translate
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
STAGE_LABELS = {"before": N_("before the norm"), "after": N_("after the norm")}
HOVER = {
    "before": N_("dimension %{{x}}<br>before {norm}: %{{y:.4g}}<extra></extra>"),
    "after": N_("dimension %{{x}}<br>after {norm}: %{{y:.4g}}<extra></extra>"),
}


def divisor_line_specs(trace: Trace, layer: int) -> list[tuple[str, bool]]:
    """Return each line's norm, and whether it is the mean that LayerNorm subtracts instead of its divisor."""
    norms = ((norm, norm_kinds(trace, norm, np.arange(len(trace)))) for norm in norms_in_layer(trace.config, layer))
    return [
        (norm, is_mean) for norm, norm_kinds in norms for is_mean in (False, True)[: 1 + ("layernorm" in norm_kinds)]
    ]


def norm_divisors(trace: Trace, layer: int, query: int) -> go.Figure:
    """Draw each norm's divisor at every token and, for LayerNorm, the mean that it subtracts."""
    labels, lines = positions(trace.tokens), []
    readings = {reading.name: reading for reading in norm_statistics_in_layer(trace, layer)}
    dashes = dict(zip(readings, DASHES, strict=False))
    all_kinds = {kind for reading in readings.values() for kind in reading.kinds}
    shared_kind = all_kinds.pop() if len(all_kinds) == 1 else "none"
    divisors = (
        _("{divisor} for {norm}", divisor=format_number(reading.scales[query]), norm=short_norm_name(reading.name))
        for reading in readings.values()
    )
    for norm_tap, is_mean in divisor_line_specs(trace, layer):
        reading, norm = readings[norm_tap], short_norm_name(norm_tap)
        divisor = " / ".join(name for kind, name in NAMES.items() if kind in reading.kinds)
        name = _("{norm}: mean", norm=norm) if is_mean else f"{norm}: {divisor}"
        lines.append(
            go.Scatter(
                x=labels,
                y=reading.means if is_mean else reading.scales,
                name=name,
                mode="lines+markers" if len(trace) <= 48 else "lines",
                line={"color": RESIDUAL if is_mean else NORM, "dash": dashes[norm_tap]},
                marker={"size": 5},
                hovertext=labels,
                hovertemplate=_("token %{{hovertext}}<br>{name} %{{y:.4g}}<extra></extra>", name=name),
            )
        )
    fig = figure(
        lines,
        alt=translate(
            ALT[shared_kind], layer=layer, token=quote_token(trace.tokens[query]), divisors=join_names(divisors)
        ),
        xaxis={**token_axis(trace.tokens, _("token"), max_labels=24), "tickangle": -60},
        yaxis={"title": {"text": translate(DIVIDED_BY[shared_kind])}, "rangemode": "tozero"},
        hovermode="x",
    )
    fig.add_vline(query, line={"color": SELECTED, "width": 1})
    return fig


def norm_gain_lines(trace: Trace, layer: int) -> go.Figure:
    """Draw each norm's gains in descending order."""
    lines = []
    for dash, norm in zip(DASHES, norms_in_layer(trace.config, layer), strict=False):
        values = trace.weights[f"{norm}.weight"]
        order = np.argsort(-values, kind="stable")
        lines.append(
            go.Scatter(
                y=values[order],
                customdata=order,
                name=short_norm_name(norm),
                mode="lines",
                line={"color": NORM, "dash": dash},
                hovertemplate=_(
                    "{norm}, dimension %{{customdata}}<br>gain %{{y:.4g}}<extra></extra>", norm=short_norm_name(norm)
                ),
            )
        )
    ranges = (
        _(
            "{norm} from {least} to {most}",
            norm=line["name"],
            least=format_number(min(line["y"])),
            most=format_number(max(line["y"])),
        )
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


def norm_input_output(trace: Trace, layer: int, query: int) -> go.Figure:
    """Draw one token's vector before and after each norm of a layer, dimension by dimension, on one scale."""
    readings = norm_statistics_in_layer(trace, layer)
    titles = [f"{reading.before.split('.')[-1]},<br>{reading.name.split('.')[-1]}" for reading in readings]
    traces = []
    axes = [f"y{i + 1}" if i else "y" for i in range(len(readings))]
    for axis, reading in zip(axes, readings, strict=True):
        for when, tap, color in (("before", reading.before, RESIDUAL), ("after", reading.name, NORM)):
            traces.append(
                go.Bar(
                    x=np.arange(trace.config.d_model),
                    y=trace[tap][query],
                    name=translate(STAGE_LABELS[when]),
                    yaxis=axis,
                    marker={"color": color, "line": {"width": 0}, "opacity": 0.6 if when == "before" else 1},
                    hovertemplate=translate(HOVER[when], norm=short_norm_name(reading.name)),
                    showlegend=axis == "y",
                )
            )
    changes = (
        _("{change} at {norm}", change=norm_change_label(trace, reading, query), norm=short_norm_name(reading.name))
        for reading in readings
    )
    return figure(
        traces,
        alt=_(
            "{count} numbers of {token} before and after the norms of layer {layer}: length {lengths}.",
            count=trace.config.d_model,
            token=quote_token(trace.tokens[query]),
            layer=layer,
            lengths=join_names(changes),
        ),
        xaxis={"title": {"text": _("dimension")}, "showgrid": False, "anchor": axes[-1]},
        **{
            f"yaxis{axis[1:]}": {"title": {"text": title}, "domain": span} | ({"matches": "y"} if axis[1:] else {})
            for axis, title, span in zip(axes, titles, stack_domains(len(axes)), strict=True)
        },
        barmode="overlay",
        bargap=0,
    )


def stack_domains(count: int, gap: float = 0.08) -> list[list[float]]:
    """Return the domains of stacked axes as fractions of the height, from the top down."""
    height = (1 - gap * (count - 1)) / count
    return [[(height + gap) * (count - 1 - i), (height + gap) * (count - 1 - i) + height] for i in range(count)]


def short_norm_name(norm: str) -> str:
    """Return a norm's name within its layer."""
    return norm.rpartition(".")[2]


def norm_change_label(trace: Trace, reading: NormStatistics, query: int) -> str:
    """Format the norm of the token's vector before and after, as in "2.5 to 13.9"."""
    before, after = (np.linalg.norm(trace[tap][query].astype(np.float64)) for tap in (reading.before, reading.name))
    return _("{before} to {after}", before=format_number(before), after=format_number(after))
