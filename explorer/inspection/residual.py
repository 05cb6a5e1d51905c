"""Numbers worked out from the residual stream: lengths, angles between stages, and dimensions that stand out."""

import math
from statistics import median

import numpy as np

from explorer.analysis.recompute.source import Source
from explorer.analysis.recompute.working import products, summed, take
from explorer.analysis.residual import outliers, similarity, stages, stream
from explorer.inspection.inspection import Inspection, element
from explorer.inspection.tap import at
from explorer.style import number
from explorer.trace import Trace


def length(trace: Trace, row: int, position: int) -> Inspection:
    """‖stream‖ of a token at one of the `stages`."""
    place = stages(trace)[row]
    value = element(np.linalg.norm(stream(trace), axis=-1), row, position)
    x, read = take(trace, place.tap, position)
    again = math.sqrt(math.fsum(x * x))
    return Inspection(
        name=f"length of the stream at {place.name}",
        place=at(trace, position),
        value=value,
        kind="drawn",
        symbols="‖x‖₂ = √Σx²",
        numbers=f"‖x‖₂ = √{summed(x * x)} = √{number(again**2)} = {number(again)}",
        inputs=(read,),
        recomputed=again,
        source=Source("explorer/views/residual_stream.py", "values = np.linalg.norm(stream(trace), axis=-1)"),
    )


def cosine(trace: Trace, query: int, row: int, column: int) -> Inspection:
    """Of the angle between a token's stream at two of the `stages`."""
    places = stages(trace)
    value = element(similarity(trace, query), row, column)
    (a, from_a), (b, from_b) = (take(trace, places[i].tap, query) for i in (row, column))
    lengths = [math.sqrt(math.fsum(x * x)) for x in (a, b)]
    scale = lengths[0] * lengths[1]
    again = math.fsum(a * b) / scale if scale else 0.0
    return Inspection(
        name=f"cosine of the stream at {places[row].name} and at {places[column].name}",
        place=at(trace, query),
        value=value,
        kind="drawn",
        symbols="cosine = a·b / (‖a‖ ‖b‖)",
        numbers=f"cosine = {products(a, b)} / ({number(lengths[0])} · {number(lengths[1])}) = {number(again)}",
        inputs=(from_a, from_b),
        recomputed=again,
        source=Source("explorer/analysis/residual.py", "return (units @ units.T)"),
    )


def outlier(trace: Trace, row: int, column: int) -> Inspection:
    """How far a dimension stands out at one of the `stages`."""
    found = outliers(trace)
    value = element(found.times, row, column)
    place, dimension = stages(trace)[row], int(found.dimensions[column])
    x, read = take(trace, place.tap)
    sizes = [math.fsum(abs(x[:, i])) / len(x) for i in range(x.shape[1])]
    typical = median(sizes)
    again = sizes[dimension] / typical if typical else 0.0
    return Inspection(
        name=f"dimension {dimension} at {place.name}, in multiples of the median dimension",
        place=f"over all {len(trace)} tokens",
        value=value,
        kind="drawn",
        symbols="mean |value| of the dimension / median of the mean |value| of all",
        numbers=f"{number(sizes[dimension])} / {number(typical)} = {number(again)}",
        inputs=(read,),
        recomputed=again,
        source=Source("explorer/analysis/residual.py", "times = np.divide(sizes, typical"),
    )
