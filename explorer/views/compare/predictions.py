"""Figures of the components and next-token probabilities of two runs."""

import numpy as np

from explorer.analysis.direct_logit_attribution import direct_logit_attribution, has_intervention_additions
from explorer.analysis.run_difference import next_token_probabilities as probabilities
from explorer.errors import PointNotFoundError
from explorer.explain.clicked_point import ClickedPoint, get_item
from explorer.explain.derivation import Derivation
from explorer.explain.derived.attribution import component_contribution
from explorer.explain.derived.prediction import token_probability
from explorer.explain.notation import format_contribution, format_number, quote_token
from explorer.explain.source_code import SourceLine
from explorer.state.selection import Selection
from explorer.tracing.comparison import Comparison
from explorer.tracing.trace import Trace
from explorer.translations import _
from explorer.views import graph_objects as go
from explorer.views.logit_bars import component_bar_data, component_keys
from explorer.views.next_token_bars import bar_token_axis, probability_bars
from explorer.views.style import RESIDUAL, figure, label
from explorer.views.target_token import logit_label, target_and_contrast
from explorer.views.two_runs.difference import NoDifferenceError
from explorer.views.two_runs.selection import selection_in_other

BARS = 8


def attribution_arguments(comparison: Comparison, selection: Selection) -> list[tuple[Trace, int, int, int | None]]:
    """Return for each run the arguments of `attribution`: trace, position, target id and contrast id."""
    runs_with_selection = (comparison.trace, selection), (comparison.other, selection_in_other(comparison, selection))
    return [
        (trace, run_selection.query, *target_and_contrast(trace, run_selection))
        for trace, run_selection in runs_with_selection
    ]


def contribution_difference_bars(comparison: Comparison, selection: Selection) -> go.Figure:
    """Draw the difference A − B of each component's contribution to the target token's logit.

    Raises:
        NoDifferenceError: the models have different components.
    """
    arguments = attribution_arguments(comparison, selection)
    attributions = [direct_logit_attribution(*attribution_args) for attribution_args in arguments]
    bars_a, bars_b = (
        list(component_bar_data(run_arguments[0], contributions, has_intervention_bar(comparison)))
        for run_arguments, contributions in zip(arguments, attributions, strict=True)
    )
    if [bar[0] for bar in bars_a] != [bar[0] for bar in bars_b]:
        raise NoDifferenceError(_("A and B are models of different parts: look at them in turn."))
    names, values, colours, _told, layers = zip(*bars_a, strict=True)
    values_b = [bar[1] for bar in bars_b]
    differences = np.subtract(values, values_b)
    logit = logit_label(arguments[0][0], *arguments[0][2:])
    return figure(
        go.Bar(
            x=np.arange(len(names)),
            y=differences,
            marker={"color": colours},
            customdata=[selection.layer if layer is None else layer for layer in layers],
            text=[_bar_hover(*row) for row in zip(names, values, values_b, strict=True)],
            textposition="none",
            hovertemplate="%{text}<extra></extra>",
        ),
        alt=_(
            "What each of {count} parts adds to {logit}, A − B: {less} altogether; the most {most}, {part}.",
            count=len(names),
            logit=logit,
            less=format_number(attributions[0].logit - attributions[1].logit),
            most=format_contribution(differences[np.abs(differences).argmax()]),
            part=names[np.abs(differences).argmax()],
        ),
        xaxis={"tickvals": np.arange(len(names)), "ticktext": names, "tickangle": -60, "showgrid": False},
        yaxis={
            "title": {
                "text": _(
                    "A − B; of the whole logit {less}",
                    less=format_number(attributions[0].logit - attributions[1].logit),
                )
            }
        },
        bargap=0.2,
        hovermode="x",
    )


def has_intervention_bar(comparison: Comparison) -> bool:
    """Return whether there is a bar for what interventions add to the stream, in either run."""
    return any(has_intervention_additions(run) for run in (comparison.trace, comparison.other))


def _bar_hover(name: str, a: float, b: float) -> str:
    return _("{part}: {a} in A, {b} in B", part=name, a=format_contribution(a), b=format_contribution(b))


def top_tokens(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the ids of the most probable tokens in either run, in descending order.

    Raises:
        NoDifferenceError: the models have no token in common.
    """
    if np.isnan(b).all():
        raise NoDifferenceError(_("The models of A and B have no token in common."))
    return np.argsort(-np.fmax(a, b), kind="stable")[:BARS]


def next_token_comparison(comparison: Comparison, query: int) -> go.Figure:
    """Draw the most probable next tokens in either run, a bar for each run."""
    trace = comparison.trace
    probs_a, probs_b = probabilities(comparison, query)
    token_ids = top_tokens(probs_a, probs_b)
    names = [label(trace.vocabulary[i], max_chars=12) for i in token_ids]

    return figure(
        [
            probability_bars("B", probs_b[token_ids], names, color=RESIDUAL),
            probability_bars("A", probs_a[token_ids], names),
        ],
        alt=_(
            "Next token after {token}: likeliest in A {a}, {mine}; in B {b}, {theirs}.",
            token=quote_token(trace.tokens[query]),
            a=quote_token(trace.vocabulary[probs_a.argmax()]),
            mine=format_number(probs_a.max()),
            b=quote_token(trace.vocabulary[int(np.nanargmax(probs_b))]),
            theirs=format_number(np.nanmax(probs_b)),
        ),
        xaxis={"range": [0, 1.2 * float(np.fmax(probs_a, probs_b).max())], "title": {"text": _("probability")}},
        yaxis=bar_token_axis(names),
        bargap=0.2,
    )


def inspect_component(comparison: Comparison, selection: Selection, point: ClickedPoint) -> tuple[Derivation, ...]:
    """Derive the clicked component's contribution in A and in B."""
    arguments = attribution_arguments(comparison, selection)
    component, layer = get_item(
        component_keys(comparison.trace, has_intervention_bar(comparison)), point.coordinate("item")
    )
    return tuple(component_contribution(*run_arguments, component, layer) for run_arguments in arguments)


def inspect_next_token_probability(
    comparison: Comparison, selection: Selection, point: ClickedPoint
) -> Derivation | None:
    """Derive a probability in B (the first bars) or in A; None for a token that B's model does not have."""
    probs_a, probs_b = probabilities(comparison, selection.query)
    token_ids = top_tokens(probs_a, probs_b)
    if point.row >= len(token_ids):
        raise PointNotFoundError(_("there is no bar {bar}", bar=point.row))
    token_id, source = (
        int(token_ids[point.row]),
        SourceLine("explorer/analysis/next_token.py", "plain=sampling_distribution("),
    )
    if point.coordinate("curve") == 1:
        return token_probability(comparison.trace, selection.query, token_id, float(probs_a[token_id]), source)
    run_b, other_query = comparison.other, comparison.alignment.nearest_aligned(selection.query)
    if np.isnan(probs_b[token_id]):
        return None
    value, text = float(probs_b[token_id]), comparison.trace.vocabulary[token_id]
    same_vocabulary = run_b.vocabulary == comparison.trace.vocabulary
    return token_probability(
        run_b, other_query, token_id if same_vocabulary else list(run_b.vocabulary).index(text), value, source
    )
