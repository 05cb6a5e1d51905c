"""Derivations of the residual stream and of embeddings: norms, cosines, outliers and principal components."""

import math
from statistics import median

import numpy as np

from explorer.analysis import residual
from explorer.analysis.embedding import embedding_parts, nearest_tokens, principal_components, residual_at_depth
from explorer.analysis.norms import compute_norm_divisor
from explorer.analysis.residual import (
    find_outlier_dimensions,
    norm_statistics,
    residual_norms,
    residual_stages,
    stage_similarities,
    sublayer_labels,
)
from explorer.architecture import residual_stream
from explorer.architecture.residual_stream import (
    norm_input_tap,
    previous_residual_tap,
    residual_sum_tap,
    residual_update_tap,
    sublayers,
)
from explorer.errors import PointNotFoundError
from explorer.explain import arithmetic
from explorer.explain.arithmetic import cosine, dot_product
from explorer.explain.captured.embedding import TABLE
from explorer.explain.captured.norms import mean_square_or_variance, norm_kinds
from explorer.explain.clicked_point import get_element, get_item
from explorer.explain.derivation import Calculation, Derivation, Input, read_input
from explorer.explain.notation import format_factor, format_number, format_token_id, format_token_position, quote_token
from explorer.explain.source_code import SourceLine
from explorer.tracing.trace import Trace
from explorer.translations import N_, _, ngettext, translate

RESIDUAL = "explorer/analysis/residual.py"


def residual_norm(trace: Trace, row: int, position: int) -> Derivation:
    """Derive ‖stream‖ of a token at one of the `stages`."""
    stage = get_item(residual_stages(trace), row)
    displayed_value = get_element(residual.residual_norms_by_stage(trace), row, position)
    x, read = read_input(trace, stage.tap, position)
    return Derivation(
        _("length of the stream at {stage}", stage=stage.name),
        format_token_position(trace, position),
        displayed_value,
        arithmetic.norm(x, (read,), with_square=True),
        SourceLine(RESIDUAL, "return np.linalg.norm(residual_stream(trace), axis=-1)"),
    )


def unnormed_stage_residual_norm(trace: Trace, row: int, position: int) -> Derivation:
    """Derive ‖stream‖ of a token at one of the `stages`, not counting those after a post-norm."""
    all_stages = residual_stages(trace)
    return residual_norm(trace, all_stages.index(get_item(residual_stages(trace, normed=False), row)), position)


def median_residual_norm(trace: Trace, row: int) -> Derivation:
    """Derive the median norm of all tokens' streams at one of the `stages` without norms."""
    stage = get_item(residual_stages(trace, normed=False), row)
    x, read = read_input(trace, stage.tap)
    sizes = [arithmetic.norm(vector, ()).value for vector in x]
    value = median(sizes)
    numbers = {"least": format_number(min(sizes)), "most": format_number(max(sizes)), "value": format_number(value)}
    working = Calculation(
        _("median of ‖x‖₂ = √Σx²"), lambda: _("the middle of {least} to {most}: {value}", **numbers), value, (read,)
    )
    return Derivation(
        _("median length of the stream at {stage}", stage=stage.name),
        format_all_tokens(trace),
        float(residual_norms(trace).median[row]),
        working,
        SourceLine(RESIDUAL, "return np.median(self.stream, axis=1)"),
    )


def format_all_tokens(trace: Trace) -> str:
    """Format the number of tokens that a statistic is over."""
    return ngettext("over {count} token", "over all {count} tokens", len(trace))


def sublayer_output_norm(trace: Trace, sublayer: int, position: int) -> Derivation:
    """Derive the norm of a sublayer's output for a token, attention and feed-forward in turn."""
    displayed_value = get_element(residual_norms(trace).updates, sublayer, position)
    name = residual_update_tap(trace.config, *sublayers(trace.config)[sublayer])
    x, read = read_input(trace, name, position)
    return Derivation(
        _("length of {value}", value=name),
        format_token_position(trace, position),
        displayed_value,
        arithmetic.norm(x, (read,)),
        SourceLine(RESIDUAL, "norms = [np.linalg.norm(vectors, axis=-1) for vectors in"),
    )


def stage_cosine(trace: Trace, query: int, row: int, column: int) -> Derivation:
    """Derive the cosine of a token's stream between two of the `stages`."""
    all_stages = residual_stages(trace)
    displayed_value = get_element(stage_similarities(trace, query), row, column)
    return Derivation(
        _("cosine of the stream at {one} and at {other}", one=all_stages[row].name, other=all_stages[column].name),
        format_token_position(trace, query),
        displayed_value,
        arithmetic.cosine(*(read_input(trace, all_stages[i].tap, query) for i in (row, column))),
        SourceLine(RESIDUAL, "return (units @ units.T)"),
    )


def sublayer_output_cosine(trace: Trace, sublayer: int, position: int) -> Derivation:
    """Derive the cosine of a sublayer's output with the stream that it is added to."""
    displayed_value = get_element(residual.sublayer_updates(trace, position).cosines, sublayer)
    config, layer_and_sublayer = trace.config, sublayers(trace.config)[sublayer]
    added = read_input(trace, residual_update_tap(config, *layer_and_sublayer), position)
    before = read_input(trace, previous_residual_tap(config, residual_sum_tap(config, *layer_and_sublayer)), position)
    return Derivation(
        _("cosine of what {stage} adds and the stream", stage=sublayer_labels(config)[sublayer]),
        format_token_position(trace, position),
        displayed_value,
        arithmetic.cosine(added, before, (_("added"), "x")),
        SourceLine(RESIDUAL, "cosines = np.divide(products, scale"),
    )


def outlier_ratio(trace: Trace, row: int, column: int) -> Derivation:
    """Derive the size of a dimension at one of the `stages`, relative to the median dimension."""
    outlier_dimensions = find_outlier_dimensions(trace)
    displayed_value = get_element(outlier_dimensions.ratios, row, column)
    stage, dimension = residual_stages(trace)[row], int(outlier_dimensions.dimensions[column])
    x, read = read_input(trace, stage.tap)
    sizes = [math.fsum(abs(x[:, i])) / len(x) for i in range(x.shape[1])]
    symbols = _("mean |value| of the dimension / median of the mean |value| of all")
    name = _(
        "dimension {dimension} at {stage}, in multiples of the median dimension", dimension=dimension, stage=stage.name
    )
    return Derivation(
        name,
        format_all_tokens(trace),
        displayed_value,
        arithmetic.quotient(symbols, sizes[dimension], median(sizes), (read,)),
        SourceLine(RESIDUAL, "ratios = np.divide(sizes, typical"),
    )


def norm_divisor(trace: Trace, norm: str, position: int) -> Derivation:
    """Derive the divisor of a norm for a token's vector."""
    tap, positions = norm_input_tap(trace.config, norm), np.arange(len(trace))
    displayed_value, kind = (
        get_element(compute_norm_divisor(trace, trace[tap], norm, positions), position),
        str(norm_kinds(trace, norm, position)),
    )
    x, read = read_input(trace, tap, position)
    squares, eps = float(mean_square_or_variance(x, norm_kinds(trace, norm, position))), trace.config.norm_eps
    value = math.sqrt(squares + eps) if kind != "none" else 1.0
    symbols = {"layernorm": _("√(var x + ε)"), "rmsnorm": _("√(mean x² + ε)"), "none": _("1: it does not divide")}[kind]
    numbers = (
        f"√({format_number(squares)} + {format_number(eps)}) = {format_number(value)}" if kind != "none" else "= 1"
    )
    working = Calculation(symbols, lambda: numbers, value, (read,))
    source = SourceLine("explorer/analysis/norms.py", "np.sqrt((x**2).mean(-1) + trace.config.norm_eps)")
    return Derivation(
        _("what the norm divides by"), format_token_position(trace, position), displayed_value, working, source
    )


def layernorm_mean(trace: Trace, norm: str, position: int) -> Derivation:
    """Derive the mean that LayerNorm subtracts from a token's vector."""
    reading = norm_statistics(trace, norm)
    displayed_value = get_element(reading.means, position)
    if reading.kinds[position] != "layernorm":
        raise PointNotFoundError(_("at this token the norm is of another kind, which takes nothing off"))
    x, read = read_input(trace, reading.before, position)
    return Derivation(
        _("mean that {norm} takes off", norm=norm.rpartition(".")[2]),
        format_token_position(trace, position),
        displayed_value,
        arithmetic.mean(_("mean x = Σx / D"), x, (read,)),
        SourceLine(RESIDUAL, "means = np.where("),
    )


EMBEDDING = "explorer/analysis/embedding.py"
ROW = N_("row of the token’s id, as it was learned")
SCALED_ROW = N_("row of the token’s id · {factor}, as it was learned")


def embedding_row_element(trace: Trace, query: int, dim: int) -> Derivation:
    """Derive an element of the token's scaled row of the embedding table."""
    token_id, config = trace.token_ids[query], trace.config
    terms = embedding_parts(trace, query)
    displayed_value = get_element(terms.row * terms.scale, dim)
    row, read = read_input(trace, TABLE, token_id, dim)
    value, scaled = float(row) * config.embedding_scale, config.embedding_scale != 1
    scale_text = f"{format_factor(row)} · {residual_stream.embedding_scale_in_numbers(config)} = " * scaled
    symbols = (
        translate(SCALED_ROW, factor=residual_stream.embedding_scale_formula(config)) if scaled else translate(ROW)
    )
    return Derivation(
        _("token {token_id}’s own vector[{dim}]", token_id=token_id, dim=dim),
        format_token_position(trace, query),
        displayed_value,
        Calculation(symbols, lambda: f"{scale_text}{format_number(value)}", value, (read,)),
        SourceLine(EMBEDDING, 'row = trace.weights["token_embedding.weight"][trace.token_ids[query]]'),
    )


def nearest_token_cosine(trace: Trace, query: int, index: int, max_count: int) -> Derivation:
    """Derive the cosine of the token's embedding with that of one of the nearest tokens."""
    ids, cosines = nearest_tokens(trace, trace.token_ids[query], max_count)
    displayed_value, token_id = get_element(cosines, index), int(ids[index])
    return Derivation(
        _("cosine of two tokens’ vectors"),
        _("{one} and {other}", one=quote_token(trace.tokens[query]), other=format_token_id(trace, token_id)),
        displayed_value,
        cosine(read_input(trace, TABLE, trace.token_ids[query]), read_input(trace, TABLE, token_id)),
        SourceLine(EMBEDDING, "cosines = np.divide(products, scale"),
    )


def principal_component_coordinate(
    trace: Trace, depth: int, position: int, component: int, first: int = 0
) -> Derivation:
    """Derive the coordinate of a token's vector along a principal component.

    Args:
        component: index of the principal component.
        first: the first token that is included.
    """
    vectors = residual_at_depth(trace, depth)[first:].astype(float)
    components = principal_components(residual_at_depth(trace, depth)[first:])
    displayed_value = get_element(components.points, position - first, component)
    centred = vectors[position - first] - vectors.mean(0)
    name = f"blocks.{depth}.resid_pre" if depth < trace.config.num_layers else _("the stream after the last block")
    inputs = (Input(name, (slice(first, None),), vectors.shape),)
    return Derivation(
        _("component {which}", which=component + 1),
        _("{token} at depth {depth}", token=format_token_position(trace, position), depth=depth),
        displayed_value,
        dot_product(_("(x − mean x of all tokens) · direction"), centred, components.directions[component], inputs),
        SourceLine(EMBEDDING, "return PrincipalComponents(centred @ components.T"),
    )
