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
from explorer.language import N_, _, look_up, ngettext
from explorer.state.interventions import Edit
from explorer.tracing.comparison import Comparison
from explorer.tracing.trace import Trace

CHANGE = "explorer/analysis/change.py"
WITHOUT = {
    "head": N_("of {token} after {place}, without head {head} of layer {layer}"),
    "heads": N_("of {token} after {place}, without all heads of layer {layer}"),
    "feed_forward": N_("of {token} after {place}, without the feed-forward of layer {layer}"),
}


def without(trace: Trace, query: int, token_id: int, part: int, layer: int) -> Derivation:
    """By how many bits the silence of a part changes the log₂ probability of a token after the query.

    Args:
        part: a head of the layer, or after those all heads, and all neurons of its feed-forward.
    """
    found, heads = ablation(trace, query, token_id), trace.config.num_heads
    drawn = element(np.concatenate([found.heads, found.sublayers], axis=-1), layer, part)
    logits, read = take(trace, "logits", query)
    before = -surprisal(logits, token_id, ()).value
    after = float(trace.ablate(query, token_id)[1 + layer * (heads + 2) + part]) / math.log(2)
    what = ["heads", "feed_forward"][part - heads] if part >= heads else "head"
    told = look_up(
        WITHOUT[what], token=quoted(trace.vocabulary[token_id]), place=at(trace, query), head=part, layer=layer
    )
    index = part if part < heads else None
    edit = Edit(f"blocks.{layer}.{'ffn.hidden' if part > heads else 'attn.z'}", "zero", index=index)
    numbers = {"after": number(2**after), "before": number(2**before), "change": number(after - before)}
    working = Working(
        _("change = log₂ p without it − log₂ p as it is"),
        lambda: _("log₂ {after} − log₂ {before} = {change} bits", **numbers),
        after - before,
        (read, Input(_("logits of a run with {edit}, at [{query}]", edit=edit, query=query), (), logits.shape)),
    )
    return Derivation(
        _("change of log₂ p, in bits"),
        told,
        drawn,
        working,
        Source("explorer/analysis/ablation.py", "trace.ablate(position, token_id, edits, waited_for) / np.log(2)"),
    )


def run_again(trace: Trace, query: int, token_id: int) -> Check:
    """log₂ p of a token in a run again with nothing silenced, held against that of the captured logits."""
    error = ablation(trace, query, token_id).error
    return Check.of(trace.dtype, error, 0.0, np.abs(trace.logits.at(query)).max() / np.log(2))


def probability_in(comparison: Comparison, query: int, token_id: int, changed: bool) -> Derivation:
    """Of a next token in the changed run, or in the unchanged one."""
    change = next_token_change(comparison, query)
    drawn = float((change.after if changed else change.before)[token_id])
    source = Source(CHANGE, "before, after = (next_token(run, position).plain")
    return probability(comparison.trace if changed else comparison.other, query, token_id, drawn, source)


def surprisal_moved(comparison: Comparison, position: int) -> Derivation | None:
    """By how many bits a token's surprisal changed; None of the first, which nothing precedes."""
    trace = comparison.trace
    drawn = element(surprisal_change(comparison), position)
    if position == 0:
        return None
    logits, reads = zip(*(take(run, "logits", position - 1) for run in comparison.runs), strict=True)
    after, before = (surprisal(each, trace.token_ids[position], ()).value for each in logits)
    numbers = {"after": number(after), "before": number(before), "change": number(after - before)}
    working = Working(
        _("changed − unchanged, each −log₂ p"),
        lambda: _("{after} − {before} = {change} bits", **numbers),
        after - before,
        reads,
    )
    return Derivation(
        _("change of the surprisal, in bits"),
        _("of {token}", token=at(trace, position)),
        drawn,
        working,
        Source(CHANGE, "return surprisal(comparison.trace) - surprisal(comparison.other)"),
    )


def stream_moved(comparison: Comparison, row: int, position: int) -> Derivation:
    """How far the stream of a token moved at one of the `stages`, in multiples of its length."""
    place = nth(stages(comparison.trace), row)
    drawn = element(stream_change(comparison), row, position)
    (after, from_after), (before, from_before) = (take(run, place.tap, position) for run in comparison.runs)
    moved, length = (math.sqrt(math.fsum(x * x)) for x in (after - before, before))
    return Derivation(
        _("how far the stream moved at {stage}", stage=place.name),
        at(comparison.trace, position),
        drawn,
        quotient(_("‖changed x − unchanged x‖ / ‖unchanged x‖"), moved, length, (from_after, from_before)),
        Source(CHANGE, "return np.divide(moved, lengths, "),
    )


def attention_elsewhere(comparison: Comparison, layer: int, head: int) -> Derivation:
    """How much of a head's attention went to other keys."""
    drawn = element(attention_moved(comparison), layer, head)
    name = f"blocks.{layer}.attn.pattern"
    (after, from_after), (before, from_before) = (take(run, name, head) for run in comparison.runs)
    moved = [math.fsum(row) / 2 for row in np.abs(after - before)]
    symbols = _("share = mean over queries of ½ Σ |changed weight − unchanged weight|")
    told = ngettext(
        "layer {layer} head {head}, mean over {count} query",
        "layer {layer} head {head}, mean over {count} queries",
        len(moved),
        layer=layer,
        head=head,
    )
    return Derivation(
        _("share of the head’s attention that moved"),
        told,
        drawn,
        mean(symbols, moved, (from_after, from_before), _("share")),
        Source(CHANGE, "return np.stack([np.abs(mine - theirs).sum(-1)"),
    )
