"""Table of all heads: their scores, and what each adds to the logit of the explained token."""

import numpy as np

from explorer.analysis.direct_logit_attribution import direct_logit_attribution, head_contribution
from explorer.analysis.head_scores import HEAD_SCORES, head_score, head_scores
from explorer.explain.clicked_point import ClickedPoint, get_item
from explorer.explain.derivation import Derivation
from explorer.explain.notation import quote_token
from explorer.state.selection import Selection
from explorer.tracing.trace import Trace
from explorer.translations import N_, _, translate
from explorer.views.labels import ATTRIBUTION_TAPS, PARTS, SUM_CHECK, logit_label, target_and_contrast
from explorer.views.verification import Verification, verify_derived
from explorer.views.view import HeadColumn, HeadTable


def all_heads_table(trace: Trace, selection: Selection) -> HeadTable:
    """Return every score of every head, and its contribution to the logit, if the run has what that needs."""
    hide_first = selection.first_token == "hidden"
    columns = [
        HeadColumn(
            translate(score.label),
            translate(SCORE_DESCRIPTIONS[hide_first], looks=translate(score.description)),
            head_scores(trace, name, hide_first),
        )
        for name, score in HEAD_SCORES.items()
    ]
    if has_contributions(trace):
        columns.append(contribution_column(trace, selection))
    alt = _("{count} scores of each of {heads} heads.", count=len(columns), heads=columns[0].values.size)
    return HeadTable(tuple(columns), alt)


SCORE_DESCRIPTIONS = {  # whether the first token is hidden -> description of a score
    False: N_("How much the head {looks}, 0 to 1"),
    True: N_("How much the head {looks}, 0 to 1, the first token left out"),
}


def has_contributions(trace: Trace) -> bool:
    """Return whether the run has all that contributions to a logit are computed from."""
    return all(map(trace.has_tap, ATTRIBUTION_TAPS))


def contribution_column(trace: Trace, selection: Selection) -> HeadColumn:
    """Return the column of each head's contribution to the explained token's logit after the query."""
    token_id, contrast_id = target_and_contrast(trace, selection)
    values = direct_logit_attribution(trace, selection.query, token_id, contrast_id).heads  # (L, H)
    description = _(
        "What the head adds to {logit} after {token}",
        logit=logit_label(trace, token_id, contrast_id),
        token=quote_token(trace.tokens[selection.query]),
    )
    limit = float(np.abs(values[np.isfinite(values)]).max(initial=0.0)) or 1.0
    return HeadColumn(_("adds to logit"), description, values, limit, signed=True)


def verify_head_table(trace: Trace, selection: Selection) -> Verification:
    """Verify the patterns, and the contributions against the logit."""
    verify = VERIFY_WITH_CONTRIBUTIONS if has_contributions(trace) else VERIFY_PATTERNS
    return verify(trace, selection)


VERIFY_PATTERNS = verify_derived("blocks.*.attn.pattern")
VERIFY_WITH_CONTRIBUTIONS = verify_derived("blocks.*.attn.pattern", *PARTS, "logits", against=SUM_CHECK)


def inspect_head_number(trace: Trace, selection: Selection, point: ClickedPoint) -> Derivation | None:
    """Derive the number in a clicked column of the point's layer and head."""
    names = [*HEAD_SCORES, *[""] * has_contributions(trace)]
    name, layer, head = get_item(names, point.column), point.coordinate("layer"), point.coordinate("head")
    if name:
        return head_score(trace, name, selection.first_token == "hidden", layer, head)
    return head_contribution(trace, selection.query, *target_and_contrast(trace, selection), layer, head)
