"""Where two runs part, in sentences."""

import numpy as np

from explorer.analysis.attribution import attribution
from explorer.analysis.divergence import kl_divergence
from explorer.analysis.parting import first_difference, next_tokens
from explorer.explain.notation import number, quoted
from explorer.language import _
from explorer.state.selection import Selection
from explorer.tracing.comparison import Comparison
from explorer.views.compare.predictions import questions
from explorer.views.explained import explained, logit_of


def formula(comparison: Comparison, selection: Selection) -> str:
    """Where the runs part first, and what that comes to at the chosen token."""
    return "\n".join(filter(None, [parting(comparison), prediction(comparison, selection)]))


def parting(comparison: Comparison) -> str:
    found = first_difference(comparison)
    if not comparison.comparable:
        return _("No token of B stands for one of A: they cannot be compared place by place.")
    if found is None:
        return _("A and B are the same at all tokens that stand beside each other, but for rounding.")
    (mine, theirs) = (run.tokens for run in comparison.runs)
    return _(
        "A and B part first at {tap}, at {token} ({position}) beside {other} ({partner}): numbers there differ by up "
        "to {largest}; all that is computed before, and this value at earlier tokens, is the same but for rounding.",
        tap=found.tap,
        token=quoted(mine[found.position]),
        position=found.position,
        other=quoted(theirs[found.partner]),
        partner=found.partner,
        largest=number(found.largest),
    )


def prediction(comparison: Comparison, selection: Selection) -> str:
    """How much more A's next token is A's than B's."""
    trace = comparison.trace
    mine, theirs = next_tokens(comparison, selection.query)
    token_id, rival_id = explained(trace, selection)
    lines = [
        _(
            "probability of {token} after {query} ({position}): {a} in A, {b} in B",
            token=quoted(trace.vocabulary[token_id]),
            query=quoted(trace.tokens[selection.query]),
            position=selection.query,
            a=number(mine[token_id]),
            b=number(theirs[token_id]),
        )
    ]
    if not np.isnan(theirs[token_id]):
        a, b = (attribution(*question) for question in questions(comparison, selection))
        lines.append(
            _(
                "{logit}: {a} in A − {b} in B = {less}",
                logit=logit_of(trace, token_id, rival_id),
                a=number(a.logit),
                b=number(b.logit),
                less=number(a.logit - b.logit),
            )
        )
    if not np.isnan(theirs).any():
        bits = {"there": number(kl_divergence(mine, theirs)), "back": number(kl_divergence(theirs, mine))}
        lines.append(_("KL(A‖B) = Σ p log₂ (p of A / p of B) = {there} bits, KL(B‖A) = {back} bits", **bits))
    return "\n".join(lines)
