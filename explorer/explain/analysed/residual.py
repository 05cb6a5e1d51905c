"""Numbers worked out from the residual stream: lengths, angles between stages, and dimensions that stand out."""

import math
from statistics import median

import numpy as np

from explorer.analysis.norms import norm_scale
from explorer.analysis.residual import norm_reading, outliers, residual_norms, similarity, stages, stream, updates
from explorer.explain.captured.inspect import at
from explorer.explain.captured.norms import mean_square
from explorer.explain.inspection import Inspection, element, nth
from explorer.explain.notation import number
from explorer.explain.source import Source
from explorer.explain.working import products, summed, take
from explorer.tracing.trace import Trace

RESIDUAL = "explorer/analysis/residual.py"


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
        source=Source("explorer/views/residual/stream.py", "values = np.linalg.norm(stream(trace), axis=-1)"),
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
        source=Source(RESIDUAL, "return (units @ units.T)"),
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
        source=Source(RESIDUAL, "times = np.divide(sizes, typical"),
    )


def median_length(trace: Trace, row: int) -> Inspection:
    """Of the stream of all tokens at one of the `stages` that no norm has touched."""
    place = nth(stages(trace, normed=False), row)
    value = float(np.median(residual_norms(trace).stream[row]))
    x, read = take(trace, place.tap)
    sizes = [math.sqrt(math.fsum(vector * vector)) for vector in x]
    again = median(sizes)
    return Inspection(
        name=f"median length of the stream at {place.name}",
        place=f"over all {len(trace)} tokens",
        value=value,
        kind="drawn",
        symbols="median of ‖x‖₂ = √Σx²",
        numbers=f"the middle of {number(min(sizes))} to {number(max(sizes))}: {number(again)}",
        inputs=(read,),
        recomputed=again,
        source=Source("explorer/views/residual/stream.py", "y=np.median(found.stream, axis=1)"),
    )


def stage_length(trace: Trace, row: int, position: int) -> Inspection:
    """‖stream‖ of a token at one of the stages that no norm has touched."""
    every = stages(trace)
    return length(trace, every.index(nth(stages(trace, normed=False), row)), position)


def written_length(trace: Trace, sublayer: int, position: int) -> Inspection:
    """‖what a sublayer adds‖ of a token, attention and feed-forward in turn."""
    value = element(residual_norms(trace).updates, sublayer, position)
    name = f"blocks.{sublayer // 2}.{('attn', 'ffn')[sublayer % 2]}.out"
    x, read = take(trace, name, position)
    again = math.sqrt(math.fsum(x * x))
    return Inspection(
        name=f"length of {name}",
        place=at(trace, position),
        value=value,
        kind="drawn",
        symbols="‖x‖₂ = √Σx²",
        numbers=f"‖x‖₂ = √{summed(x * x)} = {number(again)}",
        inputs=(read,),
        recomputed=again,
        source=Source(RESIDUAL, "lengths = (np.linalg.norm(vectors, axis=-1) for vectors in"),
    )


def direction(trace: Trace, sublayer: int, position: int) -> Inspection:
    """The cosine of what a sublayer adds with the stream that it is added to."""
    found = updates(trace, position)
    value = element(found.cosines, sublayer)
    end = stages(trace, normed=False)[sublayer + 1]
    taps = [stage.tap for stage in stages(trace)]
    (added, from_added), (before, from_before) = (
        take(trace, name, position)
        for name in (f"blocks.{end.layer}.{('attn', 'ffn')[sublayer % 2]}.out", taps[taps.index(end.tap) - 1])
    )
    lengths = [math.sqrt(math.fsum(x * x)) for x in (added, before)]
    scale = lengths[0] * lengths[1]
    again = math.fsum(added * before) / scale if scale else 0.0
    return Inspection(
        name=f"cosine of what {end.name} adds and the stream",
        place=at(trace, position),
        value=value,
        kind="drawn",
        symbols="cosine = added·x / (‖added‖ ‖x‖)",
        numbers=f"cosine = {products(added, before)} / ({number(lengths[0])} · {number(lengths[1])}) = {number(again)}",
        inputs=(from_added, from_before),
        recomputed=again,
        source=Source(RESIDUAL, "cosines = np.divide(products, scale"),
    )


def divisor(trace: Trace, tap: str, position: int) -> Inspection:
    """What a norm divides a token's vector by, given the value that it reads."""
    value = element(norm_scale(trace, trace[tap]), position)
    x, read = take(trace, tap, position)
    squares, eps = float(mean_square(trace, x)), trace.config.norm_eps
    again = math.sqrt(squares + eps)
    what = "var x" if trace.config.norm == "layernorm" else "mean x²"
    return Inspection(
        name="what the norm divides by",
        place=at(trace, position),
        value=value,
        kind="drawn",
        symbols=f"√({what} + ε)",
        numbers=f"√({number(squares)} + {number(eps)}) = {number(again)}",
        inputs=(read,),
        recomputed=again,
        source=Source("explorer/analysis/norms.py", "return np.sqrt((x**2).mean(-1) + trace.config.norm_eps)"),
    )


def mean_taken_off(trace: Trace, layer: int, sublayer: str, position: int) -> Inspection:
    """What LayerNorm takes off a token's vector before it divides."""
    reading = norm_reading(trace, layer, sublayer)
    x, read = take(trace, reading.before, position)
    again = math.fsum(x) / len(x)
    return Inspection(
        name=f"mean that {sublayer}_norm takes off",
        place=at(trace, position),
        value=element(reading.means, position),
        kind="drawn",
        symbols="mean x = Σx / D",
        numbers=f"{summed(x)} / {len(x)} = {number(again)}",
        inputs=(read,),
        recomputed=again,
        source=Source(RESIDUAL, "return NormReading(name, before, x.mean(-1"),
    )
