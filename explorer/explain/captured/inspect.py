"""Any element of any captured value."""

import re

from explorer.explain.captured import formula_of, work_out
from explorer.explain.inspection import Inspection, element
from explorer.explain.notation import quoted
from explorer.explain.working import subscript
from explorer.tracing.trace import Trace


def inspect(trace: Trace, name: str, index: tuple[int, ...]) -> Inspection:
    """How one element of a captured value comes about.

    Raises:
        NoSuchPoint: it has no such element.
        KeyError: nothing was captured under that name, or no formula is known for it.
    """
    value = element(trace[name], *index)
    working = work_out(trace, name, index)
    return Inspection(
        name=f"{name}{subscript(index)}",
        place=place(trace, name, index),
        value=value,
        kind="captured",
        symbols=working.symbols,
        numbers=working.numbers,
        inputs=working.inputs,
        recomputed=working.value,
        source=formula_of(trace.config, name).source,
    )


def place(trace: Trace, name: str, index: tuple[int, ...]) -> str:
    """An element of a captured value in words, as in "layer 2 head 1, query “·fox” (7) → key “·a” (2)"."""
    layer = re.match(r"blocks\.(\d+)\.", name)
    *head, token, last = index
    before = f"layer {layer[1]}" if layer else ""
    if head:
        shared = len(trace[name]) < trace.config.num_heads
        before += f" {'kv ' * shared}head {head[0]}"
    if name.endswith((".scores", ".pattern")):
        return f"{before}, {query_and_key(trace, token, last)}"
    if name == "logits":
        return f"after {at(trace, token)}, of {quoted(trace.vocabulary[last])} (id {last})"
    part = "pair" if name == "rope.angles" else "dimension"
    if name.endswith((".gate_pre", ".gate", ".up", ".hidden")):
        part = "neuron"
    return f"{before}{', ' * bool(before)}{at(trace, token)}, {part} {last}"


def at(trace: Trace, position: int) -> str:
    """A token and its position, as in "“·fox” (7)"."""
    return f"{quoted(trace.tokens[position])} ({position})"


def query_and_key(trace: Trace, query: int, key: int) -> str:
    return f"query {at(trace, query)} → key {at(trace, key)}"
