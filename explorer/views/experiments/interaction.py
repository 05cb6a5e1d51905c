"""Figures of the interaction of several interventions."""

import numpy as np

from explorer.analysis.intervention_effects import check_recomputed_outcomes, intervention_interaction
from explorer.errors import PointNotFoundError
from explorer.explain.clicked_point import ClickedPoint
from explorer.explain.derivation import Derivation
from explorer.explain.derived.intervention_effects import (
    MEASURED,
    interaction_effect,
    joint_effect,
    single_effect,
    summed_effect,
)
from explorer.explain.notation import format_number, quote_token, token_formatter
from explorer.tracing.comparison import Comparison
from explorer.translations import N_, _, translate
from explorer.views import graph_objects as go
from explorer.views.style import figure, label
from explorer.views.target_token import target_token
from explorer.views.verification import verify_comparison

# bars after the single effects: axis label, description, derivation
TOTALS = (
    (N_("sum"), N_("the sum of the single effects"), summed_effect),
    (N_("together"), N_("all together"), joint_effect),
    (N_("together − sum"), N_("all together less the sum"), interaction_effect),
)


def combined_effects_bars(comparison: Comparison, query: int, token_id: int, measure: str) -> go.Figure:
    """Draw the effect of each intervention by itself on a token's "logit" or "probability", and their interaction.

    The last bars are the sum of the single effects, the joint effect, and the difference of the two.
    """
    trace, interaction = comparison.trace, intervention_interaction(comparison, query, token_id, measure)
    values = np.array([*interaction.effects, interaction.sum, interaction.joint, interaction.interaction])
    descriptions, last = (
        [intervention.describe(trace.config, token_formatter(trace)) for intervention in trace.edits],
        values[-len(TOTALS) :],
    )
    before, after = format_number(interaction.before), format_number(interaction.joint_value)
    hover_texts = [
        f"{label(description, max_chars=60)}: {format_number(effect)}<br>{before} → {format_number(single_value)}"
        for description, effect, single_value in zip(
            descriptions, interaction.effects, interaction.single_values, strict=True
        )
    ]
    hover_texts += [
        f"{translate(template)}: {format_number(value)}"
        for (_name, template, _of), value in zip(TOTALS, last, strict=True)
    ]
    fig = figure(
        go.Bar(
            x=values,
            y=np.arange(len(values)),
            orientation="h",
            text=hover_texts,
            textposition="none",
            hovertemplate="%{text}<extra></extra>",
        ),
        alt=translate(
            SHOWN[measure],
            count=len(descriptions),
            token=quote_token(trace.vocabulary[token_id]),
            query=quote_token(trace.tokens[query]),
            sum=format_number(interaction.sum),
            joint=format_number(interaction.joint),
            before=before,
            after=after,
        ),
        xaxis={
            "title": {
                "text": _(
                    "{change}: sum {sum}, together {joint}<br>({before} → {after})",
                    change=translate(MEASURED[measure]),
                    sum=format_number(interaction.sum),
                    joint=format_number(interaction.joint),
                    before=before,
                    after=after,
                ),
            },
        },
        yaxis={
            "tickvals": np.arange(len(values)),
            "ticktext": [
                *(label(description, max_chars=28) for description in descriptions),
                *(translate(name) for name, *_rest in TOTALS),
            ],
            "autorange": "reversed",
            "showgrid": False,
        },
        bargap=0.3,
        hovermode="y",  # a short bar is hard to hit
    )
    return fig.add_hline(len(descriptions) - 0.5, line={"width": 1, "dash": "dot"})


SHOWN = {
    "logit": N_(
        "What {count} changes do to the logit of {token} after {query}: one by one {sum} in sum, all together {joint}, "
        "from {before} to {after}."
    ),
    "probability": N_(
        "What {count} changes do to the probability of {token} after {query}: one by one {sum} in sum, all together "
        "{joint}, from {before} to {after}."
    ),
}


def inspect_combined_effect(
    comparison: Comparison, query: int, token_id: int, measure: str, point: ClickedPoint
) -> Derivation:
    """Derive the clicked effect of one intervention, or of all together."""
    index, count = point.coordinate("item"), len(comparison.trace.edits)
    if index < count:
        return single_effect(comparison, query, token_id, measure, index)
    if index >= count + len(TOTALS):
        raise PointNotFoundError(_("there is no bar {bar}", bar=index))
    return TOTALS[index - count][2](comparison, query, token_id, measure)


AGAIN = (
    N_("logit and ln p, run again with all changes and with none, against the captured logits"),
    lambda runs, s: check_recomputed_outcomes(runs, s.query, target_token(runs.trace, s)),
)
MARK_OF_TOGETHER = verify_comparison("logits", against=AGAIN)
