"""The target and contrast tokens of the selection, and the components that add to the target's logit."""

from collections.abc import Callable

from explorer.analysis.direct_logit_attribution import LogitAttribution, attribution_by_kind
from explorer.analysis.next_token import ranking_without_interventions
from explorer.architecture.logits import has_logit_constants, logit_constants_short_label
from explorer.explain.derived.attribution import check_component_sum
from explorer.explain.notation import format_number, quote_token
from explorer.state.selection import Selection
from explorer.tracing.trace import Trace
from explorer.translations import N_, _, translate

# The components of a logit, and the inputs of the norms on the path to it.
PARTS = (
    *("embed", "position_embed", "blocks.*.attn.z", "blocks.*.attn.out", "blocks.*.ffn.out"),
    *("blocks.*.resid_mid", "blocks.*.resid_post"),
)
NORMS = tuple(f"blocks.*.{norm}" for norm in ("attn_norm", "attn_out_norm", "ffn_norm", "ffn_out_norm"))

COMPONENT_LABELS = {  # kind of component in `by_kind` -> label
    "token": N_("embedding"),
    "position": N_("position"),
    "attention": N_("attention"),
    "feed_forward": N_("feed-forward"),
    "shift": "{shifts}",
    "changes": N_("changes"),
}


def target_and_contrast(trace: Trace, selection: Selection) -> tuple[int, int | None]:
    """Return the ids of the target token and of the contrast token; None if there is no contrast.

    Ranks are those of the run without interventions.
    """
    order = ranking_without_interventions(trace, selection.query)
    contrast_id = int(order[selection.rival - 1]) if selection.rival else None
    return int(order[selection.target - 1]), contrast_id


def target_token(trace: Trace, selection: Selection) -> int:
    """Return the id of the target token."""
    return target_and_contrast(trace, selection)[0]


def logit_label(
    trace: Trace, token_id: int, contrast_id: int | None, format_token: Callable[[str], str] = quote_token
) -> str:
    """Return the name of the target token's logit, or of its difference from the contrast token's.

    As in "the logit of “a”" or "the logit of “a” less that of “b”".

    Args:
        format_token: formats the tokens.
    """
    token = format_token(trace.vocabulary[token_id])
    if contrast_id is None:
        return _("the logit of {token}", token=token)
    return _(
        "the logit of {token} less that of {rival}", token=token, rival=format_token(trace.vocabulary[contrast_id])
    )


def contribution_sum_text(trace: Trace, contributions: LogitAttribution) -> str:
    """Format a logit as a sum over kinds of components, as in "embedding 0.21 + attention 1.5"."""
    shifts = logit_constants_short_label(trace.config) if has_logit_constants(trace.config) else ""
    values = attribution_by_kind(trace, contributions).items()
    return " + ".join(
        f"{translate(COMPONENT_LABELS[kind], shifts=shifts)} {format_number(value)}" for kind, value in values
    )


SUM_CHECK = (
    N_("the sum of all parts against the captured logit"),
    lambda trace, s: check_component_sum(trace, s.query, *target_and_contrast(trace, s)),
)
