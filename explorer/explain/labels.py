"""Text labels of tokens and elements of captured values."""

import re

from explorer.explain.notation import quote_token
from explorer.state.interventions import Text
from explorer.tracing.trace import Trace
from explorer.translations import N_, _, translate

# last axis -> owner of the vector ("" if it belongs to no layer) -> label of an element
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

MAX_TEXT_CHARACTERS = 40  # characters of a text within a sentence


def token_formatter(trace: Trace) -> Text:
    """Return a function that formats token ids of a run's model as a quoted text."""

    def format_tokens(token_ids: tuple[int, ...]) -> str:
        text = trace.text(token_ids)
        return quote_token(text if len(text) <= MAX_TEXT_CHARACTERS else f"{text[: MAX_TEXT_CHARACTERS - 1]}…")

    return format_tokens


def describe_element(trace: Trace, name: str, index: tuple[int, ...]) -> str:
    """Describe an element of a captured value, as in "layer 2 head 1, query “·fox” (7) → key “·a” (2)"."""
    in_block = re.match(r"blocks\.(\d+)\.", name)
    layer = int(in_block[1]) if in_block else None
    *head, token, last = index
    if name.endswith((".scores", ".pattern")):
        return format_attention_cell(trace, layer, *index)
    if name == "logits":
        return _("after {token}, of {of}", token=format_token_position(trace, token), of=format_token_id(trace, last))
    axis = "pair" if name.endswith("rope.angles") else "dimension"
    if name.endswith((".gate_pre", ".gate", ".up", ".hidden")):
        axis = "neuron"
    owner = "layer" if in_block else ""
    if head:
        owner = "kv_head" if len(trace[name]) < trace.config.num_heads else "head"
    return translate(
        ELEMENTS[axis][owner],
        layer=layer,
        head=head[0] if head else None,
        token=format_token_position(trace, token),
        last=last,
    )


def format_token_position(trace: Trace, position: int) -> str:
    """Format a token and its position, as in "“·fox” (7)"."""
    return f"{quote_token(trace.tokens[position])} ({position})"


def format_token_id(trace: Trace, token_id: int) -> str:
    """Format a token of the vocabulary, as in "“·fox” (id 417)"."""
    return _("{token} (id {token_id})", token=quote_token(trace.vocabulary[token_id]), token_id=token_id)


def format_query_key(trace: Trace, query: int, key: int) -> str:
    """Format a query and a key with their tokens."""
    return _(
        "query {query} → key {key}", query=format_token_position(trace, query), key=format_token_position(trace, key)
    )


def format_attention_cell(trace: Trace, layer: int, head: int, query: int, key: int) -> str:
    """Describe a cell of a pattern, as in "layer 2 head 1, query “·fox” (7) → key “·a” (2)"."""
    return _(
        "layer {layer} head {head}, query {query} → key {key}",
        layer=layer,
        head=head,
        query=format_token_position(trace, query),
        key=format_token_position(trace, key),
    )
