"""Numbers worked out from neurons: what they push, and how many do next to nothing."""

import math

import numpy as np

from explorer.analysis.feed_forward import NEAR, later_norms, pushed, sparsity
from explorer.explain.analysed.attribution import through
from explorer.explain.captured.inspect import at
from explorer.explain.inspection import Inspection, element
from explorer.explain.notation import number, quoted
from explorer.explain.source import Source
from explorer.explain.working import products, take
from explorer.tracing.trace import Trace

FEED_FORWARD = "explorer/analysis/feed_forward.py"


def push(trace: Trace, layer: int, neuron: int, query: int, token_id: int) -> Inspection:
    """What a neuron adds to a token's logit for each 1 of its hidden value."""
    value = element(pushed(trace, layer, neuron, query), token_id)
    column, from_column = take(trace, f"blocks.{layer}.ffn.down_proj.weight", slice(None), neuron)
    vector, inputs = through(trace, (column, [from_column]), later_norms(trace, layer), query)
    row, from_row = take(trace, "lm_head.weight", token_id)
    again = float(vector @ row)
    return Inspection(
        name=f"what neuron {neuron} of layer {layer} adds for each 1 of its hidden value",
        place=f"after {at(trace, query)}, to the logit of {quoted(trace.vocabulary[token_id])} (id {token_id})",
        value=value,
        kind="drawn",
        symbols="norms(column of W_down) · row of the unembedding; each norm divides by what it did in this run",
        numbers=f"{products(vector, row)} = {number(again)}",
        inputs=(*inputs, from_row),
        recomputed=again,
        source=Source(FEED_FORWARD, "return unembed(trace, direction)"),
    )


def share_near_zero(trace: Trace, layer: int, silent: bool) -> Inspection:
    """How many hidden values of a layer do next to nothing; or how many of its neurons do at every token."""
    found = sparsity(trace)
    value = element(found.silent if silent else found.near_zero, layer)
    hidden, read = take(trace, f"blocks.{layer}.ffn.hidden")
    limit = 0.0 if trace.config.ffn == "relu" else NEAR * math.sqrt(float((hidden * hidden).mean()))
    near = np.abs(hidden) <= limit
    near = near.all(0) if silent else near
    again = float(near.sum()) / near.size
    limit_in_symbols = f"{NEAR:g} · √(mean hidden²)" if limit else "0"
    what = "neurons near 0 at every token" if silent else "hidden values near 0"
    return Inspection(
        name=f"share of {what}",
        place=f"layer {layer}, over all {len(trace)} tokens",
        value=value,
        kind="drawn",
        symbols=f"how many are at most {limit_in_symbols} in size / how many there are",
        numbers=f"{int(near.sum()):,} of at most {number(limit)} / {near.size:,} = {number(again)}",
        inputs=(read,),
        recomputed=again,
        source=Source(FEED_FORWARD, "shares.append((near.mean(), near.all(0).mean()))"),
    )
