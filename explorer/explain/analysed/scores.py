"""Numbers that add up to a score, and what the score would be elsewhere."""

import math

import numpy as np

from explorer.analysis import rope
from explorer.analysis.attention import score_by_dimension
from explorer.analysis.rounding import Check
from explorer.architecture.attention import angles_of, divisor, divisor_in_numbers, rotation_scales
from explorer.explain.captured import working_of
from explorer.explain.captured.attention import group_of
from explorer.explain.derivation import Derivation
from explorer.explain.notation import factor, number, summed
from explorer.explain.place import of_head, query_and_key
from explorer.explain.point import element
from explorer.explain.source import Source
from explorer.explain.working import Input, Working, take
from explorer.language import _
from explorer.state.errors import NoSuchPoint
from explorer.tracing.trace import Trace
from model.config import ModelConfig

ROPE = "explorer/analysis/rope.py"


def dimension(trace: Trace, layer: int, head: int, query: int, key: int, dim: int) -> Derivation:
    """What one dimension of q and k adds to their score."""
    drawn = element(score_by_dimension(trace, layer, head, query, key), dim)
    turned = "_rot" * (f"blocks.{layer}.attn.q_rot" in trace)
    (q, from_q), (k, from_k) = (
        take(trace, name, group_of(trace, name, head), position, dim)
        for name, position in ((f"blocks.{layer}.attn.q{turned}", query), (f"blocks.{layer}.attn.k{turned}", key))
    )
    config = trace.config
    value = float(q) * float(k) / config.divisor
    numbers = f"{factor(q)}·{factor(k)} / {divisor_in_numbers(config)} = {number(value)}"
    return Derivation(
        _("what dimension {dim} adds to the score", dim=dim),
        of_head(trace, layer, head, query, key),
        drawn,
        Working(f"qᵢ kᵢ / {divisor(config)}", lambda: numbers, value, (from_q, from_k)),
        Source("explorer/analysis/attention.py", "return q[query] * keys[key] / trace.config.divisor"),
    )


def dims_of_pair(config: ModelConfig, pair: int) -> slice:
    """The dimensions that turn together. NoSuchPoint where there is no such pair."""
    if not 0 <= pair < config.d_head // 2:
        raise NoSuchPoint(_("there is no pair {pair}", pair=pair))
    if config.rope_layout == "adjacent":
        return slice(2 * pair, 2 * pair + 2)
    return slice(pair, None, config.d_head // 2)


def turned_pair(
    trace: Trace, layer: int, head: int, query: int, key: int, pair: int, angle: float
) -> tuple[str, float, tuple[Input, Input]]:
    """|q||k| cos(φ + angle) / √d of a pair: with its numbers, its value, and what it is worked out from."""
    dims = dims_of_pair(trace.config, pair)
    (q, from_q), (k, from_k) = (
        take(trace, name, group_of(trace, name, head), position, dims)
        for name, position in ((f"blocks.{layer}.attn.q", query), (f"blocks.{layer}.attn.k", key))
    )
    scales = rotation_scales(trace.config, layer)
    scale = 1.0 if scales is None else float(scales[pair])
    size, between = math.hypot(*q) * math.hypot(*k) * scale**2, math.atan2(q[1], q[0]) - math.atan2(k[1], k[0])
    value = size * math.cos(between + angle) / trace.config.divisor
    lengths = f"{number(math.hypot(*q))}·{number(math.hypot(*k))}" + ("" if scales is None else f"·{number(scale)}²")
    numbers = (
        f"{lengths}·cos({number(between)} + {factor(angle)}) / {divisor_in_numbers(trace.config)} = {number(value)}"
    )
    return numbers, value, (from_q, from_k)


def pair(trace: Trace, layer: int, head: int, query: int, key: int, which: int) -> Derivation:
    """What one pair of dimensions adds to the score at the distance that the run has."""
    drawn = element(rope.score_by_pair(trace, layer, head, query, key), which)
    between, read = 0.0, ()
    if trace.config.rotates(layer):
        angles = angles_of(trace.config, layer)
        (of_query, from_query), (of_key, from_key) = (take(trace, angles, at, which) for at in (query, key))
        between, read = float(of_query - of_key), (from_query, from_key)
    numbers, value, inputs = turned_pair(trace, layer, head, query, key, which, between)
    symbols = _(
        "|q||k| cos(φ + Δω) / {divisor}, φ from k’s pair to q’s, Δω the difference of their angles",
        divisor=divisor(trace.config),
    )
    return Derivation(
        _("what pair {pair} adds to the score", pair=which),
        of_head(trace, layer, head, query, key),
        drawn,
        Working(symbols, lambda: numbers, value, (*inputs, *read)),
        Source(ROPE, "turned = angles[query].astype(np.float64) - angles[key]"),
    )


def at_distance(trace: Trace, layer: int, head: int, query: int, key: int, distance: int) -> Derivation:
    """The score that the same q and k would have so far apart."""
    rotates, (angles, read) = trace.config.rotates(layer), take(trace, angles_of(trace.config, layer))
    speeds = np.nan_to_num(rope.frequencies(angles)) * rotates
    parts = [turned_pair(trace, layer, head, query, key, i, distance * speed) for i, speed in enumerate(speeds)]
    terms = np.array([part for _numbers, part, _inputs in parts])
    value = math.fsum(terms)
    names = ((f"blocks.{layer}.attn.q", query), (f"blocks.{layer}.attn.k", key))
    reads = [take(trace, name, group_of(trace, name, head), position)[1] for name, position in names]
    working = Working(
        _("score = Σ over pairs of |q||k| cos(φ + distance · ω) / {divisor}", divisor=divisor(trace.config)),
        lambda: _("score = {sum} = {value}", sum=summed(terms), value=number(value)),
        value,
        (*reads, *[read] * rotates),
    )
    ends = query_and_key(trace, query, key)
    return Derivation(
        _("score at a distance of {distance}", distance=distance),
        _("layer {layer} head {head}, q and k of {ends}", layer=layer, head=head, ends=ends),
        float(rope.score_by_distance(trace, layer, head, query, key, np.array([distance]))[0]),
        working,
        Source(ROPE, "return (matches(trace, layer, head, query, key) * np.exp(1j * turned)).real.sum(-1)"),
    )


def wavelength(trace: Trace, layer: int, pair: int) -> Derivation | None:
    """How many positions a pair takes for a whole turn; None where it does not turn, or one token shows no turn."""
    angles = angles_of(trace.config, layer)
    speed = abs(element(rope.frequencies(trace[angles]), pair))
    if not speed > 0:
        return None
    last = len(trace) - 1
    (end, from_end), (start, from_start) = (take(trace, angles, row, pair) for row in (last, 0))
    value = 2 * math.pi * last / abs(float(end - start))
    numbers = f"2π · {last} / |{number(end)} − {number(start)}| = {number(value)}"
    return Derivation(
        _("positions that pair {pair} takes for a whole turn", pair=pair),
        _("from its angles at positions 0 and {last}", last=last),
        2 * math.pi / speed,
        Working(
            _("2π / ω, ω = (last angle − first) / positions between"), lambda: numbers, value, (from_end, from_start)
        ),
        Source(ROPE, "return (angles[-1] - angles[0]) / steps"),
    )


def sum_of_pairs(trace: Trace, layer: int, head: int, query: int, key: int) -> Check:
    """What the pairs add, all together, held against the captured score."""
    name, at = f"blocks.{layer}.attn.scores", (head, query, key)
    total = rope.score_by_pair(trace, layer, head, query, key).sum()
    return Check.of(trace.dtype, trace[name][at], total, working_of(trace, name, at).sizes)
