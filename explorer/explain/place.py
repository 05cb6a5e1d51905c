"""Tokens and other places in words."""

import re

from explorer.explain.notation import quoted
from explorer.tracing.trace import Trace


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
        return f"after {at(trace, token)}, of {of_id(trace, last)}"
    part = "pair" if name == "rope.angles" else "dimension"
    if name.endswith((".gate_pre", ".gate", ".up", ".hidden")):
        part = "neuron"
    return f"{before}{', ' * bool(before)}{at(trace, token)}, {part} {last}"


def at(trace: Trace, position: int) -> str:
    """A token and its position, as in "“·fox” (7)"."""
    return f"{quoted(trace.tokens[position])} ({position})"


def of_id(trace: Trace, token_id: int) -> str:
    """A token of the vocabulary, as in "“·fox” (id 417)"."""
    return f"{quoted(trace.vocabulary[token_id])} (id {token_id})"


def query_and_key(trace: Trace, query: int, key: int) -> str:
    return f"query {at(trace, query)} → key {at(trace, key)}"


def of_head(trace: Trace, layer: int, head: int, query: int, key: int) -> str:
    """A cell of a head's pattern, as in "layer 2 head 1, query “·fox” (7) → key “·a” (2)"."""
    return f"layer {layer} head {head}, {query_and_key(trace, query, key)}"
