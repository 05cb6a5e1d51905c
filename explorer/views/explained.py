"""The token whose prediction is explained: which it is, and what kinds of parts add to its logit."""

from explorer.analysis.next_token import ranking
from explorer.explain.analysed.attribution import sum_of_parts
from explorer.explain.notation import quoted
from explorer.state.selection import Selection
from explorer.tracing.trace import Trace

# What a logit is taken apart into, and what the norms on the way divided by.
PARTS = ("embed", "position_embed", "blocks.*.attn.z", "blocks.*.ffn.out", "blocks.*.resid_mid", "blocks.*.resid_post")

KINDS = {  # of parts, as `by_kind` has them -> as shown
    "token": "embedding",
    "position": "position",
    "attention": "attention",
    "feed_forward": "feed-forward",
    "shift": "β of the norms",
}


def explained(trace: Trace, selection: Selection) -> tuple[int, int | None]:
    """Ids of the explained token and of the one it is compared with, None if with none; the same changed or not."""
    order = ranking(trace, selection.query)
    rival = int(order[selection.rival - 1]) if selection.rival else None
    return int(order[selection.target - 1]), rival


def explained_token(trace: Trace, selection: Selection) -> int:
    """Id of the explained token."""
    return explained(trace, selection)[0]


def logit_of(trace: Trace, token_id: int, rival_id: int | None) -> str:
    """As in "the logit of “a”", or "the logit of “a” less that of “b”"."""
    less = "" if rival_id is None else f" less that of {quoted(trace.vocabulary[rival_id])}"
    return f"the logit of {quoted(trace.vocabulary[token_id])}{less}"


SUM = (
    "the sum of all parts against the captured logit",
    lambda trace, s: sum_of_parts(trace, s.query, *explained(trace, s)),
)
