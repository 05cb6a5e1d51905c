"""Numbers worked out from the vectors that are added for positions."""

import math

import numpy as np

from explorer.analysis import positions
from explorer.explain.captured.inspect import at
from explorer.explain.inspection import Inspection, element
from explorer.explain.notation import number
from explorer.explain.source import Source
from explorer.explain.working import products, summed, take
from explorer.tracing.trace import Trace

POSITIONS, NAME = "explorer/analysis/positions.py", "position_embed"


def cosine(trace: Trace, query: int, key: int) -> Inspection:
    """Of what is added at two positions."""
    value = element(positions.cosines(trace), query, key)
    (p, from_p), (other, from_other) = (take(trace, NAME, position) for position in (query, key))
    lengths = [math.sqrt(math.fsum(x * x)) for x in (p, other)]
    scale = lengths[0] * lengths[1]
    again = math.fsum(p * other) / scale if scale else 0.0
    return Inspection(
        name=f"cosine of the vectors added at positions {query} and {key}",
        place=f"{at(trace, query)} and {at(trace, key)}",
        value=value,
        kind="drawn",
        symbols="cosine = p·p′ / (‖p‖ ‖p′‖)",
        numbers=f"cosine = {products(p, other)} / ({number(lengths[0])} · {number(lengths[1])}) = {number(again)}",
        inputs=(from_p, from_other),
        recomputed=again,
        source=Source(POSITIONS, "return units @ units.T"),
    )


def mean_cosine(trace: Trace, distance: int) -> Inspection:
    """Of all pairs of positions as far apart."""
    value = element(positions.by_distance(trace).mean, distance)
    pairs = [cosine(trace, key + distance, key).recomputed for key in range(len(trace) - distance)]
    again = math.fsum(pairs) / len(pairs)
    _, read = take(trace, NAME)
    return Inspection(
        name="mean cosine of the vectors added at two positions",
        place=f"all {len(pairs)} pairs {distance} apart",
        value=value,
        kind="drawn",
        symbols="mean of p·p′ / (‖p‖ ‖p′‖)",
        numbers=f"{summed(np.array(pairs))} / {len(pairs)} = {number(again)}",
        inputs=(read,),
        recomputed=again,
        source=Source(POSITIONS, "return ByDistance("),
    )


def length(trace: Trace, part: str, position: int) -> Inspection:
    """‖x‖₂ of one of `PARTS` at a position."""
    value = element(positions.lengths(trace), positions.PARTS.index(part), position)
    if part == "token":
        x, read = take(trace, "token_embedding.weight", trace.token_ids[position])
        x = x * (math.sqrt(trace.config.d_model) if trace.config.scale_embeddings else 1.0)
    else:
        x, read = take(trace, {"position": NAME, "sum": "embed"}[part], position)
    again = math.sqrt(math.fsum(x * x))
    return Inspection(
        name=f"length of the {part}{' vector' * (part != 'sum')}",
        place=at(trace, position),
        value=value,
        kind="drawn",
        symbols=f"‖x‖₂ = √Σx²{', x = row · √D' * (part == 'token' and trace.config.scale_embeddings)}",
        numbers=f"‖x‖₂ = √{summed(x * x)} = {number(again)}",
        inputs=(read,),
        recomputed=again,
        source=Source(POSITIONS, "return np.stack([np.linalg.norm(x, axis=-1)"),
    )
