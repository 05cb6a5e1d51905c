"""Numbers worked out from a change of the run: what a head's silence costs, and where a change goes."""

import math

import numpy as np

from explorer.analysis.ablation import ablation
from explorer.analysis.change import attention_moved, next_token_change, stream_change, surprisal_change
from explorer.analysis.residual import stages
from explorer.analysis.rounding import Check
from explorer.explain.analysed.arithmetic import mean, quotient
from explorer.explain.analysed.distribution import surprisal
from explorer.explain.analysed.prediction import probability
from explorer.explain.derivation import Derivation
from explorer.explain.notation import number, quoted
from explorer.explain.place import at
from explorer.explain.point import element, nth
from explorer.explain.source import Source
from explorer.explain.working import Input, Working, take
from explorer.state.interventions import Edit
from explorer.tracing.trace import Trace

CHANGE = "explorer/analysis/change.py"


def without(trace: Trace, query: int, token_id: int, part: int, layer: int) -> Derivation:
    """By how many bits the silence of a part changes the log₂ probability of a token after the query.

    Args:
        part: a head of the layer, or after those all heads, and all neurons of its feed-forward.
    """
    found, heads = ablation(trace, query, token_id), trace.config.num_heads
    drawn = element(np.concatenate([found.heads, found.sublayers], axis=-1), layer, part)
    logits, read = take(trace, "logits", query)
    before = -surprisal(logits, token_id, ()).value
    after = float(trace.ablate(query, token_id)[layer, part]) / math.log(2)
    what = ["all heads", "the feed-forward"][part - heads] if part >= heads else f"head {part}"
    index = part if part < heads else None
    edit = Edit(f"blocks.{layer}.{'ffn.hidden' if part > heads else 'attn.z'}", "zero", index=index)
    numbers = f"log₂ {number(2**after)} − log₂ {number(2**before)} = {number(after - before)} bits"
    inputs = (read, Input(f"logits of a run with {edit}, at ", (query,), logits.shape))
    return Derivation(
        "change of log₂ p, in bits",
        f"of {quoted(trace.vocabulary[token_id])} after {at(trace, query)}, without {what} of layer {layer}",
        drawn,
        Working("change = log₂ p without it − log₂ p as it is", lambda: numbers, after - before, inputs),
        Source("explorer/analysis/ablation.py", "changes = trace.ablate(position, token_id)"),
    )


def run_again(trace: Trace, query: int, token_id: int) -> Check:
    """log₂ p of a token in a run again with nothing silenced, held against that of the captured logits."""
    error = ablation(trace, query, token_id).error
    return Check.of(trace.dtype, error, 0.0, np.abs(trace["logits"][query]).max() / np.log(2))


def probability_in(trace: Trace, query: int, token_id: int, changed: bool) -> Derivation:
    """Of a next token in the changed run, or in the unchanged one."""
    change = next_token_change(trace, query)
    drawn = float((change.after if changed else change.before)[token_id])
    source = Source(CHANGE, "before, after = (next_token(run, position).plain")
    return probability(trace if changed else trace.baseline, query, token_id, drawn, source)


def surprisal_moved(trace: Trace, position: int) -> Derivation | None:
    """By how many bits a token's surprisal changed; None of the first, which nothing precedes."""
    drawn = element(surprisal_change(trace), position)
    if position == 0:
        return None
    logits, reads = zip(*(take(run, "logits", position - 1) for run in (trace, trace.baseline)), strict=True)
    after, before = (surprisal(each, trace.token_ids[position], ()).value for each in logits)
    numbers = f"{number(after)} − {number(before)} = {number(after - before)} bits"
    return Derivation(
        "change of the surprisal, in bits",
        f"of {at(trace, position)}",
        drawn,
        Working("changed − unchanged, each −log₂ p", lambda: numbers, after - before, reads),
        Source(CHANGE, "return surprisal(trace) - surprisal(trace.baseline)"),
    )


def stream_moved(trace: Trace, row: int, position: int) -> Derivation:
    """How far the stream of a token moved at one of the `stages`, in multiples of its length."""
    place = nth(stages(trace), row)
    drawn = element(stream_change(trace), row, position)
    (after, from_after), (before, from_before) = (take(run, place.tap, position) for run in (trace, trace.baseline))
    moved, length = (math.sqrt(math.fsum(x * x)) for x in (after - before, before))
    return Derivation(
        f"how far the stream moved at {place.name}",
        at(trace, position),
        drawn,
        quotient("‖changed x − unchanged x‖ / ‖unchanged x‖", moved, length, (from_after, from_before)),
        Source(CHANGE, "return np.divide(moved, lengths, "),
    )


def attention_elsewhere(trace: Trace, layer: int, head: int) -> Derivation:
    """How much of a head's attention went to other keys."""
    drawn = element(attention_moved(trace), layer, head)
    name = f"blocks.{layer}.attn.pattern"
    (after, from_after), (before, from_before) = (take(run, name, head) for run in (trace, trace.baseline))
    moved = [math.fsum(row) / 2 for row in np.abs(after - before)]
    symbols = "share = mean over queries of ½ Σ |changed weight − unchanged weight|"
    return Derivation(
        "share of the head’s attention that moved",
        f"layer {layer} head {head}, mean over {len(moved)} queries",
        drawn,
        mean(symbols, moved, (from_after, from_before), "share = "),
        Source(CHANGE, "return np.abs(trace.stack(name) - trace.baseline.stack(name))"),
    )
