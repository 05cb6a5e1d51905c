"""Compare view: the differences of two runs."""

import numpy as np

from explorer.analysis.direct_logit_attribution import direct_logit_attribution
from explorer.analysis.next_token import kl_divergence
from explorer.analysis.residual import residual_stages
from explorer.analysis.run_difference import (
    first_difference,
    head_attention_distance,
    next_token_probabilities,
    residual_distance,
    surprisal_gap,
)
from explorer.explain.notation import format_number, quote_token
from explorer.state.selection import Selection
from explorer.tracing.comparison import Comparison
from explorer.translations import N_, _
from explorer.views.compare.figures import (
    attribution_arguments,
    contribution_difference_bars,
    head_attention_difference_map,
    inspect_component,
    inspect_next_token_probability,
    next_token_comparison,
    residual_distance_map,
    surprisal_difference_bars,
)
from explorer.views.labels import NORMS, PARTS, logit_label, target_and_contrast
from explorer.views.verification import verify_comparison
from explorer.views.view import Panel, View


def formula(comparison: Comparison, selection: Selection) -> str:
    """Describe the first difference of the runs and its effect on the next token."""
    return "\n".join(
        filter(None, [first_difference_text(comparison), prediction_difference_text(comparison, selection)])
    )


def first_difference_text(comparison: Comparison) -> str:
    """Return a sentence on the first value in which two runs differ."""
    difference = first_difference(comparison)
    if not comparison.is_comparable:
        return _("No token of B stands for one of A: they cannot be compared place by place.")
    if difference is None:
        return _("A and B are the same at all tokens that stand beside each other, but for rounding.")
    (tokens_a, tokens_b) = (run.tokens for run in comparison.runs)
    return _(
        "A and B part first at {tap}, at {token} ({position}) beside {other} ({partner}): numbers there differ by up "
        "to {largest}; all that is computed before, and this value at earlier tokens, is the same but for rounding.",
        tap=difference.tap,
        token=quote_token(tokens_a[difference.position]),
        position=difference.position,
        other=quote_token(tokens_b[difference.partner]),
        partner=difference.partner,
        largest=format_number(difference.largest),
    )


def prediction_difference_text(comparison: Comparison, selection: Selection) -> str:
    """Compare the target token's probability and logit, and the next-token distributions, of A and B."""
    trace = comparison.trace
    probs_a, probs_b = next_token_probabilities(comparison, selection.query)
    token_id, contrast_id = target_and_contrast(trace, selection)
    lines = [
        _(
            "probability of {token} after {query} ({position}): {a} in A, {b} in B",
            token=quote_token(trace.vocabulary[token_id]),
            query=quote_token(trace.tokens[selection.query]),
            position=selection.query,
            a=format_number(probs_a[token_id]),
            b=format_number(probs_b[token_id]),
        )
    ]
    if not np.isnan(probs_b[token_id]):
        a, b = (direct_logit_attribution(*arguments) for arguments in attribution_arguments(comparison, selection))
        lines.append(
            _(
                "{logit}: {a} in A − {b} in B = {less}",
                logit=logit_label(trace, token_id, contrast_id),
                a=format_number(a.logit),
                b=format_number(b.logit),
                less=format_number(a.logit - b.logit),
            )
        )
    if not np.isnan(probs_b).any():
        bits = {
            "there": format_number(kl_divergence(probs_a, probs_b)),
            "back": format_number(kl_divergence(probs_b, probs_a)),
        }
        lines.append(_("KL(A‖B) = Σ p log₂ (p of A / p of B) = {there} bits, KL(B‖A) = {back} bits", **bits))
    return "\n".join(lines)


VIEW = View(
    name="compare",
    title=N_("Compare"),
    group="try",
    order=120,
    description=N_("Where do two runs part? Streams, heads, parts of the logit and the next token, of A beside B."),
    formula=formula,
    is_comparison=True,
    required_taps=("blocks.*.attn.pattern", "blocks.*.resid_post", "logits"),
    unavailable_message=lambda config: _("Too little was captured of this model to compare it."),
    controls=("query", "target", "rival", "layer", "head"),
    panels=(
        Panel(
            name="streams",
            title=N_("How far apart the residual streams are"),
            draw=lambda runs, s: residual_distance_map(runs, s.query),
            compared_run="other",
            click_selects={"x": "query", "customdata": "layer"},
            verify=lambda runs, s: verify_comparison(*(stage.tap for stage in residual_stages(runs.trace)))(runs, s),
            inspect=lambda runs, s, point: residual_distance(runs, point.row, point.column),
            width="half",
        ),
        Panel(
            name="heads",
            title=N_("How differently each head looks"),
            draw=lambda runs, s: head_attention_difference_map(runs, s.layer, s.head),
            compared_run="other",
            click_selects={"x": "head", "y": "layer"},
            verify=verify_comparison("blocks.*.attn.pattern"),
            inspect=lambda runs, s, point: head_attention_distance(runs, point.row, point.column),
            width="half",
        ),
        Panel(
            name="parts",
            title=N_("What each part adds to the explained logit: A − B"),
            draw=contribution_difference_bars,
            compared_run="other",
            click_selects={"customdata": "layer"},
            verify=verify_comparison(*PARTS, *NORMS, "final_norm", "logits"),
            inspect=inspect_component,
            width="half",
        ),
        Panel(
            name="next_token",
            title=N_("The next token after the query in A and in B"),
            draw=lambda runs, s: next_token_comparison(runs, s.query),
            compared_run="other",
            verify=verify_comparison("logits"),
            inspect=inspect_next_token_probability,
            width="half",
        ),
        Panel(
            name="text",
            title=N_("Which tokens surprise A more (up) or less than B"),
            draw=lambda runs, s: surprisal_difference_bars(runs, s.query),
            compared_run="other",
            click_selects={"x": "query"},
            verify=verify_comparison("logits"),
            inspect=lambda runs, s, point: surprisal_gap(runs, point.column),
            height=300,
            min_width=640,
        ),
    ),
)
