"""Lengths of what the cache holds."""

import math

from explorer.analysis.kv_cache import cached_lengths, cached_name, positions_computed, whole_lengths
from explorer.explain.captured.inspect import at
from explorer.explain.inspection import Inspection, element
from explorer.explain.notation import number
from explorer.explain.source import Source
from explorer.explain.working import summed, take
from explorer.tracing.trace import Trace
from model.counting import kv_cache_bytes_per_token

NAMES = {"k": "key", "v": "value"}


def length(trace: Trace, part: str, layer: int, group: int | None, position: int, query: int) -> Inspection | None:
    """Of what is stored of a position, of one kv head or of all; None where nothing is yet."""
    lengths = whole_lengths(trace, part)[layer : layer + 1] if group is None else cached_lengths(trace, layer, part)
    value = element(lengths, group or 0, position)
    if position > query:
        return None
    x, read = take(trace, cached_name(trace, layer, part), slice(None) if group is None else group, position)
    squares = (x * x).ravel()
    again = math.sqrt(math.fsum(squares))
    whose = "all kv heads" if group is None else f"kv head {group}"
    return Inspection(
        name=f"length of the {NAMES[part]}{'s' * (group is None)} of layer {layer}, {whose}",
        place=at(trace, position),
        value=value,
        kind="drawn",
        symbols="‖x‖₂ = √Σx²",
        numbers=f"‖x‖₂ = √{summed(squares)} = {number(again)}",
        inputs=(read,),
        recomputed=again,
        source=Source(
            "explorer/analysis/kv_cache.py", "return np.stack([" if group is None else "return np.linalg.norm(trace["
        ),
    )


def megabytes(trace: Trace, stored: int, shared: bool) -> Inspection:
    """In the cache after so many positions, of heads as they share keys and values or as if none did."""
    config = trace.config
    heads = config.kv_heads if shared else config.num_heads
    value = kv_cache_bytes_per_token(config) * heads // config.kv_heads * (stored / 1e6)
    again = 2 * config.num_layers * heads * config.d_head * 4 * stored / 1e6
    factors = f"2·{config.num_layers}·{heads}·{config.d_head}·4·{stored}"
    return Inspection(
        name="megabytes in the cache",
        place=f"after {stored} positions",
        value=value,
        kind="drawn",
        symbols=f"2 (key, value) · layers · {'kv ' * shared}heads · d · 4 bytes · positions / 10⁶",
        numbers=f"{factors} / 1,000,000 = {number(again)}",
        inputs=(),
        recomputed=again,
        source=Source("explorer/views/kv_cache/savings.py", "each = kv_cache_bytes_per_token(config)"),
    )


def computed(trace: Trace, step: int, cached: bool) -> Inspection:
    """Positions that have gone through the model by a step of a token, with a cache or without."""
    found = positions_computed(len(trace))[0 if cached else 1]
    value = element(found, step - 1)
    again = float(step if cached else sum(range(1, step + 1)))
    return Inspection(
        name=f"positions computed {'with the cache' if cached else 'without a cache'}",
        place=f"in {step} steps",
        value=value,
        kind="drawn",
        symbols="n, one a step" if cached else "1 + 2 + … + n = n (n + 1) / 2",
        numbers=f"{step}" if cached else f"{step} · {step + 1} / 2 = {int(again):,}",
        inputs=(),
        recomputed=again,
        source=Source("explorer/analysis/kv_cache.py", "return n, n * (n + 1) // 2"),
    )
