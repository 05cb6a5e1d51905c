"""Parts of a logit: each forwards, from what is written into the stream to what the unembedding reads."""

import math

import numpy as np

from explorer.analysis.attribution import Attribution, attribution
from explorer.analysis.rounding import Check
from explorer.architecture.shifts import words as shifts_of
from explorer.architecture.stream import joining, norms_among, stream_taps, sublayers, sum_with, taps_from, way_of
from explorer.explain.analysed.arithmetic import product
from explorer.explain.analysed.attention import columns_of
from explorer.explain.captured import put_in, working_of
from explorer.explain.captured.edits import shared
from explorer.explain.captured.linear import side_by_side
from explorer.explain.captured.norms import divided, has_shift
from explorer.explain.derivation import Derivation
from explorer.explain.notation import quoted
from explorer.explain.place import at
from explorer.explain.point import element
from explorer.explain.source import Source
from explorer.explain.working import ALL, Input, take
from explorer.language import N_, _, look_up
from explorer.tracing.trace import Trace

ATTRIBUTION = "explorer/analysis/attribution.py"
HEADS = "heads[layer] = (z *"
# part of a logit -> what is told of it, its number in an `Attribution` at a layer, and the line that works it out
PARTS = {
    "token": (N_("what the token’s embedding adds"), lambda a, layer: a.token, "token = float(at_embed)"),
    "position": (N_("what its position adds"), lambda a, layer: a.positions, "positions = float(position_row"),
    "heads": (N_("what all heads of layer {layer} add"), lambda a, layer: a.heads.sum(-1)[layer], HEADS),
    "bias": (
        N_("what the bias of W_O of layer {layer} adds"),
        lambda a, layer: a.biases[layer],
        "biases[layer] = bias @",
    ),
    "attention": (
        N_("what attention of layer {layer} adds"),
        lambda a, layer: a.heads.sum(-1)[layer] + a.biases[layer],
        HEADS,
    ),
    "feed_forward": (
        N_("what the feed-forward of layer {layer} adds"),
        lambda a, layer: a.feed_forward[layer],
        "feed_forward[layer] = value(",
    ),
    "shift": (N_("added by {shifts}"), lambda a, layer: a.shift, "shift += "),
    "changes": (N_("what the changes of the run put in"), lambda a, layer: a.changes, "changes += float(put_in(trace"),
    "sum": (N_("what all parts together add"), lambda a, layer: a.total, "return float(self.token + self.positions"),
    "logit": (N_("the captured logit"), lambda a, layer: a.logit, "logit = unembedding("),
}
# A formula of a logit; and of its lead over a rival.
THROUGH_NORMS = (
    N_("norms({x}) · row of the unembedding; each norm divides by what it did in this run"),
    N_("norms({x}) · row of the unembedding less the rival’s; each norm divides by what it did in this run"),
)
AT_THE_END = (N_("final_norm · row of the unembedding"), N_("final_norm · row of the unembedding less the rival’s"))
CAPPED = (  # a formula, and by what a cap of the logits multiplies
    N_("({formula}) · the whole logit / the same before its cap"),
    N_("({formula}), each row times its whole logit / the same before its cap"),
)
BIAS = (N_("{formula} + its bias"), N_("{formula} + its bias less the rival’s"))
WITH_BIAS = ("shift", "sum", "logit")  # the parts that the bias of the unembedding counts for
Reads = tuple[np.ndarray, list[Input]]  # a vector (D,), and what it is worked out from


def logit_part(
    trace: Trace, position: int, token_id: int, rival_id: int | None, part: str, layer: int = 0
) -> Derivation:
    """What one of `PARTS` adds to a token's logit, or to its lead over a rival."""
    what, drawn, line = PARTS[part]
    found: Attribution = attribution(trace, position, token_id, rival_id)
    symbols = (AT_THE_END if part in ("sum", "logit") else THROUGH_NORMS)[rival_id is not None]
    shifts = shifts_of(trace.config) if part == "shift" else ""
    name, formula = look_up(what, layer=layer, shifts=shifts), look_up(symbols, x="x")
    vector, biased = final(trace, part, position, layer), part in WITH_BIAS
    return adding(trace, position, token_id, rival_id, name, float(drawn(found, layer)), formula, vector, line, biased)


def head_part(trace: Trace, position: int, token_id: int, rival_id: int | None, layer: int, head: int) -> Derivation:
    """What a head adds to a token's logit, or to its lead over a rival."""
    drawn = element(attribution(trace, position, token_id, rival_id).heads, layer, head)
    z, from_z = take(trace, f"blocks.{layer}.attn.z", head, position)
    output, from_output = take(trace, f"blocks.{layer}.attn.o_proj.weight", ALL, columns_of(head, len(z)))
    vector = through(trace, (output @ z, [from_z, from_output]), way_of(trace.config, layer, "attn"), position)
    name = _("what head {head} of layer {layer} adds", head=head, layer=layer)
    formula = look_up(THROUGH_NORMS[rival_id is not None], x="W_O z")
    return adding(trace, position, token_id, rival_id, name, drawn, formula, vector, HEADS)


def adding(
    trace: Trace,
    position: int,
    token_id: int,
    rival_id: int | None,
    name: str,
    drawn: float,
    formula: str,
    vector: Reads,
    line: str,
    biased: bool = False,
) -> Derivation:
    """A vector's product with what the unembedding reads; `biased`, with its bias, if it has one."""
    final, inputs = vector
    plus = None
    if biased and trace.config.unembedding_bias:
        plus, from_bias = unembedding_bias(trace, token_id, position)
        inputs, formula = [*inputs, from_bias], look_up(BIAS[rival_id is not None], formula=formula)
        if rival_id is not None:
            less, from_bias = unembedding_bias(trace, rival_id, position)
            plus, inputs = plus - less, [*inputs, from_bias]
    formula = in_words(trace, formula, rival_id)
    row, from_row = unembedding(trace, token_id, position)
    where = {"place": at(trace, position), "token": quoted(trace.vocabulary[token_id])}
    told = _("after {place}, to the logit of {token}", **where)
    if rival_id is not None:
        rival, from_rival = unembedding(trace, rival_id, position)
        row, inputs = row - rival, [*inputs, from_row]
        from_row = from_rival
        rival = quoted(trace.vocabulary[rival_id])
        told = _("after {place}, to the logit of {token} less that of {rival}", **where, rival=rival)
    working = product(f"= {formula}", final, row, (*inputs, from_row), plus)
    return Derivation(name, told, drawn, working, Source(ATTRIBUTION, line))


def unembedding(trace: Trace, token_id: int, position: int) -> tuple[np.ndarray, Input]:
    """(D,) whose product with the final vector is a token's logit, but for its bias, and where it is from."""
    row, read = take(trace, "lm_head.weight", token_id)
    return row * held(trace, token_id, position), read


def unembedding_bias(trace: Trace, token_id: int, position: int) -> tuple[float, Input]:
    """What is added to that product, and where it is from."""
    bias, read = take(trace, "lm_head.bias", token_id)
    return float(bias * held(trace, token_id, position)), read


def held(trace: Trace, token_id: int, position: int) -> float:
    """What edits and a cap multiplied a logit by in this run."""
    edits, cap = shared(trace, "logits", np.ones(trace.config.vocab_size), position)[token_id], trace.config.logit_cap
    if cap is None:
        return float(edits)
    row, vector = take(trace, "lm_head.weight", token_id)[0], take(trace, "final_norm", position)[0]
    plain = float(row @ vector)
    if trace.config.unembedding_bias:
        plain += float(take(trace, "lm_head.bias", token_id)[0])
    return float(edits) * (cap * math.tanh(plain / cap) / plain if plain else 1.0)


def in_words(trace: Trace, formula: str, rival_id: int | None = None) -> str:
    """A formula of a logit, with what a cap does."""
    return look_up(CAPPED[rival_id is not None], formula=formula) if trace.config.logit_cap else formula


def final(trace: Trace, part: str, position: int, layer: int) -> Reads:
    """What the unembedding reads of a part."""
    if part in ("sum", "logit"):
        vector, read = take(trace, "final_norm", position)
        return vector, [read]
    if part in ("shift", "changes"):
        return through(trace, (np.zeros(trace.config.d_model), []), stream_taps(trace.config), position, part)
    if part in ("token", "position"):
        way = taps_from(trace.config, "blocks.0.resid_pre")
    elif part == "feed_forward":
        way = way_of(trace.config, layer, "ffn")[1:]
    else:
        way = way_of(trace.config, layer, "attn")
    return through(trace, begun(trace, part, position, layer), way, position)


def begun(trace: Trace, part: str, position: int, layer: int) -> Reads:
    """A part where its way begins: at the first layer, as the feed-forward gives it out, or as its linear map gives it
    to what attention does."""
    block = f"blocks.{layer}"
    if part in ("token", "position"):
        embed, read = take(trace, "embed", position)
        embed = embed - put_in(trace, "embed", position)
        if "position_embed" not in trace:
            return embed, [read]
        added, from_positions = take(trace, "position_embed", position)
        added = shared(trace, "embed", added, position)
        return (added, [from_positions]) if part == "position" else (embed - added, [read, from_positions])
    if part == "feed_forward":
        vector, read = take(trace, f"{block}.ffn.out", position)
        return vector, [read]
    vector, inputs = np.zeros(trace.config.d_model), []
    if part != "bias":
        z, from_z = take(trace, f"{block}.attn.z", ALL, position)
        output, from_output = take(trace, f"{block}.attn.o_proj.weight")
        vector, inputs = output @ side_by_side(z), [from_z, from_output]
    if part != "heads" and f"{block}.attn.o_proj.bias" in trace.weights:
        bias, read = take(trace, f"{block}.attn.o_proj.bias")
        vector, inputs = vector + bias, [*inputs, read]
    return vector, inputs


def through(trace: Trace, vector: Reads, way: list[str], position: int, also: str = "") -> Reads:
    """A part of the values on a way, through norms that divide by what they divided the whole by, and through edits;
    `also` "shift", the β of the norms there and of those of what is added, or "changes", what edits put in."""
    part, inputs = vector
    norms = norms_among(trace.config, way)
    added = [sublayer for sublayer in sublayers(trace.config) if also]
    for name in way:
        for sublayer in (each for each in added if sum_with(trace.config, *each) == name):
            beside, read = through(trace, (np.zeros_like(part), []), joining(trace.config, *sublayer), position, also)
            part, inputs = part + beside, [*inputs, *read]
        if name in norms:
            (x, from_x), (gain, from_gain) = take(trace, norms[name], position), take(trace, f"{name}.weight")
            part, inputs = divided(trace, part, x, name, position) * gain, [*inputs, from_x, from_gain]
            if also == "shift" and has_shift(trace, name, position).any():
                beta, from_beta = take(trace, f"{name}.bias")
                part, inputs = part + beta, [*inputs, from_beta]
        part = shared(trace, name, part, position)
        if also == "changes" and not name.endswith("ffn.out"):  # what is put in there counts as the feed-forward's
            part = part + put_in(trace, name, position)
    return part, inputs


def sum_of_parts(trace: Trace, position: int, token_id: int, rival_id: int | None) -> Check:
    """What all parts add, together, held against the captured logit, or the lead over a rival."""
    taken = attribution(trace, position, token_id, rival_id)
    ids = [token_id] if rival_id is None else [token_id, rival_id]
    of_logits = sum(working_of(trace, "logits", (position, i)).sizes for i in ids)
    return Check.of(trace.dtype, taken.total, taken.logit, taken.size + of_logits)
