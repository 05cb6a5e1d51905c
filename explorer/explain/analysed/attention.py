"""Numbers worked out from attention: other patterns, a query's way to its weights, and what heads do."""

import math
from collections.abc import Sequence

import numpy as np

from explorer.analysis.attention import PATTERNS, shown_pattern, stages
from explorer.analysis.change import pattern_change
from explorer.analysis.heads import HEAD_SCORES, head_scores
from explorer.explain.captured.inspect import inspect, query_and_key
from explorer.explain.inspection import Inspection, element
from explorer.explain.notation import number
from explorer.explain.source import Source
from explorer.explain.working import Input, factor, products, summed, take
from explorer.tracing.trace import Trace

ATTENTION, HEADS = "explorer/analysis/attention.py", "explorer/analysis/heads.py"


def shown_weight(
    trace: Trace, layer: int, head: int, query: int, key: int, kind: str, chosen: Sequence[tuple[int, int]] = ()
) -> Inspection | None:
    """A cell of one of `PATTERNS`; None after the query, where nothing is drawn."""
    name = f"blocks.{layer}.attn.pattern"
    if key > query:
        return None
    if kind == "weight":
        return inspect(trace, name, (head, query, key))
    value = element(shown_pattern(trace, layer, head, kind, chosen), query, key)
    if kind in ("chosen_mean", "chosen_max"):
        return of_chosen(trace, chosen or ((layer, head),), query, key, kind, value)
    if kind == "moved":
        return moved(trace, layer, head, query, key, value)
    if kind == "without_first":
        weights, read = take(trace, name, head, query, slice(1, query + 1))
        rest = float(weights.sum())
        again = float(weights[key - 1]) / rest if key and rest > 1e-12 else 0.0
        symbols = "weight without the first = weight / Σ weights of all keys but the first"
        numbers = (
            f"{number(weights[key - 1])} / {number(rest)} = {number(again)}" if key else "0: the first is left out"
        )
        source = Source(HEADS, "return np.divide(rest, total")
        return drawn(trace, kind, (layer, head, query, key), value, symbols, numbers, (read,), again, source)
    weights, read = take(trace, name, slice(None), query, key)
    if kind == "layer_mean":
        again, source = float(weights.mean()), Source(ATTENTION, "return patterns.mean(0)")
        numbers = f"{summed(weights)} / {len(weights)} = {number(again)}"
        symbols = "mean = Σ weights of the heads / H"
    else:
        again, source = max(weights.tolist()), Source(ATTENTION, "return patterns.max(0)")
        numbers = f"that of head {int(weights.argmax())}: {number(again)}"
        symbols = "the largest weight of the heads"
    return drawn(trace, kind, (layer, None, query, key), value, symbols, numbers, (read,), again, source)


def of_chosen(
    trace: Trace, chosen: Sequence[tuple[int, int]], query: int, key: int, kind: str, value: float
) -> Inspection:
    """The mean or the largest weight of several heads."""
    found = [take(trace, f"blocks.{layer}.attn.pattern", head, query, key) for layer, head in chosen]
    weights, inputs = np.array([float(weight) for weight, _ in found]), tuple(read for _, read in found)
    if kind == "chosen_mean":
        again, symbols = sum(weights.tolist()) / len(weights), "mean = Σ weights of the chosen heads / how many"
        numbers = f"{summed(weights)} / {len(weights)} = {number(again)}"
    else:
        again, symbols = max(weights.tolist()), "the largest weight of the chosen heads"
        layer, head = chosen[int(weights.argmax())]
        numbers = f"that of layer {layer} head {head}: {number(again)}"
    place = f"{len(weights)} chosen heads, {query_and_key(trace, query, key)}"
    source = Source(ATTENTION, "return heads.max(0) if")
    return Inspection(PATTERNS[kind], place, value, "drawn", symbols, numbers, inputs, again, source)


def drawn(trace: Trace, kind: str, place, value: float, *rest) -> Inspection:
    layer, head, query, key = place
    whose = f"layer {layer}" if head is None else f"layer {layer} head {head}"
    return Inspection(PATTERNS[kind], f"{whose}, {query_and_key(trace, query, key)}", value, "drawn", *rest)


def moved(trace: Trace, layer: int, head: int, query: int, key: int, value: float) -> Inspection:
    """Weight × length of the value as written."""
    weight, read = take(trace, f"blocks.{layer}.attn.pattern", head, query, key)
    length, inputs = length_written(trace, layer, head, key)
    again = float(weight) * length
    symbols, numbers = "moved = weight · ‖W_O v‖", f"{number(weight)} · {number(length)} = {number(again)}"
    source = Source(ATTENTION, "return patterns[head] * written_lengths(")
    return drawn(trace, "moved", (layer, head, query, key), value, symbols, numbers, (read, *inputs), again, source)


def length_written(trace: Trace, layer: int, head: int, key: int) -> tuple[float, tuple[Input, ...]]:
    """‖W_O v‖ of a head's value, and what it is worked out from."""
    group = head * trace.config.kv_heads // trace.config.num_heads
    v, from_v = take(trace, f"blocks.{layer}.attn.v", group, key)
    columns = slice(head * len(v), (head + 1) * len(v))
    output, from_output = take(trace, f"blocks.{layer}.attn.o_proj.weight", slice(None), columns)
    return math.sqrt(math.fsum(x * x for x in output @ v)), (from_v, from_output)


def changed_weight(trace: Trace, layer: int, head: int, query: int, key: int) -> Inspection | None:
    """By how much edits changed a weight; None after the query, where nothing is drawn."""
    if key > query:
        return None
    name, where = f"blocks.{layer}.attn.pattern", (head, query, key)
    after, before = inspect(trace, name, where), inspect(trace.baseline, name, where)
    again = after.recomputed - before.recomputed
    return Inspection(
        name="change of the attention weight",
        place=after.place,
        value=element(pattern_change(trace, layer, head), query, key),
        kind="drawn",
        symbols="change = changed weight − unchanged weight",
        numbers=f"changed: {after.numbers}; unchanged: {before.numbers}; change = {number(again)}",
        inputs=(*after.inputs, *before.inputs),
        recomputed=again,
        source=Source("explorer/analysis/change.py", "return trace[name][head] - trace.baseline[name][head]"),
    )


STAGES = ("q·k", "score", "masked", "weight", "length", "moved")


def stage(trace: Trace, layer: int, head: int, query: int, key: int, row: int) -> Inspection | None:
    """A number of a query's way from products to what is fetched; None where the mask leaves none.

    Args:
        row: which of `STAGES`.
    """
    name, where = STAGES[row], (head, query, key)
    if name in ("score", "masked"):
        return None if name == "masked" and key > query else inspect(trace, f"blocks.{layer}.attn.scores", where)
    if name == "weight":
        return inspect(trace, f"blocks.{layer}.attn.pattern", where)
    place = f"layer {layer} head {head}, {query_and_key(trace, query, key)}"
    steps = stages(trace, layer, head, query)
    if name == "q·k":
        score = inspect(trace, f"blocks.{layer}.attn.scores", where)
        (q, _), (k, _) = (take(trace, read.name, *read.index) for read in score.inputs)
        again, source = float(q @ k), Source(ATTENTION, "dots=scores * np.sqrt(trace.config.d_head)")
        symbols, numbers = "q·k = Σ q · k", f"q·k = {products(q, k)} = {number(again)}"
        return Inspection(name, place, element(steps.dots, key), "drawn", symbols, numbers, score.inputs, again, source)
    if name == "moved":
        return moved(trace, layer, head, query, key, float(steps.weights[key] * steps.lengths[key]))
    length, inputs = length_written(trace, layer, head, key)
    symbols, numbers = "length of W_O v = √Σ (W_O v)²", f"√{number(length**2)} = {number(length)}"
    source = Source(ATTENTION, "return np.linalg.norm(values @ output.T")
    value = element(steps.lengths, key)
    return Inspection("length of W_O v", place, value, "drawn", symbols, numbers, inputs, length, source)


def head_score(trace: Trace, name: str, hide_first: bool, layer: int, head: int) -> Inspection | None:
    """What a head does, in a number: one of `HEAD_SCORES`; None where no query of this run counts."""
    value = element(head_scores(trace, name, hide_first), layer, head)
    if math.isnan(value):
        return None
    rows, read = take(trace, f"blocks.{layer}.attn.pattern", head)
    each = {}
    for query in range(1, len(trace)):
        weights = rows[query, : query + 1].tolist()
        if hide_first:
            rest = sum(weights[1:])
            weights = [0.0, *(w / rest if rest > 1e-12 else 0.0 for w in weights[1:])]
        if name == "spread":
            each[query] = -sum(w * math.log2(w) for w in weights if w > 0) / math.log2(query + 1)
        elif keys := looked_at(trace.token_ids, name, query):
            each[query] = sum(weights[key] for key in keys)
    again = sum(each.values()) / len(each)
    what = "entropy of its weights / log₂ of how many" if name == "spread" else MEANT[name]
    left_out = ", the first token left out" * hide_first
    return Inspection(
        name=f"{name.replace('_', ' ')} score",
        place=f"layer {layer} head {head}: how much it {HEAD_SCORES[name]}{left_out}",
        value=value,
        kind="drawn",
        symbols=f"score = mean over queries of the {what}",
        numbers=f"score = {summed(np.array(list(each.values())))} / {len(each)} = {factor(again)}",
        inputs=(read,),
        recomputed=again,
        source=Source(HEADS, "return mean(-(rows * logs)" if name == "spread" else "return mean((patterns"),
    )


MEANT = {
    "previous_token": "weight of the token before",
    "first_token": "weight of the first token",
    "self": "weight of the token itself",
    "duplicate_token": "weight of earlier occurrences of the same token",
    "induction": "weight of what followed the last earlier occurrence of the same token",
}


def looked_at(ids: Sequence[int], name: str, query: int) -> list[int]:
    """The keys whose weights a score adds up."""
    if name == "duplicate_token":
        return [key for key in range(query) if ids[key] == ids[query]]
    if name == "induction":
        *_, last = -1, *(key for key in range(query) if ids[key] == ids[query])
        return [last + 1] if 0 <= last < query - 1 else []
    return [{"previous_token": query - 1, "first_token": 0, "self": query}[name]]
