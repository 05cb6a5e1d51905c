"""Scores of every head: as a heatmap, and as a table with what each adds to the logit of the explained token."""

import numpy as np

from explorer.analysis.direct_logit_attribution import (
    direct_logit_attribution,
    head_contribution,
)
from explorer.analysis.head_scores import (
    HEAD_SCORES,
    ChanceHeadScores,
    chance_head_scores,
    count_scored_queries,
    head_score,
    head_scores,
)
from explorer.explain.clicked_point import ClickedPoint, get_item
from explorer.explain.derivation import Derivation
from explorer.explain.notation import escape_token, format_number, join_names, quote_token
from explorer.state.selection import Selection
from explorer.tracing.trace import Trace
from explorer.translations import N_, _, ngettext, translate
from explorer.views import graph_objects as go
from explorer.views.labels import (
    ATTRIBUTION_TAPS,
    NO_REPEATED_TOKEN,
    PARTS,
    SUM_CHECK,
    chance_hover,
    logit_label,
    target_and_contrast,
    uniform_score_text,
)
from explorer.views.style import figure, frame_head, note_above
from explorer.views.verification import Verification, verify_derived
from explorer.views.view import HeadTable, HeadTableColumn


def all_heads_table(trace: Trace, selection: Selection) -> HeadTable:
    """Return every score of every head, and its contribution to the logit, if the run has what that needs."""
    hide_first = selection.first_token == "hidden"
    columns = [
        HeadTableColumn(
            translate(score.label),
            translate(SCORE_DESCRIPTIONS[hide_first], looks=translate(score.description)),
            head_scores(trace, name, hide_first),
        )
        for name, score in HEAD_SCORES.items()
    ]
    if has_contributions(trace):
        columns.append(contribution_column(trace, selection))
    alt = _("{count} scores of each of {heads} heads.", count=len(columns), heads=columns[0].values.size)
    return HeadTable(tuple(columns), alt, measured_queries_text(trace))


def measured_queries_text(trace: Trace) -> str:
    """Return over how many queries of the prompt the scores are means, in a sentence."""
    counts = {name: count_scored_queries(trace, name) for name in HEAD_SCORES}
    most = max(counts.values())
    fewer, too_few = [], []
    for name, count in counts.items():
        if count < most:
            named = too_few if count < MIN_SCORED_QUERIES else fewer
            named.append(_("{score} over {count}", score=translate(HEAD_SCORES[name].label), count=count))
    text = _("Each score is an average over {count} tokens of this prompt.", count=most)
    if fewer:
        others = join_names(fewer)
        text = _("Each score is an average over {count} tokens of this prompt; {others}.", count=most, others=others)
    unreliable = _("Too few to be reliable: {scores}.", scores=join_names(too_few))
    return f"{text} {unreliable}" if too_few else text


MIN_SCORED_QUERIES = 5  # of which a mean says something


SCORE_DESCRIPTIONS = {  # whether the first token is hidden -> description of a score
    False: N_("How much the head {looks}, 0 to 1"),
    True: N_("How much the head {looks}, 0 to 1, the first token left out"),
}


def has_contributions(trace: Trace) -> bool:
    """Return whether the run has all that contributions to a logit are computed from."""
    return all(map(trace.has_tap, ATTRIBUTION_TAPS))


def contribution_column(trace: Trace, selection: Selection) -> HeadTableColumn:
    """Return the column of each head's contribution to the explained token's logit after the query."""
    token_id, contrast_id = target_and_contrast(trace, selection)
    values = direct_logit_attribution(trace, selection.query, token_id, contrast_id).heads  # (L, H)
    description = _(
        "What the head adds to {logit} after {token}",
        logit=logit_label(trace, token_id, contrast_id),
        token=quote_token(trace.tokens[selection.query]),
    )
    limit = float(np.abs(values[np.isfinite(values)]).max(initial=0.0)) or 1.0
    label = _("adds to {token}", token=escape_token(trace.vocabulary[token_id]))
    return HeadTableColumn(label, description, values, limit, signed=True)


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


def head_score_map(trace: Trace, name: str, hide_first: bool, layer: int, head: int) -> go.Figure:
    """Draw one of `HEAD_SCORES` for every head: row = layer, column = head; the chosen head framed.

    Scores that do not exceed chance on these tokens are in brackets.
    """
    scores = head_scores(trace, name, hide_first)  # (L, H)
    baseline = chance_head_scores(trace, name, hide_first)
    has_chance = baseline is not None
    exceeds = baseline.is_exceeded(scores) if has_chance else None
    score_name = translate(HEAD_SCORES[name].label)
    fig = figure(
        go.Heatmap(
            z=scores,
            zmin=0,
            zmax=1,
            autocolorscale=True,
            text=np.where(exceeds, np.char.mod("%.2f", scores), np.char.mod("(%.2f)", scores)) if has_chance else None,
            texttemplate="%{text}" if has_chance and scores.shape[1] <= 12 else None,
            hovertext=chance_hover(baseline, exceeds) if has_chance else None,
            hovertemplate=_("layer %{y} head %{x}<br>score %{z:.3f}<br>%{hovertext}<extra></extra>"),
            xgap=1,
            ygap=1,
            colorbar={"title": {"text": translate(HEAD_SCORES[name].title), "side": "right"}},
        ),
        alt=_(
            "The {score} score of {heads} heads, {least} to {most}: how much each {does}. Attention spread evenly "
            "would have {even}; {exceeding} heads score more than chance would give.",
            score=score_name,
            heads=scores.size,
            least=format_number(scores.min()),
            most=format_number(scores.max()),
            does=translate(HEAD_SCORES[name].description),
            even=uniform_score_text(baseline),
            exceeding=exceeds.sum(),
        )
        if has_chance
        else _("No {score} score: {why}.", score=score_name, why=translate(NO_REPEATED_TOKEN)),
        annotations=note_above(score_note(name, baseline)),
        margin={"t": 58},  # two lines below the heading
        xaxis={"title": {"text": head_axis_title(baseline)}, "dtick": 1, "showgrid": False},
        yaxis={"title": {"text": _("layer")}, "dtick": 1, "showgrid": False, "autorange": "reversed"},
    )
    frame_head(fig, layer, head)
    if not has_chance:
        fig.add_annotation(text=translate(NO_REPEATED_TOKEN), xref="paper", yref="paper", x=0.5, y=0.5, showarrow=False)
    return fig


def score_note(name: str, baseline: ChanceHeadScores | None) -> str:
    """Return what the drawn score measures, and what brackets mean."""
    note = _("how much each head {looks}", looks=translate(HEAD_SCORES[name].description))
    if baseline is None or baseline.quantiles is None:
        return note
    return _("{note}<br>in brackets: no more than by chance", note=note)


def head_axis_title(baseline: ChanceHeadScores | None) -> str:
    """Return the title of the axis of heads, with the score that uniform attention would have."""
    if baseline is None:
        return _("head")
    return ngettext(
        "head<br>a head that looks at all tokens alike<br>scores {even} here. Measured at {count} token,<br>not at the "
        "first, which sees itself alone",
        "head<br>a head that looks at all tokens alike<br>scores {even} here. Measured at {count} tokens,<br>not at "
        "the first, which sees itself alone",
        baseline.queries,
        even=uniform_score_text(baseline),
    )
