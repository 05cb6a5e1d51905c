"""The token whose prediction is explained: which it is, and what kinds of parts add to its logit."""

from collections.abc import Callable

from explorer.analysis.attribution import Attribution, by_kind
from explorer.analysis.next_token import ranking
from explorer.architecture.shifts import has_shifts, short
from explorer.explain.analysed.attribution import sum_of_parts
from explorer.explain.notation import number, quoted
from explorer.language import N_, _, look_up
from explorer.state.selection import Selection
from explorer.tracing.trace import Trace

# What a logit is taken apart into, and what the norms on the way divided by.
PARTS = (
    *("embed", "position_embed", "blocks.*.attn.z", "blocks.*.attn.out", "blocks.*.ffn.out"),
    *("blocks.*.resid_mid", "blocks.*.resid_post"),
)
NORMS = tuple(f"blocks.*.{norm}" for norm in ("attn_norm", "attn_out_norm", "ffn_norm", "ffn_out_norm"))

KINDS = {  # of parts, as `by_kind` has them -> as shown
    "token": N_("embedding"),
    "position": N_("position"),
    "attention": N_("attention"),
    "feed_forward": N_("feed-forward"),
    "shift": "{shifts}",
    "changes": N_("changes"),
}


def explained(trace: Trace, selection: Selection) -> tuple[int, int | None]:
    """Ids of the explained token and of the one it is compared with, None if with none; the same changed or not."""
    order = ranking(trace, selection.query)
    rival = int(order[selection.rival - 1]) if selection.rival else None
    return int(order[selection.target - 1]), rival


def explained_token(trace: Trace, selection: Selection) -> int:
    """Id of the explained token."""
    return explained(trace, selection)[0]


def logit_of(trace: Trace, token_id: int, rival_id: int | None, written: Callable[[str], str] = quoted) -> str:
    """As in "the logit of “a”", or "the logit of “a” less that of “b”", with tokens as they are `written`."""
    token = written(trace.vocabulary[token_id])
    if rival_id is None:
        return _("the logit of {token}", token=token)
    return _("the logit of {token} less that of {rival}", token=token, rival=written(trace.vocabulary[rival_id]))


def sum_of_kinds(trace: Trace, taken: Attribution) -> str:
    """As in "embedding 0.21 + attention 1.5 + feed-forward 3.02"."""
    shifts = short(trace.config) if has_shifts(trace.config) else ""
    parts = by_kind(trace, taken).items()
    return " + ".join(f"{look_up(KINDS[kind], shifts=shifts)} {number(part)}" for kind, part in parts)


SUM = (
    N_("the sum of all parts against the captured logit"),
    lambda trace, s: sum_of_parts(trace, s.query, *explained(trace, s)),
)
