"""Numbers worked out from neurons: what they push, and how many do next to nothing."""

import math

import numpy as np

from explorer.analysis.feed_forward import EXACT, NEAR, pushed, sparsity
from explorer.architecture.stream import way_of
from explorer.explain.analysed.arithmetic import product
from explorer.explain.analysed.attribution import THROUGH_NORMS, in_words, through, unembedding
from explorer.explain.derivation import Derivation
from explorer.explain.notation import number
from explorer.explain.place import at, of_id
from explorer.explain.point import element
from explorer.explain.source import Source
from explorer.explain.working import ALL, Working, take
from explorer.language import _, look_up, ngettext
from explorer.tracing.trace import Trace

FEED_FORWARD = "explorer/analysis/feed_forward.py"


def push(trace: Trace, layer: int, neuron: int, query: int, token_id: int) -> Derivation:
    """What a neuron adds to a token's logit for each 1 of its hidden value."""
    drawn = element(pushed(trace, layer, neuron, query), token_id)
    column, from_column = take(trace, f"blocks.{layer}.ffn.down_proj.weight", ALL, neuron)
    vector, inputs = through(trace, (column, [from_column]), way_of(trace.config, layer, "ffn"), query)
    row, from_row = unembedding(trace, token_id, query)
    return Derivation(
        _("what neuron {neuron} of layer {layer} adds for each 1 of its hidden value", neuron=neuron, layer=layer),
        _("after {place}, to the logit of {token}", place=at(trace, query), token=of_id(trace, token_id)),
        drawn,
        product(in_words(trace, look_up(THROUGH_NORMS[0], x=_("column of W_down"))), vector, row, (*inputs, from_row)),
        Source(FEED_FORWARD, "return unembed_part(trace, direction, query)"),
    )


def share_near_zero(trace: Trace, layer: int, silent: bool) -> Derivation:
    """How many hidden values of a layer do next to nothing; or how many of its neurons do at every token."""
    found = sparsity(trace)
    drawn = element(found.silent if silent else found.near_zero, layer)
    hidden, read = take(trace, f"blocks.{layer}.ffn.hidden")
    limit = 0.0 if trace.config.ffn in EXACT else NEAR * math.sqrt(float((hidden * hidden).mean()))
    near = np.abs(hidden) <= limit
    near = near.all(0) if silent else near
    value = float(near.sum()) / near.size
    limit_in_symbols = _("{share:g} · √(mean hidden²)", share=NEAR) if limit else "0"
    working = Working(
        _("how many are at most {limit} in size / how many there are", limit=limit_in_symbols),
        lambda: _(
            "{near:,} of at most {limit} / {size:,} = {value}",
            near=int(near.sum()),
            limit=number(limit),
            size=near.size,
            value=number(value),
        ),
        value,
        (read,),
    )
    name = _("share of neurons near 0 at every token") if silent else _("share of hidden values near 0")
    place = ngettext(
        "layer {layer}, over {count} token", "layer {layer}, over all {count} tokens", len(trace), layer=layer
    )
    source = Source(FEED_FORWARD, "shares.append((near.mean(), near.all(0).mean()))")
    return Derivation(name, place, drawn, working, source)
