"""Numbers worked out from the residual stream: lengths, angles between stages, and dimensions that stand out."""

import math
from statistics import median

import numpy as np

from explorer.analysis import residual
from explorer.analysis.norms import kinds, norm_scale
from explorer.analysis.residual import norm_reading, outliers, residual_norms, similarity, stages, update_names
from explorer.architecture.stream import before_value, input_of, sublayers, sum_with, written_by
from explorer.explain.analysed import arithmetic
from explorer.explain.captured.norms import mean_square
from explorer.explain.derivation import Derivation
from explorer.explain.notation import number
from explorer.explain.place import at
from explorer.explain.point import element, nth
from explorer.explain.source import Source
from explorer.explain.working import Working, take
from explorer.language import _, ngettext
from explorer.state.errors import NoSuchPoint
from explorer.tracing.trace import Trace

RESIDUAL = "explorer/analysis/residual.py"


def length(trace: Trace, row: int, position: int) -> Derivation:
    """‖stream‖ of a token at one of the `stages`."""
    place = nth(stages(trace), row)
    drawn = element(residual.stream_lengths(trace), row, position)
    x, read = take(trace, place.tap, position)
    return Derivation(
        _("length of the stream at {stage}", stage=place.name),
        at(trace, position),
        drawn,
        arithmetic.length(x, (read,), with_square=True),
        Source(RESIDUAL, "return np.linalg.norm(stream(trace), axis=-1)"),
    )


def stage_length(trace: Trace, row: int, position: int) -> Derivation:
    """‖stream‖ of a token at one of the stages that no norm has touched."""
    every = stages(trace)
    return length(trace, every.index(nth(stages(trace, normed=False), row)), position)


def median_length(trace: Trace, row: int) -> Derivation:
    """Of the stream of all tokens at one of the `stages` that no norm has touched."""
    place = nth(stages(trace, normed=False), row)
    x, read = take(trace, place.tap)
    sizes = [arithmetic.length(vector, ()).value for vector in x]
    value = median(sizes)
    numbers = {"least": number(min(sizes)), "most": number(max(sizes)), "value": number(value)}
    working = Working(
        _("median of ‖x‖₂ = √Σx²"), lambda: _("the middle of {least} to {most}: {value}", **numbers), value, (read,)
    )
    return Derivation(
        _("median length of the stream at {stage}", stage=place.name),
        over_all(trace),
        float(residual_norms(trace).median[row]),
        working,
        Source(RESIDUAL, "return np.median(self.stream, axis=1)"),
    )


def over_all(trace: Trace) -> str:
    return ngettext("over {count} token", "over all {count} tokens", len(trace))


def written_length(trace: Trace, sublayer: int, position: int) -> Derivation:
    """‖what a sublayer adds‖ of a token, attention and feed-forward in turn."""
    drawn = element(residual_norms(trace).updates, sublayer, position)
    name = written_by(trace.config, *sublayers(trace.config)[sublayer])
    x, read = take(trace, name, position)
    return Derivation(
        _("length of {value}", value=name),
        at(trace, position),
        drawn,
        arithmetic.length(x, (read,)),
        Source(RESIDUAL, "lengths = [np.linalg.norm(vectors, axis=-1) for vectors in"),
    )


def cosine(trace: Trace, query: int, row: int, column: int) -> Derivation:
    """Of the angle between a token's stream at two of the `stages`."""
    places = stages(trace)
    drawn = element(similarity(trace, query), row, column)
    return Derivation(
        _("cosine of the stream at {one} and at {other}", one=places[row].name, other=places[column].name),
        at(trace, query),
        drawn,
        arithmetic.cosine(*(take(trace, places[i].tap, query) for i in (row, column))),
        Source(RESIDUAL, "return (units @ units.T)"),
    )


def direction(trace: Trace, sublayer: int, position: int) -> Derivation:
    """The cosine of what a sublayer adds with the stream that it is added to."""
    drawn = element(residual.updates(trace, position).cosines, sublayer)
    config, which = trace.config, sublayers(trace.config)[sublayer]
    added = take(trace, written_by(config, *which), position)
    before = take(trace, before_value(config, sum_with(config, *which)), position)
    return Derivation(
        _("cosine of what {stage} adds and the stream", stage=update_names(config)[sublayer]),
        at(trace, position),
        drawn,
        arithmetic.cosine(added, before, (_("added"), "x")),
        Source(RESIDUAL, "cosines = np.divide(products, scale"),
    )


def outlier(trace: Trace, row: int, column: int) -> Derivation:
    """How far a dimension stands out at one of the `stages`."""
    found = outliers(trace)
    drawn = element(found.times, row, column)
    place, dimension = stages(trace)[row], int(found.dimensions[column])
    x, read = take(trace, place.tap)
    sizes = [math.fsum(abs(x[:, i])) / len(x) for i in range(x.shape[1])]
    symbols = _("mean |value| of the dimension / median of the mean |value| of all")
    name = _(
        "dimension {dimension} at {stage}, in multiples of the median dimension", dimension=dimension, stage=place.name
    )
    return Derivation(
        name,
        over_all(trace),
        drawn,
        arithmetic.quotient(symbols, sizes[dimension], median(sizes), (read,)),
        Source(RESIDUAL, "times = np.divide(sizes, typical"),
    )


def divisor(trace: Trace, norm: str, position: int) -> Derivation:
    """What a norm divides a token's vector by."""
    tap, places = input_of(trace.config, norm), np.arange(len(trace))
    drawn, kind = element(norm_scale(trace, trace[tap], norm, places), position), str(kinds(trace, norm, position))
    x, read = take(trace, tap, position)
    squares, eps = float(mean_square(x, kinds(trace, norm, position))), trace.config.norm_eps
    value = math.sqrt(squares + eps) if kind != "none" else 1.0
    symbols = {"layernorm": _("√(var x + ε)"), "rmsnorm": _("√(mean x² + ε)"), "none": _("1: it does not divide")}[kind]
    numbers = f"√({number(squares)} + {number(eps)}) = {number(value)}" if kind != "none" else "= 1"
    working = Working(symbols, lambda: numbers, value, (read,))
    source = Source("explorer/analysis/norms.py", "np.sqrt((x**2).mean(-1) + trace.config.norm_eps)")
    return Derivation(_("what the norm divides by"), at(trace, position), drawn, working, source)


def mean_taken_off(trace: Trace, norm: str, position: int) -> Derivation:
    """What LayerNorm takes off a token's vector before it divides."""
    reading = norm_reading(trace, norm)
    drawn = element(reading.means, position)
    if reading.kinds[position] != "layernorm":
        raise NoSuchPoint(_("at this token the norm is of another kind, which takes nothing off"))
    x, read = take(trace, reading.before, position)
    return Derivation(
        _("mean that {norm} takes off", norm=norm.rpartition(".")[2]),
        at(trace, position),
        drawn,
        arithmetic.mean(_("mean x = Σx / D"), x, (read,)),
        Source(RESIDUAL, "means = np.where("),
    )
