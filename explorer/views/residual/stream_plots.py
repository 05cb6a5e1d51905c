"""Figures of the residual stream and of the norms that read it."""

import numpy as np

from explorer.analysis.residual import (
    NormStatistics,
    find_outlier_dimensions,
    norm_statistics_in_layer,
    residual_norms,
    residual_norms_by_stage,
    residual_stages,
    stage_similarities,
    sublayer_updates,
)
from explorer.architecture.residual_stream import norms_in_layer, norms_on_residual_stream
from explorer.explain.captured.formulas import norm_kinds
from explorer.explain.notation import format_number, join_names, quote_token
from explorer.tracing.trace import Trace
from explorer.translations import N_, _, translate
from explorer.views import graph_objects as go
from explorer.views.figure_template import FigureTemplate, each, extend, text, value
from explorer.views.style import (
    ATTENTION,
    FEED_FORWARD,
    NORM,
    RESIDUAL,
    SELECTED,
    click_layers,
    column_band,
    column_line,
    label,
    position_labels,
    stage_axis,
    sublayer_axis,
    token_axis,
)

MAX_RELATIVE_NORM = 2  # lengths, in multiples of the longest median token's, at which colours end


def stream_norm_map(trace: Trace, query: int | None = None) -> go.Figure:
    """Draw ‖stream‖ of every token (column) at every stage (row); the query framed.

    The colour scale ends at twice the largest median norm, because in some models one token's norm dwarfs all
    others.
    """
    stage_list = residual_stages(trace)
    values = residual_norms_by_stage(trace)  # (S, T)
    max_norm = MAX_RELATIVE_NORM * float(np.median(values, axis=1).max())
    largest_norm = float(values.max())
    measure = _("length ‖x‖₂ (longer ones alike)") if largest_norm > max_norm else _("length ‖x‖₂")
    return LENGTHS_FIGURE.draw(
        labels=position_labels(trace.tokens),
        stages=[stage.name for stage in stage_list],
        lengths=values,
        colour_end=min(max_norm, largest_norm) or 1.0,
        layers=click_layers(stage_list, len(trace)),
        measure=measure,
        num_tokens=len(trace),
        num_stages=len(stage_list),
        least=format_number(values.min()),
        most=format_number(largest_norm),
        token=quote_token(trace.tokens[values[-1].argmax()]),
        tokens=token_axis(trace.tokens),
        depths=stage_axis(stage_list),
        frames=[] if query is None else [column_band(query, width=2)],
    )


LENGTHS_FIGURE = FigureTemplate(
    alt=text(
        N_(
            "Length of the residual stream of {tokens} tokens at {stages} stages, {least} to {most}; in the "
            "end longest at {token}."
        ),
        tokens="num_tokens",
        stages="num_stages",
    ),
    traces=[
        go.Heatmap(
            x=value("labels"),
            y=value("stages"),
            z=value("lengths"),
            zmin=0,
            zmax=value("colour_end"),
            customdata=value("layers"),
            hovertemplate=text(N_("token %{x}, stream at %{y}<br>length %{z:.4g}<extra></extra>")),
            colorbar={"title": {"text": value("measure"), "side": "right"}},
        )
    ],
    layout={
        "xaxis": extend("tokens", title={"text": text(N_("token"))}),
        "yaxis": value("depths"),
        "shapes": value("frames"),
    },
)


def stream_norm_plot(trace: Trace, query: int = 0) -> go.Figure:
    """Draw the norm of the stream after each sublayer, at the query and at the median token, and of each update."""
    norms_by_stage = residual_norms(trace)
    indices = np.arange(len(norms_by_stage.stages))
    measure = _("length ‖x‖₂ before its norm") if norms_on_residual_stream(trace.config) else _("length ‖x‖₂")
    is_first_of_pair = norms_by_stage.stage_indices == np.roll(
        norms_by_stage.stage_indices, -1
    )  # the first of two that are added at once
    bar_offsets = (
        0.2
        * (is_first_of_pair | (norms_by_stage.stage_indices == np.roll(norms_by_stage.stage_indices, 1)))
        * np.where(is_first_of_pair, -1, 1)
    )
    return NORMS_FIGURE.draw(
        indices=indices,
        stages=norms_by_stage.stages,
        median=norms_by_stage.median,
        stream=norms_by_stage.stream[:, query],
        name=label(trace.tokens[query]),
        bars=norms_by_stage.stage_indices + bar_offsets,
        bar_width=0.7 if not bar_offsets.any() else 0.35,
        updates=norms_by_stage.updates[:, query],
        sublayers=norms_by_stage.names,
        colours=[ATTENTION, FEED_FORWARD] * trace.config.num_layers,
        token=quote_token(trace.tokens[query]),
        first=format_number(norms_by_stage.stream[0, query]),
        last=format_number(norms_by_stage.stream[-1, query]),
        axis=sublayer_axis(norms_by_stage.stages),
        measure=measure,
    )


HOVER_LENGTH = "%{text}<br>%{y:.4g}<extra></extra>"
NORMS_FIGURE = FigureTemplate(
    alt=text(N_("Length of the residual stream at {token}: {first} at the embedding, {last} after the last block.")),
    traces=[
        go.Scatter(
            x=value("indices"),
            y=value("median"),
            text=value("stages"),
            name=text(N_("stream, median token")),
            mode="lines",
            line={"color": RESIDUAL, "dash": "dot"},
            hovertemplate=HOVER_LENGTH,
        ),
        go.Scatter(
            x=value("indices"),
            y=value("stream"),
            text=value("stages"),
            name=text(N_("stream at {token}"), token="name"),
            mode="lines+markers",
            line={"color": SELECTED},
            hovertemplate=HOVER_LENGTH,
        ),
        go.Bar(
            x=value("bars"),
            width=value("bar_width"),
            y=value("updates"),
            text=value("sublayers"),
            textposition="none",
            name=text(N_("added by attention (blue), feed-forward (purple)")),
            marker={"color": value("colours")},
            hovertemplate=text(N_("%{text} adds a vector of length %{y:.4g}<extra></extra>")),
            showlegend=False,
        ),
    ],
    layout={
        "xaxis": value("axis"),
        "yaxis": {"title": {"text": value("measure")}, "rangemode": "tozero"},
    },
)


def update_cosine_plot(trace: Trace, query: int = 0) -> go.Figure:
    """Draw the cosine of each sublayer's update with the stream that it is added to."""
    stream_updates = sublayer_updates(trace, query)
    largest_index = int(np.abs(stream_updates.cosines).argmax())
    return DIRECTIONS_FIGURE.draw(
        bars=np.arange(len(stream_updates.names)),
        cosines=stream_updates.cosines,
        layers=np.arange(len(stream_updates.names)) // 2,
        hover=[
            _(
                "{name}: length {length} onto a stream of {before}",
                name=name,
                length=format_number(length),
                before=format_number(before),
            )
            for name, length, before in zip(
                stream_updates.names, stream_updates.norms, stream_updates.before, strict=True
            )
        ],
        colours=[ATTENTION, FEED_FORWARD] * trace.config.num_layers,
        token=quote_token(trace.tokens[query]),
        name=stream_updates.names[largest_index],
        cosine=format_number(stream_updates.cosines[largest_index]),
        axis=sublayer_axis(stream_updates.names),
    )


DIRECTIONS_FIGURE = FigureTemplate(
    alt=text(
        N_("Cosine of each sublayer’s update with the stream at {token}: furthest from 0 is {name} with {cosine}.")
    ),
    traces=[
        go.Bar(
            x=value("bars"),
            y=value("cosines"),
            customdata=value("layers"),
            text=value("hover"),
            textposition="none",
            marker={"color": value("colours")},
            hovertemplate=text(N_("%{text}<br>cosine %{y:.3f}<extra></extra>")),
        )
    ],
    layout={
        "xaxis": value("axis"),
        "yaxis": {"title": {"text": text(N_("cosine (against ← 0 → along)"))}, "range": [-1, 1]},
        "hovermode": "x",  # a short bar is hard to hit
    },
)


def stage_cosine_map(trace: Trace, query: int = 0) -> go.Figure:
    """Draw the cosines between one token's stream at any two stages."""
    labels = residual_stages(trace)
    names = [stage.name for stage in labels]
    cosines = stage_similarities(trace, query)
    axis = stage_axis(labels, max_labels=26)
    return SIMILARITY_FIGURE.draw(
        stages=names,
        cosines=cosines,
        layers=click_layers(labels, len(labels)),
        num_stages=len(labels),
        token=quote_token(trace.tokens[query]),
        cosine=format_number(cosines[0, -1]),
        axis=axis,
    )


SIMILARITY_FIGURE = FigureTemplate(
    alt=text(
        N_("Cosines between {stages} stages of the stream at {token}: {cosine} between the embedding and the last."),
        stages="num_stages",
    ),
    traces=[
        go.Heatmap(
            x=value("stages"),
            y=value("stages"),
            z=value("cosines"),
            zmin=-1,
            zmax=1,
            customdata=value("layers"),
            hovertemplate=text(N_("%{y} and %{x}<br>cosine %{z:.3f}<extra></extra>")),
            colorbar={"title": {"text": text(N_("cosine")), "side": "right"}},
        )
    ],
    layout={"xaxis": extend("axis", autorange=True), "yaxis": value("axis")},
)


def outlier_dimension_plot(trace: Trace) -> go.Figure:
    """Draw the dimensions whose mean magnitude is furthest above the median dimension's, by stage."""
    outlier_values = find_outlier_dimensions(trace)
    stage_list = residual_stages(trace)
    stage, column = np.unravel_index(outlier_values.ratios.argmax(), outlier_values.ratios.shape)
    return OUTLIERS_FIGURE.draw(
        names=[str(dimension) for dimension in outlier_values.dimensions],
        stages=[stage_item.name for stage_item in stage_list],
        ratios=outlier_values.ratios,
        colour_end=float(outlier_values.ratios.max()) or 1.0,
        sizes=[[format_number(size) for size in row] for row in outlier_values.sizes],
        layers=click_layers(stage_list, len(outlier_values.dimensions)),
        count=len(outlier_values.dimensions),
        dimension=outlier_values.dimensions[column],
        times=format_number(outlier_values.ratios[stage, column]),
        stage=stage_list[stage].name,
        axis=stage_axis(stage_list),
    )


OUTLIERS_FIGURE = FigureTemplate(
    alt=text(
        N_(
            "The {count} dimensions that stand out most: dimension {dimension} is {times} times as large as the median "
            "one at {stage}."
        )
    ),
    traces=[
        go.Heatmap(
            x=value("names"),
            y=value("stages"),
            z=value("ratios"),
            zmin=0,
            zmax=value("colour_end"),
            text=value("sizes"),
            customdata=value("layers"),
            hovertemplate=text(
                N_("dimension %{x} at %{y}<br>mean size %{text},<br>%{z:.3g} × the median dimension’s<extra></extra>")
            ),
            colorbar={"title": {"text": text(N_("× the median dimension")), "side": "right"}},
        )
    ],
    layout={
        "xaxis": {"type": "category", "title": {"text": text(N_("dimension (the one that stands out most first)"))}},
        "yaxis": value("axis"),
    },
)


DASHES = ("solid", "dot", "dash", "dashdot")  # of a layer's norms, in their order

ALT = {
    "rmsnorm": N_("The root mean square that layer {layer}’s norms divide tokens by: at {token} {divisors}."),
    "layernorm": N_("The standard deviation that layer {layer}’s norms divide tokens by: at {token} {divisors}."),
    "none": N_("What layer {layer}’s norms, of which the run changed a kind, divide tokens by: at {token} {divisors}."),
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


def norm_divisor_plot(trace: Trace, layer: int, query: int) -> go.Figure:
    """Draw each norm's divisor at every token and, for LayerNorm, the mean that it subtracts."""
    labels, lines = position_labels(trace.tokens), []
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
            {
                "values": reading.means if is_mean else reading.scales,
                "name": name,
                "line": {"color": RESIDUAL if is_mean else NORM, "dash": dashes[norm_tap]},
                "hover": _("token %{{hovertext}}<br>{name} %{{y:.4g}}<extra></extra>", name=name),
            }
        )
    return SCALES_FIGURE.draw(
        labels=labels,
        lines=lines,
        mode="lines+markers" if len(trace) <= MAX_MARKED_TOKENS else "lines",
        alt=translate(
            ALT[shared_kind], layer=layer, token=quote_token(trace.tokens[query]), divisors=join_names(divisors)
        ),
        tokens=token_axis(trace.tokens, max_labels=32),
        title=translate(DIVIDED_BY[shared_kind]),
        chosen=column_line(query),
    )


MAX_MARKED_TOKENS = 48  # of a line with a dot for each
SCALES_FIGURE = FigureTemplate(
    alt=value("alt"),
    traces=[
        each(
            "lines",
            go.Scatter(
                x=value("labels"),
                y=value("values"),
                name=value("name"),
                mode=value("mode"),
                line=value("line"),
                marker={"size": 5},
                hovertext=value("labels"),
                hovertemplate=value("hover"),
            ),
        )
    ],
    layout={
        "xaxis": extend("tokens", title={"text": text(N_("token"))}),
        "yaxis": {"title": {"text": value("title")}, "rangemode": "tozero"},
        "hovermode": "x",
        "shapes": [value("chosen")],
    },
)


def norm_gain_lines(trace: Trace, layer: int) -> go.Figure:
    """Draw each norm's gains in descending order."""
    lines = []
    for dash, norm in zip(DASHES, norms_in_layer(trace.config, layer), strict=False):
        values = trace.weights[f"{norm}.weight"]
        order = np.argsort(-values, kind="stable")
        name = short_norm_name(norm)
        lines.append(
            {
                "gains": values[order],
                "dimensions": order,
                "name": name,
                "line": {"color": NORM, "dash": dash},
                "hover": _("{norm}, dimension %{{customdata}}<br>gain %{{y:.4g}}<extra></extra>", norm=name),
            }
        )
    ranges = (
        _(
            "{norm} from {least} to {most}",
            norm=line["name"],
            least=format_number(min(line["gains"])),
            most=format_number(max(line["gains"])),
        )
        for line in lines
    )
    return GAINS_FIGURE.draw(lines=lines, layer=layer, dimensions=trace.config.d_model, ranges=", ".join(ranges))


GAINS_FIGURE = FigureTemplate(
    alt=text(N_("Gains of layer {layer}’s norms over {dimensions} dimensions: {ranges}.")),
    traces=[
        each(
            "lines",
            go.Scatter(
                y=value("gains"),
                customdata=value("dimensions"),
                name=value("name"),
                mode="lines",
                line=value("line"),
                hovertemplate=value("hover"),
            ),
        )
    ],
    layout={
        "xaxis": {"title": {"text": text(N_("dimensions, largest gain first"))}, "showgrid": False},
        "yaxis": {"title": {"text": text(N_("gain"))}, "rangemode": "tozero"},
    },
)


def norm_input_output_plot(trace: Trace, layer: int, query: int) -> go.Figure:
    """Draw one token's vector before and after each norm of a layer, dimension by dimension, on one scale."""
    readings = norm_statistics_in_layer(trace, layer)
    titles = [f"{reading.before.split('.')[-1]},<br>{reading.name.split('.')[-1]}" for reading in readings]
    traces = []
    axes = [f"y{i + 1}" if i else "y" for i in range(len(readings))]
    for axis, reading in zip(axes, readings, strict=True):
        for when, tap, color in (("before", reading.before, RESIDUAL), ("after", reading.name, NORM)):
            traces.append(
                {
                    "numbers": trace[tap][query],
                    "name": translate(STAGE_LABELS[when]),
                    "axis": axis,
                    "marker": {"color": color, "line": {"width": 0}, "opacity": 0.6 if when == "before" else 1},
                    "hover": translate(HOVER[when], norm=short_norm_name(reading.name)),
                    "is_named": axis == "y",
                }
            )
    changes = (
        _("{change} at {norm}", change=norm_change_label(trace, reading, query), norm=short_norm_name(reading.name))
        for reading in readings
    )
    return NORMALISED_FIGURE.draw(
        bars=traces,
        dimensions=np.arange(trace.config.d_model),
        count=trace.config.d_model,
        token=quote_token(trace.tokens[query]),
        layer=layer,
        lengths=join_names(changes),
        anchor=axes[-1],
        axes={
            f"yaxis{axis[1:]}": {"title": {"text": title}, "domain": span} | ({"matches": "y"} if axis[1:] else {})
            for axis, title, span in zip(axes, titles, stack_domains(len(axes)), strict=True)
        },
    )


NORMALISED_FIGURE = FigureTemplate(
    alt=text(N_("{count} numbers of {token} before and after the norms of layer {layer}: length {lengths}.")),
    traces=[
        each(
            "bars",
            go.Bar(
                x=value("dimensions"),
                y=value("numbers"),
                name=value("name"),
                yaxis=value("axis"),
                marker=value("marker"),
                hovertemplate=value("hover"),
                showlegend=value("is_named"),
            ),
        )
    ],
    layout=extend(
        "axes",
        xaxis={"title": {"text": text(N_("dimension"))}, "showgrid": False, "anchor": value("anchor")},
        barmode="overlay",
        bargap=0,
    ),
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
