"""What a change, or the chosen head’s silence, does to the explained token, in a line."""

from explorer.analysis.ablation import ablation, log_probability
from explorer.analysis.rounding import resolution
from explorer.explain.notation import number, quoted
from explorer.language import N_, look_up
from explorer.state.selection import Selection
from explorer.tracing.comparison import Comparison
from explorer.tracing.trace import Trace
from explorer.views import change
from explorer.views.explained import explained_token


def unchanged(trace: Trace) -> Trace:
    """The run as it is without changes."""
    return trace.baseline or trace


def formula(trace: Trace, selection: Selection) -> str:
    query, token_id = selection.query, explained_token(trace, selection)
    before = log_probability(unchanged(trace), query, token_id)
    changed = Comparison.with_unchanged(trace) if trace.baseline else None
    limit = change.resolution(changed) if changed else resolution(trace.dtype)
    if changed:
        after = log_probability(trace, query, token_id)
        template, notes = CHANGED, [change.outcome(changed, query)]
    else:
        after = before + ablation(trace, query, token_id).heads[selection.layer, selection.head]
        template, notes = SILENCED, [look_up(BIASES)] * trace.config.bias
    said = look_up(
        template,
        changes=change.words(trace),
        token=quoted(trace.vocabulary[token_id]),
        query=quoted(trace.tokens[query]),
        position=query,
        head=selection.head,
        layer=selection.layer,
        before=number(2**before),
        after=number(2**after),
        times=number(2 ** (after - before)),
        bits=change.told(after - before, limit * max(1.0, abs(before)), trace.dtype, N_("{value} bits")),
    )
    return "\n".join([said, *notes])


CHANGED = N_("{changes}:\nprobability of {token} after {query} ({position}): {before} → {after}, log₂ {times} = {bits}")


SILENCED = N_(
    "probability of {token} after {query} ({position}), without head {head} of layer {layer}: {before} → {after}, log₂ "
    "{times} = {bits}"
)


BIASES = N_("silenced is what a part makes of the tokens; the biases of W_O and of the feed-forward’s output stay")
