"""Residual stream: the vector of a token that every layer reads and adds to."""

import numpy as np

from explorer.analysis.residual import has_stages, norm_readings, updates
from explorer.architecture.layout import layout
from explorer.architecture.stream import all_sums, norms_of, stream_norms
from explorer.explain.analysed.residual import (
    cosine,
    direction,
    divisor,
    length,
    mean_taken_off,
    median_length,
    outlier,
    stage_length,
    written_length,
)
from explorer.explain.captured import derivation_of
from explorer.explain.derivation import Derivation
from explorer.explain.notation import listed, number, quoted
from explorer.explain.point import Point, nth
from explorer.language import N_, _, look_up
from explorer.state.selection import Selection
from explorer.tracing.trace import Trace
from explorer.views.checks import Mark, given, recomputed, worked_out
from explorer.views.residual.normalisation import before_and_after, gains, lines_of_norms, norm_scales
from explorer.views.residual.stages import stage_by_stage, standing_out
from explorer.views.residual.stream import directions, lengths, norms
from explorer.views.view import Panel, View
from explorer.views.what_ifs import NORMS, TAKEN_STREAM, TOWARDS, WITHOUT


def formula(trace: Trace, selection: Selection) -> str:
    layer, query = selection.layer, selection.query
    epsilon = f"{trace.config.norm_eps:g}".replace("-", "−")
    layernorm = trace.config.norm == "layernorm"
    whole = _("LayerNorm(x) = (x − mean x) / σ · γ + β") if layernorm else "RMSNorm(x) = x / RMS · g"
    token = quoted(trace.tokens[query])
    if not trace.has_weights:
        size = number(np.linalg.norm(trace[f"blocks.{layer}.resid_post"][query]))
        told = N_("layer {layer}, {token} ({position}): ‖x‖₂ = {length}")
        return look_up(told, layer=layer, token=token, position=query, length=size)
    lines = [_("layer {layer}, {token} ({position}); {norm}", layer=layer, token=token, position=query, norm=whole)]
    for reading in norm_readings(trace, layer):
        scale = float(reading.scales[query])
        divided = look_up(
            DIVIDED[reading.kinds[query]],
            mean=number(reading.means[query]),
            square=number(scale**2 - trace.config.norm_eps),
            epsilon=epsilon,
            scale=number(scale),
        )
        line = _(
            "{norm} of x = {value}: {divided}   recomputed, off by {error}",
            norm=reading.name.split(".")[-1],
            value=reading.before.split(".")[-1],
            divided=divided,
            error=number(reading.error),
        )
        lines.append(line)
    added = updates(trace, query)
    sums = len(all_sums(trace.config))
    lines.append(look_up(SUMS[bool(stream_norms(trace.config))], sums=sums, error=number(added.error)))
    return "\n".join(lines)


DIVIDED = {
    "layernorm": N_("mean x = {mean}, σ = √(var x + ε) = √({square} + {epsilon}) = {scale}"),
    "none": N_("nothing is divided: its kind was changed"),
    "rmsnorm": N_("RMS = √(mean x² + ε) = √({square} + {epsilon}) = {scale}"),
}
SUMS = {  # by whether norms are on the stream
    False: N_("stream + what is added: {sums} sums at this token, off by {error}"),
    True: N_("stream + what is added (before each norm): {sums} sums at this token, off by {error}"),
}


def streams(trace: Trace) -> tuple[str, ...]:
    """The values that the pictures of all stages are of."""
    return ("blocks.0.resid_pre", *(f"blocks.*.{name}" for name in layout(trace.config).stream[1:]))


def mark_of_stages(trace: Trace, selection: Selection) -> Mark:
    return worked_out(*streams(trace))(trace, selection)


def mark_of_updates(trace: Trace, selection: Selection) -> Mark:
    written = (f"blocks.*.{name}" for name in layout(trace.config).writes.values())
    return worked_out(*streams(trace), *written)(trace, selection)


def mark_of_norms(trace: Trace, selection: Selection) -> Mark:
    """Of the chosen layer's: what they read and what they leave."""
    readings = norm_readings(trace, selection.layer)
    values = [*(reading.before for reading in readings), *(reading.name for reading in readings)]
    return recomputed(*dict.fromkeys(values))(trace, selection)


def mark_of_gains(trace: Trace, selection: Selection) -> Mark:
    norms = listed(f"{norm}.weight" for norm in norms_of(trace.config, selection.layer))
    return given(N_("weights as learned"), norms)(trace, selection)


def inspect_length(trace: Trace, s: Selection, point: Point) -> Derivation:
    """The lines are of the stream, the bars of what is added."""
    curve, item = point.of("curve"), point.of("item")
    if curve == 0:
        return median_length(trace, item)
    return stage_length(trace, item, s.query) if curve == 1 else written_length(trace, item, s.query)


def inspect_scale(trace: Trace, s: Selection, point: Point) -> Derivation:
    norm, is_mean = nth(lines_of_norms(trace, s.layer), point.of("curve"))
    return (mean_taken_off if is_mean else divisor)(trace, norm, point.of("item"))


def inspect_normalised(trace: Trace, s: Selection, point: Point) -> Derivation:
    norm, is_after = divmod(point.of("curve"), 2)
    reading = nth(norm_readings(trace, s.layer), norm)
    return derivation_of(trace, reading.name if is_after else reading.before, (s.query, point.of("item")))


def has_norms(trace: Trace) -> bool:
    return trace.has_weights


VIEW = View(
    name="residual",
    title=N_("Residual stream"),
    words=N_(
        "Every token has one vector, a list of numbers, that runs through the whole model: the residual stream. "
        "Attention and feed-forward each read a normalised copy of it and add something to it; here is how long it "
        "grows, which way each addition points, and what the norms make of it. "
        "Choose a token or a layer in any picture."
    ),
    formula=formula,
    needs=("blocks.*.resid_post",),
    where=has_stages,
    otherwise=lambda config: _("Nothing was captured from this model."),
    controls=("layer", "query"),
    what_ifs=(TOWARDS, WITHOUT, TAKEN_STREAM, *NORMS),
    panels=(
        Panel(
            name="lengths",
            title=N_("How long the stream is: stage by stage down the model, token by token across"),
            draw=lambda trace, s: lengths(trace, s.query),
            selects={"x": "query", "customdata": "layer"},
            mark=mark_of_stages,
            inspect=lambda trace, s, point: length(trace, point.row, point.column),
            height=400,
        ),
        Panel(
            name="norms",
            title=N_("The chosen token: its length, and what each sublayer adds"),
            draw=lambda trace, s: norms(trace, s.query),
            needs=("blocks.*.attn.out", "blocks.*.ffn.out"),
            inspect=inspect_length,
            mark=mark_of_updates,
            height=340,
            width="half",
        ),
        Panel(
            name="directions",
            title=N_("Which way it adds: along the stream, across it or against it"),
            draw=lambda trace, s: directions(trace, s.query),
            needs=("blocks.*.attn.out", "blocks.*.ffn.out"),
            inspect=lambda trace, s, point: direction(trace, point.of("item"), s.query),
            selects={"customdata": "layer"},
            mark=mark_of_updates,
            height=340,
            width="half",
        ),
        Panel(
            name="scales",
            title=N_("The chosen layer's norms: what they divide each token by"),
            draw=lambda trace, s: norm_scales(trace, s.layer, s.query),
            where=has_norms,
            inspect=inspect_scale,
            selects={"x": "query"},
            mark=mark_of_norms,
            height=340,
            width="half",
        ),
        Panel(
            name="gains",
            title=N_("And what they multiply each dimension by after: the gains"),
            draw=lambda trace, s: gains(trace, s.layer),
            where=has_norms,
            no_inspection=N_("weights as they were learned: no other number gives them"),
            mark=mark_of_gains,
            height=340,
            width="half",
        ),
        Panel(
            name="normalised",
            title=N_("The chosen token's numbers before and after the chosen layer's norms"),
            draw=lambda trace, s: before_and_after(trace, s.layer, s.query),
            where=has_norms,
            inspect=inspect_normalised,
            mark=mark_of_norms,
            height=420,
        ),
        Panel(
            name="similarity",
            title=N_("How the chosen token's direction changes: cosines between stages"),
            draw=lambda trace, s: stage_by_stage(trace, s.query),
            selects={"customdata": "layer"},
            mark=mark_of_stages,
            inspect=lambda trace, s, point: cosine(trace, s.query, point.row, point.column),
            height=460,
            width="half",
        ),
        Panel(
            name="outliers",
            title=N_("Outlier dimensions: the largest mean |value| over the tokens"),
            draw=lambda trace, s: standing_out(trace),
            once=True,
            selects={"customdata": "layer"},
            mark=mark_of_stages,
            inspect=lambda trace, s, point: outlier(trace, point.row, point.column),
            height=460,
            width="half",
        ),
    ),
)
