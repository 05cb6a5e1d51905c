"""Numbers worked out from a change of the run: what a head's silence costs, and where a change goes."""

import math

import numpy as np

from explorer.analysis.ablation import ablation
from explorer.analysis.change import attention_moved, next_token_change, stream_change, surprisal_change
from explorer.analysis.residual import stages
from explorer.explain.analysed.prediction import bits_of, log_total, probability
from explorer.explain.captured.inspect import at
from explorer.explain.inspection import Inspection, element
from explorer.explain.notation import number, quoted
from explorer.explain.source import Source
from explorer.explain.working import Input, summed, take
from explorer.state.interventions import Edit
from explorer.tracing.trace import Trace

CHANGE = "explorer/analysis/change.py"


def without(trace: Trace, query: int, token_id: int, part: int, layer: int) -> Inspection:
    """By how many bits the silence of a part changes the log₂ probability of a token after the query.

    Args:
        part: a head of the layer, or after those all heads, and all neurons of its feed-forward.
    """
    found, heads = ablation(trace, query, token_id), trace.config.num_heads
    value = element(np.concatenate([found.heads, found.sublayers], axis=-1), layer, part)
    logits, read = take(trace, "logits", query)
    before = (float(logits[token_id]) - log_total(logits)) / math.log(2)
    after = float(trace.ablate(query, token_id)[layer, part]) / math.log(2)
    what = ["all heads", "the feed-forward"][part - heads] if part >= heads else f"head {part}"
    index = part if part < heads else None
    edit = Edit(f"blocks.{layer}.{'ffn.hidden' if part > heads else 'attn.z'}", "zero", index=index)
    return Inspection(
        name="change of log₂ p, in bits",
        place=f"of {quoted(trace.vocabulary[token_id])} after {at(trace, query)}, without {what} of layer {layer}",
        value=value,
        kind="drawn",
        symbols="change = log₂ p without it − log₂ p as it is",
        numbers=f"log₂ {number(2**after)} − log₂ {number(2**before)} = {number(after - before)} bits",
        inputs=(read, Input(f"logits of a run with {edit}, at ", (query,), logits.shape)),
        recomputed=after - before,
        source=Source("explorer/analysis/ablation.py", "changes = trace.ablate(position, token_id)"),
    )


def probability_in(trace: Trace, query: int, token_id: int, changed: bool) -> Inspection:
    """Of a next token in the changed run, or in the unchanged one."""
    change = next_token_change(trace, query)
    value = float((change.after if changed else change.before)[token_id])
    return probability(
        trace if changed else trace.baseline,
        query,
        token_id,
        value,
        Source(CHANGE, "before, after = (next_token(run, position).plain"),
    )


def surprisal_moved(trace: Trace, position: int) -> Inspection | None:
    """By how many bits a token's surprisal changed; None of the first, which nothing precedes."""
    value = element(surprisal_change(trace), position)
    if position == 0:
        return None
    logits, reads = zip(*(take(run, "logits", position - 1) for run in (trace, trace.baseline)), strict=True)
    after, before = (bits_of(each, trace.token_ids[position])[2] for each in logits)
    return Inspection(
        name="change of the surprisal, in bits",
        place=f"of {at(trace, position)}",
        value=value,
        kind="drawn",
        symbols="changed − unchanged, each −log₂ p",
        numbers=f"{number(after)} − {number(before)} = {number(after - before)} bits",
        inputs=reads,
        recomputed=after - before,
        source=Source(CHANGE, "return surprisal(trace) - surprisal(trace.baseline)"),
    )


def stream_moved(trace: Trace, row: int, position: int) -> Inspection:
    """How far the stream of a token moved at one of the `stages`, in multiples of its length."""
    place = stages(trace)[row]
    value = element(stream_change(trace), row, position)
    (after, from_after), (before, from_before) = (take(run, place.tap, position) for run in (trace, trace.baseline))
    moved, length = (math.sqrt(math.fsum(x * x)) for x in (after - before, before))
    again = moved / length if length else 0.0
    return Inspection(
        name=f"how far the stream moved at {place.name}",
        place=at(trace, position),
        value=value,
        kind="drawn",
        symbols="‖changed x − unchanged x‖ / ‖unchanged x‖",
        numbers=f"{number(moved)} / {number(length)} = {number(again)}",
        inputs=(from_after, from_before),
        recomputed=again,
        source=Source(CHANGE, "return np.divide(moved, lengths, "),
    )


def attention_elsewhere(trace: Trace, layer: int, head: int) -> Inspection:
    """How much of a head's attention went to other keys."""
    value = element(attention_moved(trace), layer, head)
    name = f"blocks.{layer}.attn.pattern"
    (after, from_after), (before, from_before) = (take(run, name, head) for run in (trace, trace.baseline))
    moved = np.array([math.fsum(row) / 2 for row in np.abs(after - before)])
    again = math.fsum(moved) / len(moved)
    return Inspection(
        name="share of the head’s attention that moved",
        place=f"layer {layer} head {head}, mean over {len(moved)} queries",
        value=value,
        kind="drawn",
        symbols="share = mean over queries of ½ Σ |changed weight − unchanged weight|",
        numbers=f"share = {summed(moved)} / {len(moved)} = {number(again)}",
        inputs=(from_after, from_before),
        recomputed=again,
        source=Source(CHANGE, "return np.abs(trace.stack(name) - trace.baseline.stack(name))"),
    )
