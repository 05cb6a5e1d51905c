"""Patterns, also of several heads, and a query's way to its weights."""

import math
from collections.abc import Sequence

import numpy as np

from explorer.analysis.attention import PATTERNS, shown_pattern, stages
from explorer.analysis.change import pattern_change
from explorer.architecture.attention import first_visible
from explorer.architecture.caps import written
from explorer.explain.analysed.arithmetic import largest, mean
from explorer.explain.captured import derivation_of
from explorer.explain.captured.attention import group_of
from explorer.explain.derivation import Derivation
from explorer.explain.notation import number, products
from explorer.explain.place import at, of_head, query_and_key
from explorer.explain.point import element, nth
from explorer.explain.source import Source
from explorer.explain.working import ALL, Input, Working, take
from explorer.language import N_, _, look_up, ngettext
from explorer.tracing.comparison import Comparison
from explorer.tracing.trace import Trace

ATTENTION, HEADS = "explorer/analysis/attention.py", "explorer/analysis/heads.py"


def shown_weight(
    trace: Trace, layer: int, head: int, query: int, key: int, kind: str, chosen: Sequence[tuple[int, int]] = ()
) -> Derivation | None:
    """A cell of one of `PATTERNS`; None after the query, where nothing is drawn."""
    if key > query:
        return None
    name = f"blocks.{layer}.attn.pattern"
    if kind == "weight":
        return derivation_of(trace, name, (head, query, key))
    value = element(shown_pattern(trace, layer, head, kind, chosen), query, key)
    place = of_head(trace, layer, head, query, key)
    if kind == "without_first":
        working, source = without_first(trace, name, head, query, key), Source(HEADS, "return np.divide(rest, total")
    elif kind == "moved":
        working, source = moved(trace, layer, head, query, key), MOVED
    elif kind in ("layer_mean", "layer_max"):
        weights, read = take(trace, name, ALL, query, key)
        working = of_several(kind, weights, [_("head {head}", head=each) for each in range(len(weights))], (read,))
        source = Source(ATTENTION, "return patterns.mean(0)" if kind == "layer_mean" else "return patterns.max(0)")
        ends = {"query": at(trace, query), "key": at(trace, key)}
        place = _("layer {layer}, query {query} → key {key}", layer=layer, **ends)
    else:
        heads = chosen or ((layer, head),)
        found = [take(trace, f"blocks.{i}.attn.pattern", j, query, key) for i, j in heads]
        weights, inputs = np.array([float(weight) for weight, _read in found]), tuple(read for _weight, read in found)
        working = of_several(kind, weights, [_("layer {layer} head {head}", layer=i, head=j) for i, j in heads], inputs)
        source = Source(ATTENTION, "return heads.max(0) if")
        ends = query_and_key(trace, query, key)
        place = ngettext("{count} chosen head, {ends}", "{count} chosen heads, {ends}", len(heads), ends=ends)
    return Derivation(look_up(PATTERNS[kind]), place, value, working, source)


OF_SEVERAL = {
    "layer_mean": N_("mean = Σ weights of the heads / H"),
    "layer_max": N_("the largest weight of the heads"),
    "chosen_mean": N_("mean = Σ weights of the chosen heads / how many"),
    "chosen_max": N_("the largest weight of the chosen heads"),
}


def of_several(kind: str, weights: np.ndarray, whose: Sequence[str], inputs: tuple[Input, ...]) -> Working:
    """The mean or the largest weight of several heads, one of `OF_SEVERAL`."""
    symbols = look_up(OF_SEVERAL[kind])
    return mean(symbols, weights, inputs) if kind.endswith("mean") else largest(symbols, weights, whose, inputs)


def without_first(trace: Trace, name: str, head: int, query: int, key: int) -> Working:
    weights, read = take(trace, name, head, query, slice(1, query + 1))
    rest = float(weights.sum())
    value = float(weights[key - 1]) / rest if key and rest > 1e-12 else 0.0
    return Working(
        _("weight without the first = weight / Σ weights of all keys but the first"),
        lambda: (
            f"{number(weights[key - 1])} / {number(rest)} = {number(value)}" if key else _("0: the first is left out")
        ),
        value,
        (read,),
    )


MOVED = Source(ATTENTION, "return patterns[head] * written_lengths(")


def moved(trace: Trace, layer: int, head: int, query: int, key: int) -> Working:
    """Weight × length of the value as written."""
    weight, read = take(trace, f"blocks.{layer}.attn.pattern", head, query, key)
    length, inputs = length_written(trace, layer, head, key)
    value = float(weight) * length
    numbers = f"{number(weight)} · {number(length)} = {number(value)}"
    return Working(_("moved = weight · ‖W_O v‖"), lambda: numbers, value, (read, *inputs))


def length_written(trace: Trace, layer: int, head: int, key: int) -> tuple[float, tuple[Input, ...]]:
    """‖W_O v‖ of a head's value, and what it is worked out from."""
    name = f"blocks.{layer}.attn.v"
    v, from_v = take(trace, name, group_of(trace, name, head), key)
    output, from_output = take(trace, f"blocks.{layer}.attn.o_proj.weight", ALL, columns_of(head, len(v)))
    return math.sqrt(math.fsum(x * x for x in output @ v)), (from_v, from_output)


def columns_of(head: int, d: int) -> slice:
    """Those of W_O that a head's z goes through."""
    return slice(head * d, (head + 1) * d)


def changed_weight(comparison: Comparison, layer: int, head: int, query: int, key: int) -> Derivation | None:
    """By how much edits changed a weight; None after the query, where nothing is drawn."""
    if key > query:
        return None
    name, where = f"blocks.{layer}.attn.pattern", (head, query, key)
    after, before = (derivation_of(run, name, where) for run in comparison.runs)
    value = after.recomputed - before.recomputed
    working = Working(
        _("change = changed weight − unchanged weight"),
        lambda: _(
            "changed: {changed}; unchanged: {unchanged}; change = {value}",
            changed=after.working.numbers(),
            unchanged=before.working.numbers(),
            value=number(value),
        ),
        value,
        (*after.working.inputs, *before.working.inputs),
    )
    source = Source("explorer/analysis/change.py", "return comparison.trace[name][head] - comparison.other[name][head]")
    drawn = element(pattern_change(comparison, layer, head), query, key)
    return Derivation(_("change of the attention weight"), after.place, drawn, working, source)


STAGES = {  # by whether scores are capped
    False: ("q·k", "score", "masked", "weight", "length", "moved"),
    True: ("q·k", "score", "capped", "masked", "weight", "length", "moved"),
}


def stage(trace: Trace, layer: int, head: int, query: int, key: int, row: int) -> Derivation | None:
    """A number of a query's way from products to what is fetched; None where the mask leaves none.

    Args:
        row: which of the model's `STAGES`.
    """
    cap = trace.config.score_cap
    name, where = nth(STAGES[cap is not None], row), (head, query, key)
    if name == "masked" and not first_visible(trace.config, layer, query) <= key <= query:
        return None
    captured = {"score": "scores", "masked": "scores", "weight": "pattern", "q·k": "scores"}
    if cap and name in ("capped", "masked"):
        return of_cap(trace, layer, head, query, key, cap)
    if name in captured:
        found = derivation_of(trace, f"blocks.{layer}.attn.{captured[name]}", where)
        return found if name != "q·k" else of_dot(trace, layer, head, query, key, found)
    steps = stages(trace, layer, head, query)
    drawn, place = element(steps.lengths, key), of_head(trace, layer, head, query, key)
    if name == "moved":
        drawn *= float(steps.weights[key])
        return Derivation(look_up(PATTERNS[name]), place, drawn, moved(trace, layer, head, query, key), MOVED)
    length, inputs = length_written(trace, layer, head, key)
    numbers = f"√{number(length**2)} = {number(length)}"
    working = Working(_("length of W_O v = √Σ (W_O v)²"), lambda: numbers, length, inputs)
    source = Source(ATTENTION, "return np.linalg.norm(values @ output.T")
    return Derivation(_("length of W_O v"), place, drawn, working, source)


def of_cap(trace: Trace, layer: int, head: int, query: int, key: int, cap: float) -> Derivation:
    """A score as a cap leaves it."""
    score, read = take(trace, f"blocks.{layer}.attn.scores", head, query, key)
    value = cap * math.tanh(score / cap)
    return Derivation(
        _("capped score"),
        of_head(trace, layer, head, query, key),
        element(stages(trace, layer, head, query).capped, key),
        Working(
            _("capped = {cap}", cap=written("score", cap)),
            lambda: _("capped = {cap} = {value}", cap=written(number(score), cap), value=number(value)),
            value,
            (read,),
        ),
        Source("explorer/architecture/caps.py", "return x if cap is None else cap * np.tanh(x / cap)"),
    )


def of_dot(trace: Trace, layer: int, head: int, query: int, key: int, score: Derivation) -> Derivation:
    """q·k, of the vectors that a score is worked out from."""
    inputs = score.working.inputs
    (q, _read), (k, _read) = (take(trace, read.name, *read.index) for read in inputs)
    value = float(q @ k)
    working = Working("q·k = Σ q · k", lambda: f"q·k = {products(q, k)} = {number(value)}", value, inputs)
    drawn = element(stages(trace, layer, head, query).dots, key)
    return Derivation("q·k", score.place, drawn, working, Source(ATTENTION, "dots=scores * trace.config.divisor"))
