"""Tokens and other places in words."""

import re

from explorer.explain.notation import quoted
from explorer.language import N_, _, look_up
from explorer.state.interventions import Text
from explorer.tracing.trace import Trace

# what the last axis counts -> whose vector it is, "" for that of no layer -> an element of it in words
ELEMENTS = {
    "neuron": {"layer": N_("layer {layer}, {token}, neuron {last}")},
    "pair": {"": N_("{token}, pair {last}")},
    "dimension": {
        "kv_head": N_("layer {layer} kv head {head}, {token}, dimension {last}"),
        "head": N_("layer {layer} head {head}, {token}, dimension {last}"),
        "layer": N_("layer {layer}, {token}, dimension {last}"),
        "": N_("{token}, dimension {last}"),
    },
}

MOST_WRITTEN = 40  # characters of a text within a sentence


def as_text(trace: Trace) -> Text:
    """How tokens of a run's model are written within a sentence."""

    def written(token_ids: tuple[int, ...]) -> str:
        text = trace.text(token_ids)
        return quoted(text if len(text) <= MOST_WRITTEN else f"{text[: MOST_WRITTEN - 1]}…")

    return written


def place(trace: Trace, name: str, index: tuple[int, ...]) -> str:
    """An element of a captured value in words, as in "layer 2 head 1, query “·fox” (7) → key “·a” (2)"."""
    in_block = re.match(r"blocks\.(\d+)\.", name)
    layer = int(in_block[1]) if in_block else None
    *head, token, last = index
    if name.endswith((".scores", ".pattern")):
        return of_head(trace, layer, *index)
    if name == "logits":
        return _("after {token}, of {of}", token=at(trace, token), of=of_id(trace, last))
    part = "pair" if name.endswith("rope.angles") else "dimension"
    if name.endswith((".gate_pre", ".gate", ".up", ".hidden")):
        part = "neuron"
    whose = "layer" if in_block else ""
    if head:
        whose = "kv_head" if len(trace[name]) < trace.config.num_heads else "head"
    return look_up(
        ELEMENTS[part][whose], layer=layer, head=head[0] if head else None, token=at(trace, token), last=last
    )


def at(trace: Trace, position: int) -> str:
    """A token and its position, as in "“·fox” (7)"."""
    return f"{quoted(trace.tokens[position])} ({position})"


def of_id(trace: Trace, token_id: int) -> str:
    """A token of the vocabulary, as in "“·fox” (id 417)"."""
    return _("{token} (id {token_id})", token=quoted(trace.vocabulary[token_id]), token_id=token_id)


def query_and_key(trace: Trace, query: int, key: int) -> str:
    return _("query {query} → key {key}", query=at(trace, query), key=at(trace, key))


def of_head(trace: Trace, layer: int, head: int, query: int, key: int) -> str:
    """A cell of a head's pattern, as in "layer 2 head 1, query “·fox” (7) → key “·a” (2)"."""
    return _(
        "layer {layer} head {head}, query {query} → key {key}",
        layer=layer,
        head=head,
        query=at(trace, query),
        key=at(trace, key),
    )
