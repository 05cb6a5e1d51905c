"""Derivations of the terms of an attention score, of rotary positions, and of position vectors."""

import math

import numpy as np

from explorer.analysis import positions
from explorer.analysis.attention import score_by_dimension
from explorer.architecture.attention import (
    angles_tap,
    rotary_attention_factors,
    score_divisor_formula,
    score_divisor_in_numbers,
)
from explorer.architecture.residual_stream import embedding_scale_formula
from explorer.errors import PointNotFoundError
from explorer.explain import arithmetic
from explorer.explain.captured import recompute
from explorer.explain.captured.attention import kv_head_index
from explorer.explain.captured.embedding import TABLE
from explorer.explain.clicked_point import get_element
from explorer.explain.derivation import Calculation, Derivation, Input, read_input
from explorer.explain.notation import (
    format_attention_cell,
    format_factor,
    format_number,
    format_query_key,
    format_sum,
    format_token_position,
)
from explorer.explain.source_code import SourceLine
from explorer.explain.tolerance import Check
from explorer.tracing.trace import Trace
from explorer.translations import N_, _, ngettext, translate
from model.config import ModelConfig

ROPE = "explorer/analysis/positions.py"


def dimension_contribution(trace: Trace, layer: int, head: int, query: int, key: int, dim: int) -> Derivation:
    """Derive the contribution of one dimension of q and k to their score."""
    displayed_value = get_element(score_by_dimension(trace, layer, head, query, key), dim)
    suffix = "_rot" * (f"blocks.{layer}.attn.q_rot" in trace)
    (q, from_q), (k, from_k) = (
        read_input(trace, name, kv_head_index(trace, name, head), position, dim)
        for name, position in ((f"blocks.{layer}.attn.q{suffix}", query), (f"blocks.{layer}.attn.k{suffix}", key))
    )
    config = trace.config
    value = float(q) * float(k) / config.divisor
    numbers = f"{format_factor(q)}·{format_factor(k)} / {score_divisor_in_numbers(config)} = {format_number(value)}"
    return Derivation(
        _("what dimension {dim} adds to the score", dim=dim),
        format_attention_cell(trace, layer, head, query, key),
        displayed_value,
        Calculation(f"qᵢ kᵢ / {score_divisor_formula(config)}", lambda: numbers, value, (from_q, from_k)),
        SourceLine("explorer/analysis/attention.py", "return q[query] * keys[key] / trace.config.divisor"),
    )


def dims_of_pair(config: ModelConfig, pair: int) -> slice:
    """Return the dimensions of a rotary pair; PointNotFoundError if there is no such pair."""
    if not 0 <= pair < config.d_head // 2:
        raise PointNotFoundError(_("there is no pair {pair}", pair=pair))
    if config.rope_layout == "adjacent":
        return slice(2 * pair, 2 * pair + 2)
    return slice(pair, None, config.d_head // 2)


def rotated_pair_product(
    trace: Trace, layer: int, head: int, query: int, key: int, pair: int, angle: float
) -> tuple[str, float, tuple[Input, Input]]:
    """Calculate |q||k| cos(φ + angle) / √d of a pair: text with its numbers, value and inputs."""
    dims = dims_of_pair(trace.config, pair)
    (q, from_q), (k, from_k) = (
        read_input(trace, name, kv_head_index(trace, name, head), position, dims)
        for name, position in ((f"blocks.{layer}.attn.q", query), (f"blocks.{layer}.attn.k", key))
    )
    scales = rotary_attention_factors(trace.config, layer)
    scale = 1.0 if scales is None else float(scales[pair])
    size, between = math.hypot(*q) * math.hypot(*k) * scale**2, math.atan2(q[1], q[0]) - math.atan2(k[1], k[0])
    value = size * math.cos(between + angle) / trace.config.divisor
    norms = f"{format_number(math.hypot(*q))}·{format_number(math.hypot(*k))}" + (
        "" if scales is None else f"·{format_number(scale)}²"
    )
    numbers = (
        f"{norms}·cos({format_number(between)} + {format_factor(angle)}) "
        f"/ {score_divisor_in_numbers(trace.config)} = {format_number(value)}"
    )
    return numbers, value, (from_q, from_k)


def pair_contribution(trace: Trace, layer: int, head: int, query: int, key: int, pair: int) -> Derivation:
    """Derive the contribution of one pair of dimensions to the score at the distance of the run."""
    displayed_value = get_element(positions.score_by_pair(trace, layer, head, query, key), pair)
    angle, read = 0.0, ()
    if trace.config.has_rope(layer):
        angles = angles_tap(trace.config, layer)
        (query_angle, from_query), (key_angle, from_key) = (
            read_input(trace, angles, position, pair) for position in (query, key)
        )
        angle, read = float(query_angle - key_angle), (from_query, from_key)
    numbers, value, inputs = rotated_pair_product(trace, layer, head, query, key, pair, angle)
    symbols = _(
        "|q||k| cos(φ + Δω) / {divisor}, φ from k’s pair to q’s, Δω the difference of their angles",
        divisor=score_divisor_formula(trace.config),
    )
    return Derivation(
        _("what pair {pair} adds to the score", pair=pair),
        format_attention_cell(trace, layer, head, query, key),
        displayed_value,
        Calculation(symbols, lambda: numbers, value, (*inputs, *read)),
        SourceLine(ROPE, "angle_differences = angles[query].astype(np.float64) - angles[key]"),
    )


def score_at_distance(trace: Trace, layer: int, head: int, query: int, key: int, distance: int) -> Derivation:
    """Derive the score of the same q and k at another distance."""
    rotates, (angles, read) = trace.config.has_rope(layer), read_input(trace, angles_tap(trace.config, layer))
    frequencies = np.nan_to_num(positions.frequencies(angles)) * rotates
    products = [
        rotated_pair_product(trace, layer, head, query, key, i, distance * frequency)
        for i, frequency in enumerate(frequencies)
    ]
    terms = np.array([term for _numbers, term, _inputs in products])
    value = math.fsum(terms)
    names = ((f"blocks.{layer}.attn.q", query), (f"blocks.{layer}.attn.k", key))
    reads = [read_input(trace, name, kv_head_index(trace, name, head), position)[1] for name, position in names]
    working = Calculation(
        _(
            "score = Σ over pairs of |q||k| cos(φ + distance · ω) / {divisor}",
            divisor=score_divisor_formula(trace.config),
        ),
        lambda: _("score = {sum} = {value}", sum=format_sum(terms), value=format_number(value)),
        value,
        (*reads, *[read] * rotates),
    )
    query_key = format_query_key(trace, query, key)
    return Derivation(
        _("score at a distance of {distance}", distance=distance),
        _("layer {layer} head {head}, q and k of {ends}", layer=layer, head=head, ends=query_key),
        float(positions.score_by_distance(trace, layer, head, query, key, np.array([distance]))[0]),
        working,
        SourceLine(
            ROPE, "return (pair_products(trace, layer, head, query, key) * np.exp(1j * angle_differences)).real.sum(-1)"
        ),
    )


def wavelength(trace: Trace, layer: int, pair: int) -> Derivation | None:
    """Derive the wavelength of a pair in positions; None if it is not rotated, or for a single token."""
    angles = angles_tap(trace.config, layer)
    frequency = abs(get_element(positions.frequencies(trace[angles]), pair))
    if not frequency > 0:
        return None
    last = len(trace) - 1
    (end, from_end), (start, from_start) = (read_input(trace, angles, row, pair) for row in (last, 0))
    value = 2 * math.pi * last / abs(float(end - start))
    numbers = f"2π · {last} / |{format_number(end)} − {format_number(start)}| = {format_number(value)}"
    return Derivation(
        _("positions that pair {pair} takes for a whole turn", pair=pair),
        _("from its angles at positions 0 and {last}", last=last),
        2 * math.pi / frequency,
        Calculation(
            _("2π / ω, ω = (last angle − first) / positions between"), lambda: numbers, value, (from_end, from_start)
        ),
        SourceLine(ROPE, "return (angles[-1] - angles[0]) / steps"),
    )


def check_pair_sum(trace: Trace, layer: int, head: int, query: int, key: int) -> Check:
    """Check the sum of the pairs' contributions against the captured score."""
    name, index = f"blocks.{layer}.attn.scores", (head, query, key)
    total = positions.score_by_pair(trace, layer, head, query, key).sum()
    return Check.from_arrays(trace.dtype, trace[name][index], total, recompute(trace, name, index).sizes)


POSITIONS, NAME = "explorer/analysis/positions.py", "position_embed"
NORM_NAMES = {
    "token": N_("length of the token vector"),
    "position": N_("length of the position vector"),
    "sum": N_("length of the sum"),
}


def cosine_between_positions(trace: Trace, query: int, key: int) -> Derivation:
    """Derive the cosine of the position embeddings of two positions."""
    displayed_value = get_element(positions.position_cosines(trace), query, key)
    return Derivation(
        _("cosine of the vectors added at positions {query} and {key}", query=query, key=key),
        _("{one} and {other}", one=format_token_position(trace, query), other=format_token_position(trace, key)),
        displayed_value,
        calculate_position_cosine(trace, query, key),
        SourceLine(POSITIONS, "return units @ units.T"),
    )


def calculate_position_cosine(trace: Trace, query: int, key: int) -> Calculation:
    """Calculate the cosine of the position vectors of a query and a key."""
    return arithmetic.cosine(*(read_input(trace, NAME, position) for position in (query, key)), ("p", "p′"))


def mean_cosine(trace: Trace, distance: int) -> Derivation:
    """Derive the mean cosine over all pairs of positions at a distance."""
    displayed_value = get_element(positions.cosines_by_distance(trace).mean, distance)
    pairs = [calculate_position_cosine(trace, key + distance, key).value for key in range(len(trace) - distance)]
    location = ngettext(
        "{count} pair {distance} apart", "all {count} pairs {distance} apart", len(pairs), distance=distance
    )
    return Derivation(
        _("mean cosine of the vectors added at two positions"),
        location,
        displayed_value,
        arithmetic.mean(_("mean of p·p′ / (‖p‖ ‖p′‖)"), pairs, (read_input(trace, NAME)[1],)),
        SourceLine(POSITIONS, "return CosineByDistance("),
    )


def position_norm(trace: Trace, kind: str, position: int) -> Derivation:
    """Derive ‖x‖₂ of one of `VECTOR_KINDS` at a position."""
    displayed_value, symbols = (
        get_element(positions.token_and_position_norms(trace), positions.VECTOR_KINDS.index(kind), position),
        "‖x‖₂ = √Σx²",
    )
    if kind == "token":
        x, read = read_input(trace, TABLE, trace.token_ids[position])
        x = x * trace.config.embedding_scale
        if scale_text := embedding_scale_formula(trace.config):
            symbols = _("‖x‖₂ = √Σx², x = row · {factor}", factor=scale_text)
    else:
        x, read = read_input(trace, {"position": NAME, "sum": "embed"}[kind], position)
    return Derivation(
        translate(NORM_NAMES[kind]),
        format_token_position(trace, position),
        displayed_value,
        arithmetic.norm(x, (read,), symbols),
        SourceLine(POSITIONS, "return np.stack([np.linalg.norm(x, axis=-1)"),
    )
