"""Numbers that add up to a score, and what the score would be elsewhere."""

import math

import numpy as np

from explorer.analysis import rope
from explorer.analysis.attention import score_by_dimension
from explorer.explain.captured.inspect import query_and_key
from explorer.explain.inspection import Inspection, element
from explorer.explain.notation import number
from explorer.explain.source import Source
from explorer.explain.working import factor, summed, take
from explorer.state.errors import NoSuchPoint
from explorer.tracing.trace import Trace
from model.config import ModelConfig

ROPE = "explorer/analysis/rope.py"


def dimension(trace: Trace, layer: int, head: int, query: int, key: int, dim: int) -> Inspection:
    """What one dimension of q and k adds to their score."""
    value = element(score_by_dimension(trace, layer, head, query, key), dim)
    turned = "_rot" * (f"blocks.{layer}.attn.q_rot" in trace)
    group = head * trace.config.kv_heads // trace.config.num_heads
    q, from_q = take(trace, f"blocks.{layer}.attn.q{turned}", head, query, dim)
    k, from_k = take(trace, f"blocks.{layer}.attn.k{turned}", group, key, dim)
    d = trace.config.d_head
    again = float(q) * float(k) / math.sqrt(d)
    return Inspection(
        name=f"what dimension {dim} adds to the score",
        place=f"layer {layer} head {head}, {query_and_key(trace, query, key)}",
        value=value,
        kind="drawn",
        symbols="qᵢ kᵢ / √d",
        numbers=f"{factor(q)}·{factor(k)} / √{d} = {number(again)}",
        inputs=(from_q, from_k),
        recomputed=again,
        source=Source("explorer/analysis/attention.py", "return q[query] * keys[key] / np.sqrt("),
    )


def pair_of(trace: Trace, layer: int, head: int, vector: str, position: int, pair: int):
    """The two numbers of a pair of q or k before its rotation, and where they are from."""
    name = f"blocks.{layer}.attn.{vector}"
    return take(
        trace, name, head * len(trace[name]) // trace.config.num_heads, position, dims_of_pair(trace.config, pair)
    )


def dims_of_pair(config: ModelConfig, pair: int) -> slice:
    """The dimensions that turn together. NoSuchPoint where there is no such pair."""
    if not 0 <= pair < config.d_head // 2:
        raise NoSuchPoint(f"there is no pair {pair}")
    if config.rope_layout == "adjacent":
        return slice(2 * pair, 2 * pair + 2)
    return slice(pair, None, config.d_head // 2)


def turned_pair(trace: Trace, layer: int, head: int, query: int, key: int, pair: int, angle: float):
    """|q||k| cos(φ + angle) / √d of a pair: with its numbers, its value, and what it is worked out from."""
    (q, from_q), (k, from_k) = (
        pair_of(trace, layer, head, vector, position, pair) for vector, position in (("q", query), ("k", key))
    )
    size, between = math.hypot(*q) * math.hypot(*k), math.atan2(q[1], q[0]) - math.atan2(k[1], k[0])
    value = size * math.cos(between + angle) / math.sqrt(trace.config.d_head)
    lengths = f"{number(math.hypot(*q))}·{number(math.hypot(*k))}"
    numbers = f"{lengths}·cos({number(between)} + {factor(angle)}) / √{trace.config.d_head} = {number(value)}"
    return numbers, value, (from_q, from_k)


def pair(trace: Trace, layer: int, head: int, query: int, key: int, number_of_pair: int) -> Inspection:
    """What one pair of dimensions adds to the score at the distance that the run has."""
    value = element(rope.score_by_pair(trace, layer, head, query, key), number_of_pair)
    (of_query, from_query), (of_key, from_key) = (
        take(trace, "rope.angles", position, number_of_pair) for position in (query, key)
    )
    angle = float(of_query - of_key)
    numbers, again, inputs = turned_pair(trace, layer, head, query, key, number_of_pair, angle)
    return Inspection(
        name=f"what pair {number_of_pair} adds to the score",
        place=f"layer {layer} head {head}, {query_and_key(trace, query, key)}",
        value=value,
        kind="drawn",
        symbols="|q||k| cos(φ + Δω) / √d, φ from k’s pair to q’s, Δω the difference of their angles",
        numbers=numbers,
        inputs=(*inputs, from_query, from_key),
        recomputed=again,
        source=Source(ROPE, 'turned = trace["rope.angles"][query].astype(np.float64) - trace["rope.angles"][key]'),
    )


def at_distance(trace: Trace, layer: int, head: int, query: int, key: int, distance: int) -> Inspection:
    """The score that the same q and k would have so far apart."""
    value = float(rope.score_by_distance(trace, layer, head, query, key, np.array([distance]))[0])
    speeds = np.nan_to_num(rope.frequencies(trace))
    parts = [turned_pair(trace, layer, head, query, key, i, distance * speed) for i, speed in enumerate(speeds)]
    terms = np.array([part for _, part, _ in parts])
    again = math.fsum(terms)
    group = head * trace.config.kv_heads // trace.config.num_heads
    reads = [
        take(trace, f"blocks.{layer}.attn.{vector}", part, position)[1]
        for vector, part, position in (("q", head, query), ("k", group, key))
    ]
    return Inspection(
        name=f"score at a distance of {distance}",
        place=f"layer {layer} head {head}, q and k of {query_and_key(trace, query, key)}",
        value=value,
        kind="drawn",
        symbols="score = Σ over pairs of |q||k| cos(φ + distance · ω) / √d",
        numbers=f"score = {summed(terms)} = {number(again)}",
        inputs=(*reads, take(trace, "rope.angles")[1]),
        recomputed=again,
        source=Source(ROPE, "return (matches(trace, layer, head, query, key) * np.exp(1j * turned)).real.sum(-1)"),
    )


def wavelength(trace: Trace, number_of_pair: int) -> Inspection | None:
    """How many positions a pair takes for a whole turn; None where it does not turn, or one token shows no turn."""
    speed = abs(element(rope.frequencies(trace), number_of_pair))
    if not speed > 0:
        return None
    last = len(trace) - 1
    (end, from_end), (start, from_start) = (take(trace, "rope.angles", row, number_of_pair) for row in (last, 0))
    again = 2 * math.pi * last / abs(float(end - start))
    return Inspection(
        name=f"positions that pair {number_of_pair} takes for a whole turn",
        place=f"from its angles at positions 0 and {last}",
        value=2 * math.pi / speed,
        kind="drawn",
        symbols="2π / ω, ω = (last angle − first) / positions between",
        numbers=f"2π · {last} / |{number(end)} − {number(start)}| = {number(again)}",
        inputs=(from_end, from_start),
        recomputed=again,
        source=Source(ROPE, "return (angles[-1] - angles[0]) / steps"),
    )
