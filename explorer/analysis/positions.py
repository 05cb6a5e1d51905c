"""Positions of a run: rotary embeddings (RoPE), and added vectors with their cosine similarities."""

import math
from dataclasses import dataclass

import numpy as np

from explorer.architecture.formulas import (
    angles_tap,
    embedding_scale_formula,
    rotary_attention_factors,
    score_divisor_formula,
    score_divisor_in_numbers,
)
from explorer.errors import PointNotFoundError
from explorer.explain import arithmetic
from explorer.explain.captured import recompute
from explorer.explain.captured.attention import kv_head_index
from explorer.explain.captured.embedding import TABLE
from explorer.explain.derivation import Calculation, Derivation, Input, RecomputationCheck, get_element, read_input
from explorer.explain.notation import (
    format_attention_cell,
    format_factor,
    format_query_key,
    format_six_digits,
    format_sum,
    format_token_position,
)
from explorer.explain.source_code import SourceLine
from explorer.tracing.trace import Trace, cache_per_trace
from explorer.translations import N_, _, ngettext, translate
from model.config import ModelConfig


def wrap_angles(angles: np.ndarray) -> np.ndarray:
    """Wrap angles into (-π, π]; same shape."""
    return np.pi - (np.pi - angles) % (2 * np.pi)


def split_pairs(vector: np.ndarray, layout: str) -> np.ndarray:
    """Split a vector into the pairs of dimensions that RoPE rotates together, (d,) -> (F, 2).

    Pair i has dimensions 2i and 2i + 1 in the layout "adjacent", i and i + d/2 in "half_split".
    """
    return vector.reshape(-1, 2) if layout == "adjacent" else vector.reshape(2, -1).T


@dataclass(frozen=True)
class RotatedPairs:
    """The pairs of dimensions of one head's vector at one position.

    Attributes:
        before, after: (F, 2), the two numbers of each pair before and after its rotation.
        angles: (F,), rotation angle of each pair, radians.
        error: largest difference of `after` from `before` rotated by `angles` and scaled if the model scales.
    """

    before: np.ndarray
    after: np.ndarray
    angles: np.ndarray
    error: float


def rotation_angles(trace: Trace, layer: int) -> np.ndarray:
    """Return the rotation angles of a layer in radians, (T, F); 0 if the layer has no RoPE."""
    angles = trace[angles_tap(trace.config, layer)]
    return angles if trace.config.has_rope(layer) else np.zeros_like(angles)


def pair_scales(trace: Trace, layer: int) -> np.ndarray | float:
    """Return the factor on each rotated pair, (F,), or 1 without scaling."""
    factors = rotary_attention_factors(trace.config, layer)
    return 1.0 if factors is None else factors


def rotated_pairs(trace: Trace, vector: str, layer: int, head: int, position: int) -> RotatedPairs:
    """Return the pairs of "q" or "k" at a position."""
    before, after = (
        split_pairs(trace.head_value(f"blocks.{layer}.attn.{name}", head)[position], trace.config.rope_layout)
        for name in (vector, f"{vector}_rot")
    )
    angles = rotation_angles(trace, layer)[position]  # (F,)
    rotated = (before[:, 0] + 1j * before[:, 1]) * np.exp(1j * angles) * pair_scales(trace, layer)
    error = np.abs(rotated - (after[:, 0] + 1j * after[:, 1])).max()
    return RotatedPairs(before, after, angles, float(error))


def frequencies_from_angles(angles: np.ndarray) -> np.ndarray:
    """Return the angular frequency of each pair in radians per position, (F,), from captured angles (T, F).

    NaN for a single token.
    """
    angles = angles.astype(np.float64)
    steps = len(angles) - 1
    return (angles[-1] - angles[0]) / steps if steps else np.full(angles.shape[1], np.nan)


def pair_products(trace: Trace, layer: int, head: int, query: int, key: int) -> np.ndarray:
    """Return the contribution of each pair of q and k to the score before rotation, as complex numbers (F,).

    These are |q||k| e^{iφ} / √d, times the square of the scaling factor of rotated pairs, with φ the angle from
    k's pair to q's. At a distance of Δ positions the pair contributes |q||k| cos(φ + Δω) / √d, the real part of
    this times e^{iΔω} (Su et al. 2021, §3.4.3).
    """
    q, k = (
        rotated_pairs(trace, vector, layer, head, position).before.astype(np.float64) @ (1, 1j)
        for vector, position in (("q", query), ("k", key))
    )
    return q * k.conj() * pair_scales(trace, layer) ** 2 / trace.config.divisor


def score_by_pair(trace: Trace, layer: int, head: int, query: int, key: int) -> np.ndarray:
    """Return the contribution of each pair to the score, (F,): |q||k| cos(φ + Δω) / √d.

    The contributions sum to the score.
    """
    angles = rotation_angles(trace, layer)
    angle_differences = angles[query].astype(np.float64) - angles[key]  # (F,) Δω
    return (pair_products(trace, layer, head, query, key) * np.exp(1j * angle_differences)).real


def score_by_unrotated_pair(trace: Trace, layer: int, head: int, query: int, key: int) -> np.ndarray:
    """Return the contribution of each pair to the score without rotation, (F,): |q||k| cos φ / √d."""
    return pair_products(trace, layer, head, query, key).real


def rotation_effects(trace: Trace, layer: int, head: int, query: int, key: int) -> np.ndarray:
    """Return the change of each pair's contribution to the score by its rotation, (F,); 0 at distance 0."""
    return score_by_pair(trace, layer, head, query, key) - score_by_unrotated_pair(trace, layer, head, query, key)


def main_pair(trace: Trace, layer: int, head: int, query: int, key: int) -> int:
    """Return the pair whose contribution RoPE changes most; if it changes none, the pair with the largest."""
    effects = rotation_effects(trace, layer, head, query, key)
    return int(np.abs(effects if effects.any() else score_by_pair(trace, layer, head, query, key)).argmax())


def score_by_distance(trace: Trace, layer: int, head: int, query: int, key: int, distances: np.ndarray) -> np.ndarray:
    """Return the score of the same q and k, before rotation, at other distances in positions, (n,)."""
    angle_differences = np.outer(
        distances, np.nan_to_num(frequencies_from_angles(rotation_angles(trace, layer)))
    )  # (n, F)
    return (pair_products(trace, layer, head, query, key) * np.exp(1j * angle_differences)).real.sum(-1)


def context_position_embeddings(trace: Trace) -> np.ndarray:
    """Return the position embedding of every position of the context, (C, D)."""
    config = trace.config
    if config.position == "learned":
        return trace.weights["position_embedding.weight"][:]
    return sinusoidal_embeddings(np.arange(config.context_length), config.d_model)


def sinusoidal_embeddings(positions: np.ndarray, d_model: int) -> np.ndarray:
    """Return sinusoidal position embeddings, (n, D) (Vaswani et al. 2017, §3.5).

    Dimension 2i of position m is sin(m / 10000^(2i/D)), dimension 2i + 1 its cosine.
    """
    angles = np.outer(positions, angular_frequencies(d_model))
    return np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(len(positions), d_model)


def angular_frequencies(d_model: int) -> np.ndarray:
    """Return the angular frequencies 10000^(−2i/D) in radians per position, (D/2,)."""
    return 10000.0 ** (-np.arange(0, d_model, 2) / d_model)


def sinusoidal_cosine(distances: np.ndarray, d_model: int) -> np.ndarray:
    """Return the cosine similarity of two sinusoidal positions by their distance, (n,).

    sin a sin b + cos a cos b = cos(a − b), so the dot product of positions m and n is Σᵢ cos((m − n) ωᵢ), and D/2
    of a position with itself.
    """
    return np.cos(np.outer(distances, angular_frequencies(d_model))).mean(-1)


def position_cosines(trace: Trace) -> np.ndarray:
    """Return the cosine similarities of the position embeddings of the run, (T, T); 0 for a zero vector."""
    vectors = trace["position_embed"].astype(np.float64)
    norms = np.linalg.norm(vectors, axis=-1, keepdims=True)
    units = np.divide(vectors, norms, out=np.zeros_like(vectors), where=norms > 0)
    return units @ units.T


@dataclass(frozen=True)
class CosineByDistance:
    """Statistics of `cosines` over all pairs of positions at the same distance, (T,) each, by distance from 0."""

    minimum: np.ndarray
    mean: np.ndarray
    maximum: np.ndarray


@cache_per_trace
def cosines_by_distance(trace: Trace) -> CosineByDistance:
    """Return the least, mean and largest cosine of position vectors at each distance (T,)."""
    cosine_matrix = position_cosines(trace)
    diagonals = [cosine_matrix.diagonal(distance) for distance in range(len(trace))]
    return CosineByDistance(
        *(np.array([reduction(diagonal) for diagonal in diagonals]) for reduction in (np.min, np.mean, np.max))
    )


VECTOR_KINDS = ("token", "position", "sum")


@cache_per_trace
def token_and_position_norms(trace: Trace) -> np.ndarray:
    """Return ‖x‖₂ of `VECTOR_KINDS`, (3, T): token embedding, position embedding, and their sum."""
    tokens = trace.weights["token_embedding.weight"][list(trace.token_ids)] * trace.config.embedding_scale
    return np.stack([np.linalg.norm(x, axis=-1) for x in (tokens, trace["position_embed"], trace["embed"])])


FILE = "explorer/analysis/positions.py"


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
    norms = f"{format_six_digits(math.hypot(*q))}·{format_six_digits(math.hypot(*k))}" + (
        "" if scales is None else f"·{format_six_digits(scale)}²"
    )
    numbers = (
        f"{norms}·cos({format_six_digits(between)} + {format_factor(angle)}) "
        f"/ {score_divisor_in_numbers(trace.config)} = {format_six_digits(value)}"
    )
    return numbers, value, (from_q, from_k)


def pair_contribution(trace: Trace, layer: int, head: int, query: int, key: int, pair: int) -> Derivation:
    """Derive the contribution of one pair of dimensions to the score at the distance of the run."""
    displayed_value = get_element(score_by_pair(trace, layer, head, query, key), pair)
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
        SourceLine(FILE, "angle_differences = angles[query].astype(np.float64) - angles[key]"),
    )


def score_at_distance(trace: Trace, layer: int, head: int, query: int, key: int, distance: int) -> Derivation:
    """Derive the score of the same q and k at another distance."""
    rotates, (angles, read) = trace.config.has_rope(layer), read_input(trace, angles_tap(trace.config, layer))
    pair_frequencies = np.nan_to_num(frequencies_from_angles(angles)) * rotates
    products = [
        rotated_pair_product(trace, layer, head, query, key, i, distance * frequency)
        for i, frequency in enumerate(pair_frequencies)
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
        lambda: _("score = {sum} = {value}", sum=format_sum(terms), value=format_six_digits(value)),
        value,
        (*reads, *[read] * rotates),
    )
    query_key = format_query_key(trace, query, key)
    return Derivation(
        _("score at a distance of {distance}", distance=distance),
        _("layer {layer} head {head}, q and k of {ends}", layer=layer, head=head, ends=query_key),
        float(score_by_distance(trace, layer, head, query, key, np.array([distance]))[0]),
        working,
        SourceLine(
            FILE, "return (pair_products(trace, layer, head, query, key) * np.exp(1j * angle_differences)).real.sum(-1)"
        ),
    )


def wavelength(trace: Trace, layer: int, pair: int) -> Derivation | None:
    """Derive the wavelength of a pair in positions; None if it is not rotated, or for a single token."""
    angles = angles_tap(trace.config, layer)
    frequency = abs(get_element(frequencies_from_angles(trace[angles]), pair))
    if not frequency > 0:
        return None
    last = len(trace) - 1
    (end, from_end), (start, from_start) = (read_input(trace, angles, row, pair) for row in (last, 0))
    value = 2 * math.pi * last / abs(float(end - start))
    numbers = f"2π · {last} / |{format_six_digits(end)} − {format_six_digits(start)}| = {format_six_digits(value)}"
    return Derivation(
        _("positions that pair {pair} takes for a whole turn", pair=pair),
        _("from its angles at positions 0 and {last}", last=last),
        2 * math.pi / frequency,
        Calculation(
            _("2π / ω, ω = (last angle − first) / positions between"), lambda: numbers, value, (from_end, from_start)
        ),
        SourceLine(FILE, "return (angles[-1] - angles[0]) / steps"),
    )


def check_pair_sum(trace: Trace, layer: int, head: int, query: int, key: int) -> RecomputationCheck:
    """Check the sum of the pairs' contributions against the captured score."""
    name, index = f"blocks.{layer}.attn.scores", (head, query, key)
    total = score_by_pair(trace, layer, head, query, key).sum()
    return RecomputationCheck.from_arrays(trace.dtype, trace[name][index], total, recompute(trace, name, index).sizes)


NAME = "position_embed"
NORM_NAMES = {
    "token": N_("length of the token vector"),
    "position": N_("length of the position vector"),
    "sum": N_("length of the sum"),
}


def cosine_between_positions(trace: Trace, query: int, key: int) -> Derivation:
    """Derive the cosine of the position embeddings of two positions."""
    displayed_value = get_element(position_cosines(trace), query, key)
    return Derivation(
        _("cosine of the vectors added at positions {query} and {key}", query=query, key=key),
        _("{one} and {other}", one=format_token_position(trace, query), other=format_token_position(trace, key)),
        displayed_value,
        calculate_position_cosine(trace, query, key),
        SourceLine(FILE, "return units @ units.T"),
    )


def calculate_position_cosine(trace: Trace, query: int, key: int) -> Calculation:
    """Calculate the cosine of the position vectors of a query and a key."""
    return arithmetic.cosine(*(read_input(trace, NAME, position) for position in (query, key)), ("p", "p′"))


def mean_cosine(trace: Trace, distance: int) -> Derivation:
    """Derive the mean cosine over all pairs of positions at a distance."""
    displayed_value = get_element(cosines_by_distance(trace).mean, distance)
    pairs = [calculate_position_cosine(trace, key + distance, key).value for key in range(len(trace) - distance)]
    location = ngettext(
        "{count} pair {distance} apart", "all {count} pairs {distance} apart", len(pairs), distance=distance
    )
    return Derivation(
        _("mean cosine of the vectors added at two positions"),
        location,
        displayed_value,
        arithmetic.mean(_("mean of p·p′ / (‖p‖ ‖p′‖)"), pairs, (read_input(trace, NAME)[1],)),
        SourceLine(FILE, "return CosineByDistance("),
    )


def position_norm(trace: Trace, kind: str, position: int) -> Derivation:
    """Derive ‖x‖₂ of one of `VECTOR_KINDS` at a position."""
    displayed_value, symbols = (
        get_element(token_and_position_norms(trace), VECTOR_KINDS.index(kind), position),
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
        SourceLine(FILE, "return np.stack([np.linalg.norm(x, axis=-1)"),
    )
