"""The token whose prediction is explained: which it is, and what kinds of parts add to its logit."""

from explorer.analysis.attribution import Attribution, attribution
from explorer.analysis.next_token import ranking
from explorer.explain.captured import Check, sizes
from explorer.explain.notation import quoted
from explorer.state.selection import Selection
from explorer.tracing.trace import Trace

# What a logit is taken apart into, and what the norms on the way divided by.
PARTS = ("embed", "position_embed", "blocks.*.attn.z", "blocks.*.ffn.out", "blocks.*.resid_mid", "blocks.*.resid_post")


def explained(trace: Trace, selection: Selection) -> tuple[int, int | None]:
    """Ids of the explained token and of the one it is compared with, None if with none; the same changed or not."""
    order = ranking(trace, selection.query)
    rival = int(order[selection.rival - 1]) if selection.rival else None
    return int(order[selection.target - 1]), rival


def explained_token(trace: Trace, selection: Selection) -> int:
    """Id of the explained token."""
    return explained(trace, selection)[0]


def summed(trace: Trace, taken: Attribution) -> dict[str, float]:
    """What each kind of part adds, all layers together, and so the logit; of attention W_O’s biases, too."""
    sums = {"embedding": taken.token} | ({"position": taken.positions} if "position_embed" in trace else {})
    sums |= {
        "attention": float(taken.heads.sum() + taken.biases.sum()),
        "feed-forward": float(taken.feed_forward.sum()),
    }
    return sums | ({"β of the norms": taken.shift} if trace.config.norm == "layernorm" else {})


def logit_of(trace: Trace, token_id: int, rival_id: int | None) -> str:
    """As in "the logit of “a”", or "the logit of “a” less that of “b”"."""
    less = "" if rival_id is None else f" less that of {quoted(trace.vocabulary[rival_id])}"
    return f"the logit of {quoted(trace.vocabulary[token_id])}{less}"


def sum_of_parts(trace: Trace, s: Selection) -> Check:
    token_id, rival_id = explained(trace, s)
    taken = attribution(trace, s.query, token_id, rival_id)
    of_logits = sizes(trace, "logits")[s.query, [token_id] if rival_id is None else [token_id, rival_id]].sum()
    return Check.of(trace.dtype, taken.total, taken.logit, taken.size + of_logits)


SUM = "the sum of all parts against the captured logit", sum_of_parts
