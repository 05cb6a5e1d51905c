"""Parts of a logit: each forwards, from what is written into the stream to what the unembedding reads."""

import numpy as np

from explorer.analysis.attribution import Attribution, attribution
from explorer.analysis.feed_forward import later_norms
from explorer.explain.captured.inspect import at
from explorer.explain.captured.norms import divided
from explorer.explain.inspection import Inspection, element
from explorer.explain.notation import number, quoted
from explorer.explain.source import Source
from explorer.explain.working import Input, products, take
from explorer.tracing.trace import Trace

ATTRIBUTION = "explorer/analysis/attribution.py"
# part of a logit -> what it is, its number in an `Attribution` at a layer, and the line that works it out
PARTS = {
    "token": ("the token’s embedding", lambda a, layer: a.token, "token = float(value("),
    "position": ("its position", lambda a, layer: a.positions, "positions = float(value("),
    "heads": ("all heads", lambda a, layer: a.heads.sum(-1)[layer], "heads[layer] = (z * (read @ weights["),
    "bias": ("the bias of W_O", lambda a, layer: a.biases[layer], "biases[layer] = weights.get("),
    "attention": (
        "attention",
        lambda a, layer: a.heads.sum(-1)[layer] + a.biases[layer],
        "heads[layer] = (z * (read @ weights[",
    ),
    "feed_forward": ("the feed-forward", lambda a, layer: a.feed_forward[layer], "feed_forward[layer] = value("),
    "shift": ("the shift β of all norms", lambda a, layer: a.shift, 'read, shift = before_norm(trace, "final_norm"'),
    "sum": ("all parts together", lambda a, layer: a.total, "return float(self.token + self.positions"),
    "logit": ("the captured logit", lambda a, layer: a.logit, "read, logit = weights["),
}
Reads = tuple[np.ndarray, list[Input]]  # a vector (D,), and what it is worked out from


def logit_part(
    trace: Trace, position: int, token_id: int, rival_id: int | None, part: str, layer: int = 0
) -> Inspection:
    """What one of `PARTS` adds to a token's logit, or to its lead over a rival."""
    what, drawn, line = PARTS[part]
    found: Attribution = attribution(trace, position, token_id, rival_id)
    whose = f" of layer {layer}" if part in ("heads", "bias", "attention", "feed_forward") else ""
    symbols = "final_norm · row of the unembedding" if part in ("sum", "logit") else THROUGH_NORMS
    vector, inputs = final(trace, part, position, layer)
    name = f"{what}{whose}" if part == "logit" else f"what {what}{whose} add{'s' * (part not in ('heads', 'sum'))}"
    return adding(
        trace, position, token_id, rival_id, name, float(drawn(found, layer)), symbols, (vector, inputs), line
    )


def head_part(trace: Trace, position: int, token_id: int, rival_id: int | None, layer: int, head: int) -> Inspection:
    """What a head adds to a token's logit, or to its lead over a rival."""
    value = element(attribution(trace, position, token_id, rival_id).heads, layer, head)
    z, from_z = take(trace, f"blocks.{layer}.attn.z", head, position)
    columns = slice(head * len(z), (head + 1) * len(z))
    output, from_output = take(trace, f"blocks.{layer}.attn.o_proj.weight", slice(None), columns)
    vector = through(trace, (output @ z, [from_z, from_output]), after_attention(trace, layer), position)
    name, symbols = f"what head {head} of layer {layer} adds", f"norms(W_O z){THROUGH_NORMS.removeprefix('norms(x)')}"
    line = "heads[layer] = (z * (read @ weights["
    return adding(trace, position, token_id, rival_id, name, value, symbols, vector, line)


THROUGH_NORMS = "norms(x) · row of the unembedding; each norm divides by what it did in this run"


def adding(
    trace: Trace,
    position: int,
    token_id: int,
    rival_id: int | None,
    name: str,
    value: float,
    symbols: str,
    vector: Reads,
    line: str,
) -> Inspection:
    """A vector's product with what the unembedding reads."""
    final, inputs = vector
    ids = [i for i in (token_id, rival_id) if i is not None]
    rows, from_rows = zip(*(take(trace, "lm_head.weight", i) for i in ids), strict=True)
    direction = rows[0] if rival_id is None else rows[0] - rows[1]
    again = float(final @ direction)
    against = "" if rival_id is None else f" less that of {quoted(trace.vocabulary[rival_id])}"
    less = "" if rival_id is None else " less the rival’s"
    return Inspection(
        name=name,
        place=f"after {at(trace, position)}, to the logit of {quoted(trace.vocabulary[token_id])}{against}",
        value=value,
        kind="drawn",
        symbols=f"= {symbols.replace('unembedding', f'unembedding{less}', 1)}",
        numbers=f"{products(final, direction)} = {number(again)}",
        inputs=(*inputs, *from_rows),
        recomputed=again,
        source=Source(ATTRIBUTION, line),
    )


def final(trace: Trace, part: str, position: int, layer: int) -> Reads:
    """What the unembedding reads of a part."""
    if part in ("sum", "logit"):
        vector, read = take(trace, "final_norm", position)
        return vector, [read]
    if part == "shift":
        return shifts(trace, position)
    first = 0 if part in ("token", "position") else layer
    after = later_norms(trace, layer) if part == "feed_forward" else after_attention(trace, first)
    return through(trace, written(trace, part, position, layer), after, position)


def written(trace: Trace, part: str, position: int, layer: int) -> Reads:
    """What a part adds to the stream."""
    block = f"blocks.{layer}"
    if part in ("token", "position"):
        added = [take(trace, "position_embed", position)] if "position_embed" in trace else []
        if part == "position":
            return added[0][0], [added[0][1]]
        embed, read = take(trace, "embed", position)
        return embed - sum(vector for vector, _ in added), [read, *(read for _, read in added)]
    if part == "feed_forward":
        vector, read = take(trace, f"{block}.ffn.out", position)
        return vector, [read]
    vector, inputs = np.zeros(trace.config.d_model), []
    if part != "bias":
        (z, from_z), (output, from_output) = (
            take(trace, f"{block}.attn.z", slice(None), position),
            take(trace, f"{block}.attn.o_proj.weight"),
        )
        vector, inputs = output @ z.ravel(), [from_z, from_output]
    if part != "heads" and f"{block}.attn.o_proj.bias" in trace.weights:
        bias, read = take(trace, f"{block}.attn.o_proj.bias")
        vector, inputs = vector + bias, [*inputs, read]
    return vector, inputs


def after_attention(trace: Trace, layer: int) -> list[tuple[str, str]]:
    """The norms between what a layer's attention writes, or of the first what came before, and the unembedding."""
    post = trace.config.norm_placement == "post"
    return [(f"blocks.{layer}.attn_norm", f"blocks.{layer}.resid_mid")] * post + later_norms(trace, layer)


def through(trace: Trace, vector: Reads, norms: list[tuple[str, str]], position: int) -> Reads:
    """A part of the stream through norms, each dividing by what it divided the whole stream by."""
    part, inputs = vector
    for norm, normalised in norms:
        (x, from_x), (gain, from_gain) = take(trace, normalised, position), take(trace, f"{norm}.weight")
        part, inputs = divided(trace, part, x) * gain, [*inputs, from_x, from_gain]
    return part, inputs


def shifts(trace: Trace, position: int) -> Reads:
    """What all norms' β come to."""
    total: Reads = (np.zeros(trace.config.d_model), [])
    for norm in after_attention(trace, 0):
        vector, inputs = through(trace, total, [norm], position)
        beta, read = take(trace, f"{norm[0]}.bias")
        total = vector + beta, [*inputs, read]
    return total
