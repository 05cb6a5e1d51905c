"""Lengths of what the cache holds."""

import math

from explorer.analysis.kv_cache import cached_lengths, cached_name, whole_lengths
from explorer.analysis.recompute.source import Source
from explorer.analysis.recompute.working import summed, take
from explorer.inspection.inspection import Inspection, element
from explorer.inspection.tap import at
from explorer.style import number
from explorer.trace import Trace

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
