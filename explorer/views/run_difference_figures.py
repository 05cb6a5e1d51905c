"""Differences of two runs: of streams, contributions, attention and next tokens.

Most often one has interventions, and the other is the same run without them.
"""

from collections.abc import Sequence

import numpy as np

from explorer.analysis.direct_logit_attribution import (
    LogitAttribution,
    component_contribution,
    derive_change,
    direct_logit_attribution,
    has_intervention_additions,
    logit_components,
)
from explorer.analysis.intervention_effects import (
    comparison_rounding_threshold,
    largest_score,
    largest_score_change,
    pattern_change,
)
from explorer.analysis.next_token import surprisal
from explorer.analysis.residual import compute_norm_divisor, residual_stages
from explorer.analysis.run_difference import (
    difference_name,
    next_token_probabilities,
    next_token_probability,
    probability_moved,
    relative_stream_distance,
    run_names,
    surprisal_difference,
)
from explorer.architecture.residual_stream import has_final_norm, norm_input_tap
from explorer.explain.derivation import ClickedPoint, Derivation, get_item
from explorer.explain.notation import format_contribution, format_number, quote_token, token_formatter
from explorer.interventions import PositionShift, sort_interventions
from explorer.state.selection import Selection
from explorer.tracing.comparison import Comparison
from explorer.tracing.trace import Trace
from explorer.translations import N_, _, translate
from explorer.views import graph_objects as go
from explorer.views.labels import logit_label, target_and_contrast
from explorer.views.shared_plots import (
    BAR_NUMBERS,
    MAX_BAR_LABELS,
    bar_token_axis,
    component_bar_data,
    probability_bars,
)
from explorer.views.style import (
    RESIDUAL,
    annotate_empty,
    cell_frame,
    click_layers,
    column_band,
    figure,
    label,
    named_axis,
    note_above,
    position_labels,
    stage_axis,
    token_axis,
)
from explorer.views.two_run_figures import NoDifferenceError, selection_in_other_run

BARS = 8


def pattern_change_map(
    comparison: Comparison, layer: int, head: int, query: int | None = None, key: int | None = None
) -> go.Figure:
    """Draw changed − unchanged attention weights: row = query, column = key; the chosen cell framed."""
    trace = comparison.trace
    change = pattern_change(comparison, layer, head)  # (T, T)
    labels = position_labels(trace.tokens)
    reason = unchanged_attention_reason(comparison, layer, head, change)
    fig = figure(
        go.Heatmap(
            x=labels,
            y=labels,
            z=np.where(np.tri(len(trace), dtype=bool), change, np.nan),
            zmin=-1,
            zmax=1,
            hovertemplate=_("query %{y} → key %{x}<br>weight %{z:+.3g}<extra></extra>"),
            hoverongaps=False,
            colorbar={"title": {"text": _("changed − unchanged weight"), "side": "right"}},
        ),
        alt=_(
            "What {changes} did to the pattern of layer {layer} head {head}: {outcome}.",
            changes=describe_interventions(comparison.trace),
            layer=layer,
            head=head,
            outcome=reason or _("weights change by at most {most}", most=format_number(np.abs(change).max())),
        ),
        xaxis={**token_axis(trace.tokens, _("key (looked at)"), max_labels=32)},
        yaxis={**token_axis(trace.tokens, _("query (looks back)"), max_labels=32), "autorange": "reversed"},
    )
    if query is not None and key is not None:
        fig.add_shape(**cell_frame(query, key))
    if reason:
        annotate_empty(fig, reason)
    return fig


def unchanged_attention_reason(comparison: Comparison, layer: int, head: int, change: np.ndarray) -> str:
    """Return why a head's attention weights are the same in both runs; "" if they differ.

    Args:
        change: the difference of the weights, (T, T).
    """
    trace = comparison.trace
    if not np.abs(change).max() <= comparison_rounding_threshold(comparison):  # NaN is not the same either
        return ""
    if len(trace) == 1:
        return _("the only token can look at nothing but itself, changed or not")
    tap_order = list(trace.values)
    taps = {intervention.tap for intervention in sort_interventions(trace.edits, trace.config)}
    if all(tap_order.index(tap) > tap_order.index(f"blocks.{layer}.attn.pattern") for tap in taps):
        if any(
            intervention.tap == f"blocks.{layer}.attn.z" and intervention.index in (None, head)
            for intervention in trace.edits
        ):
            return _("the head looks where it did; what it fetches there is changed, which later layers alone can see")
        return _("the change comes after these weights: only heads of later layers can look elsewhere because of it")
    if all(isinstance(intervention, PositionShift) for intervention in trace.edits) and taps == {"rope.angles"}:
        return _("weights depend on how far apart tokens stand, which a shift of all of them leaves as it is")
    limit = format_number(comparison_rounding_threshold(comparison))
    return _("no weight changes by as much as {dtype} can tell ({limit})", dtype=trace.dtype, limit=limit)


def annotate_alike(fig: go.Figure, dtype: str, limit: float, unit: str = "{value}") -> go.Figure:
    """Write in a figure without differences above rounding what the smallest would be; return the figure.

    Args:
        unit: template of a value with its unit, translated on use.
    """
    limit_text = translate(unit, value=format_number(limit))
    return annotate_empty(fig, _("no difference as large as {dtype} can tell ({limit})", dtype=dtype, limit=limit_text))


def format_difference(value: float, limit: float, dtype: str, unit: str = "{value}") -> str:
    """Format the difference of two runs, or say that it is within rounding error.

    Args:
        unit: template of a value with its unit, translated on use.
    """
    if value != 0 and abs(value) <= limit:
        return _("less than {dtype} can tell ({limit})", dtype=dtype, limit=translate(unit, value=format_number(limit)))
    return translate(unit, value=format_number(value))


def format_largest_difference(value: float, limit: float, dtype: str) -> str:
    """Format the largest of several differences, as "at most x" or as within rounding error."""
    text = format_difference(value, limit, dtype)
    return text if value != 0 and abs(value) <= limit else _("at most {value}", value=text)


def top_tokens_of_either_run(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the ids of the most probable tokens in either run, in descending order.

    Raises:
        NoDifferenceError: the models have no token in common.
    """
    if np.isnan(b).all():
        raise NoDifferenceError(_("The models of A and B have no token in common."))
    return likeliest_ids(a, b)[:BARS]


def likeliest_ids(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the token ids by their larger probability of two, in descending order; NaN counts as none."""
    return np.argsort(-np.fmax(a, b), kind="stable")


def next_token_comparison(comparison: Comparison, query: int) -> go.Figure:
    """Draw the most probable next tokens in either run, a bar for each run."""
    trace, (first, second) = comparison.trace, run_names(comparison)
    probs_a, probs_b = next_token_probabilities(comparison, query)
    token_ids = top_tokens_of_either_run(probs_a, probs_b)
    names = [label(trace.vocabulary[i], max_chars=12) for i in token_ids]
    title = _("probability")
    if comparison.is_unchanged:
        title = _("probability; {share} moved between tokens", share=format_probability_moved(comparison, query))
    return figure(
        [
            probability_bars(second, probs_b[token_ids], names, color=RESIDUAL),
            probability_bars(first, probs_a[token_ids], names),
        ],
        alt=_(
            "Next token after {token}: likeliest {a}, {mine} ({first}); {b}, {theirs} ({second}).",
            token=quote_token(trace.tokens[query]),
            a=quote_token(trace.vocabulary[probs_a.argmax()]),
            mine=format_number(probs_a.max()),
            b=quote_token(trace.vocabulary[int(np.nanargmax(probs_b))]),
            theirs=format_number(np.nanmax(probs_b)),
            first=first,
            second=second,
        ),
        xaxis={"range": [0, 1.2 * float(np.fmax(probs_a, probs_b).max())], "title": {"text": title}},
        yaxis=bar_token_axis(names),
        legend={"traceorder": "normal"},
    )


def inspect_next_token_probability(
    comparison: Comparison, selection: Selection, point: ClickedPoint
) -> Derivation | None:
    """Derive a probability in B (the first bars) or in A; None for a token that B's model does not have."""
    token_ids = top_tokens_of_either_run(*next_token_probabilities(comparison, selection.query))
    run = comparison.trace if point.coordinate("curve") == 1 else comparison.other
    return next_token_probability(comparison, selection.query, int(get_item(token_ids, point.row)), run)


MAX_RELATIVE_DISTANCE = 1.0  # end of the colour scale, in multiples of B's norm


def residual_distance_map(comparison: Comparison, query: int) -> go.Figure:
    """Draw the distance of the residual streams of aligned tokens (column) at every stage (row).

    Raises:
        NoDifferenceError: the streams have different widths, or the models different numbers of layers.
    """
    trace, (_first, second) = comparison.trace, run_names(comparison)
    if trace.config.d_model != comparison.other.config.d_model:
        raise NoDifferenceError(
            _("The streams of A and B have different widths: they cannot be compared number by number.")
        )
    stage_list = residual_stages(trace)
    if not all(stage.tap in comparison.other for stage in stage_list):
        raise NoDifferenceError(_("A and B have different numbers of layers, so their stages cannot be compared."))
    raise_if_unaligned(comparison)
    values, limit = relative_stream_distance(comparison), comparison_rounding_threshold(comparison)  # (S, T)
    largest, is_alike = float(np.nanmax(values, initial=0.0)), bool((values <= limit).all())
    scale = _("distance ÷ length ({run})", run=second)
    if largest > MAX_RELATIVE_DISTANCE:
        scale = _("distance ÷ length ({run}; colours end at 1)", run=second)
    fig = figure(
        go.Heatmap(
            x=position_labels(trace.tokens),
            y=[stage.name for stage in stage_list],
            z=values,
            zmin=0,
            zmax=MAX_RELATIVE_DISTANCE if is_alike else min(largest, MAX_RELATIVE_DISTANCE) or MAX_RELATIVE_DISTANCE,
            customdata=click_layers(stage_list, len(trace)),
            hovertemplate=_(
                "token %{{x}}, stream at %{{y}}<br>distance ÷ length ({run}): %{{z:.3g}}<extra></extra>", run=second
            ),
            hoverongaps=False,
            colorbar={"title": {"text": scale, "side": "right"}},
        ),
        alt=_(
            "How far apart the residual streams are, {difference}, {tokens} tokens at {stages} stages: {most} times "
            "the length ({run}).",
            difference=difference_name(comparison),
            tokens=len(trace),
            stages=len(stage_list),
            most=format_largest_difference(largest, limit, trace.dtype),
            run=second,
        ),
        xaxis=token_axis(trace.tokens, token_axis_title(comparison), max_labels=32),
        yaxis=stage_axis(stage_list),
        annotations=note_above(_("A changed resid_pre shows one row later."))
        if any(map(changes_between_layers, comparison.runs))
        else [],
        shapes=[column_band(query, width=2)],
    )
    return annotate_alike(fig, trace.dtype, limit, N_("{value} × its length")) if is_alike else fig


def changes_between_layers(trace: Trace) -> bool:
    """Return whether an intervention changes what a layer reads, after the row of the layer before it."""
    return any(edit.tap.endswith(".resid_pre") and edit.tap != "blocks.0.resid_pre" for edit in trace.edits)


def raise_if_unaligned(comparison: Comparison):
    """Raise a NoDifferenceError if no tokens are aligned."""
    if all(partner is None for partner in comparison.alignment.partners):
        raise NoDifferenceError(
            _("No token of B is aligned with one of A. View them one at a time, or align two tokens.")
        )


def token_axis_title(comparison: Comparison) -> str:
    """Return the title of an axis of the first run's tokens."""
    return _("token") if comparison.is_unchanged else _("token of A")


def surprisal_difference_bars(comparison: Comparison, query: int) -> go.Figure:
    """Draw each token's surprisal less that of its aligned token in the other run, in bits."""
    trace, names, difference = comparison.trace, position_labels(comparison.trace.tokens), difference_name(comparison)
    values = surprisal_difference(comparison)  # (T,)
    bits_a, bits_b = surprisal(trace), comparison.take_aligned(surprisal(comparison.other))
    positions = [position for position, partner in enumerate(comparison.alignment.partners) if position and partner]
    limits = comparison_rounding_threshold(comparison) * np.maximum(1, bits_b)
    is_alike = bool(positions) and bool((np.abs(values) <= limits)[positions].all())
    title = _("surprisal, {difference}, bits", difference=difference)
    alt = _("No token after the first has a partner: no surprisal to compare.")
    if positions:
        worst = positions[int(np.abs(values[positions]).argmax())]  # the first NaN, if any
        alt = _(
            "Each token’s surprisal, {difference}, in bits: most, {most}, {token} at {position}.",
            difference=difference,
            most=format_difference(values[worst], limits[worst], trace.dtype),
            token=quote_token(trace.tokens[worst]),
            position=worst,
        )
        if comparison.is_unchanged:
            before, after = (format_number(np.nanmean(bits)) for bits in (bits_b, bits_a))
            mean = _("mean {before} → {after}", before=before, after=after)
            title = f"{title}<br>{mean}"
    first, second = run_names(comparison)
    fig = figure(
        go.Bar(
            x=names,
            y=values,
            text=[
                _(
                    "{token}: {a} bits ({first}), {b} bits ({second})",
                    token=name,
                    a=format_number(a),
                    b=format_number(b),
                    first=first,
                    second=second,
                )
                if position in positions
                else _("{token}: nothing to compare", token=name)
                for position, (name, a, b) in enumerate(zip(names, bits_a, bits_b, strict=True))
            ],
            textposition="none",
            hovertemplate="%{text}<extra></extra>",
        ),
        alt=alt,
        xaxis={**token_axis(trace.tokens, token_axis_title(comparison)), "range": [-0.5, len(trace) - 0.5]},
        yaxis={"title": {"text": title}} | ({"range": [-1, 1]} if is_alike else {}),
        hovermode="x",  # a short bar is hard to hit
        shapes=[column_band(query)],
    )
    return annotate_alike(fig, trace.dtype, limits[worst], N_("{value} bits")) if is_alike else fig


def attribution_arguments_of_both_runs(
    comparison: Comparison, selection: Selection
) -> list[tuple[Trace, int, int, int | None]]:
    """Return for each run the arguments of `attribution`: trace, position, target id and contrast id."""
    runs_with_selection = (
        (comparison.trace, selection),
        (comparison.other, selection_in_other_run(comparison, selection)),
    )
    return [
        (trace, run_selection.query, *target_and_contrast(trace, run_selection))
        for trace, run_selection in runs_with_selection
    ]


NUMBER_ROOM = 0.25  # of the bars' height, beyond them


def contribution_difference_bars(comparison: Comparison, selection: Selection) -> go.Figure:
    """Draw the difference A − B of each component's contribution to the target token's logit.

    Raises:
        NoDifferenceError: the models have different components.
    """
    arguments = attribution_arguments_of_both_runs(comparison, selection)
    attributions = [direct_logit_attribution(*attribution_args) for attribution_args in arguments]
    bars_a, bars_b = (
        list(component_bar_data(run_arguments[0], contributions, has_intervention_bar(comparison)))
        for run_arguments, contributions in zip(arguments, attributions, strict=True)
    )
    if [bar[0] for bar in bars_a] != [bar[0] for bar in bars_b]:
        raise NoDifferenceError(_("A and B are models with different parts: look at them in turn."))
    names, values, colours, descriptions, layers = zip(*bars_a, strict=True)
    values_b = [bar[1] for bar in bars_b]
    differences = np.subtract(values, values_b)
    # what a change overwrites on its way to the logit adds exactly 0
    are_replaced = [[value == 0 and has_intervention_additions(run) for value in bars]
                    for run, bars in zip(comparison.runs, (values, values_b), strict=True)]  # fmt: skip
    logit, difference = logit_label(arguments[0][0], *arguments[0][2:]), difference_name(comparison)
    low, high = min(0.0, *differences), max(0.0, *differences)
    room = NUMBER_ROOM * (high - low) or 1.0
    notes = _difference_notes(comparison, attributions, are_replaced)
    return figure(
        go.Bar(
            x=np.arange(len(names)),
            y=differences,
            marker={"color": colours},
            customdata=[selection.layer if layer is None else layer for layer in layers],
            hovertext=[
                _bar_hover(comparison, *row) for row in zip(descriptions, values, values_b, *are_replaced, strict=True)
            ],
            hovertemplate="%{hovertext}<extra></extra>",
            text=[format_contribution(value) for value in differences] if len(names) <= MAX_BAR_LABELS else None,
            **BAR_NUMBERS | {"textangle": -90, "constraintext": "none"},  # half a page has no room side by side
        ),
        alt=_(
            "What each of {count} parts adds to {logit}, {difference}: {less} altogether; the most {most}, {part}.",
            count=len(names),
            logit=logit,
            difference=difference,
            less=format_number(attributions[0].logit - attributions[1].logit),
            most=format_contribution(differences[np.abs(differences).argmax()]),
            part=names[np.abs(differences).argmax()],
        ),
        xaxis=named_axis(
            names,
            norm_divisors_text(comparison, selection.query) if comparison.is_unchanged else _("layer and part"),
        ),
        yaxis={
            "title": {"text": _("adds to the logit, {difference}", difference=difference)},
            "range": [low - room, high + room],
        },
        hovermode="x",
        annotations=note_above("<br>".join(notes)),
        margin={"t": 28 + 16 * len(notes)},
    )


def has_intervention_bar(comparison: Comparison) -> bool:
    """Return whether there is a bar for what interventions add to the stream, in either run."""
    return any(has_intervention_additions(run) for run in comparison.runs)


def _difference_notes(
    comparison: Comparison, attributions: Sequence[LogitAttribution], are_replaced: Sequence[Sequence[bool]]
) -> list[str]:
    """Return the difference of the whole logits, the number of parts that changes replace, and what their bar is."""
    return [
        _("of the whole logit: {less}", less=format_number(attributions[0].logit - attributions[1].logit)),
        *(
            _("parts replaced by a change ({run}): {count}", run=run, count=sum(parts))
            for run, parts in zip(run_names(comparison), are_replaced, strict=True)
            if any(parts)
        ),
        *[_("bar “changes”: what the changes put in")] * has_intervention_bar(comparison),
    ]


def _bar_hover(
    comparison: Comparison, description: str, a: float, b: float, is_replaced_in_a: bool, is_replaced_in_b: bool
) -> str:
    first, second = run_names(comparison)
    in_a, in_b = (
        _("replaced by a change") if is_replaced else format_number(value)
        for value, is_replaced in ((a, is_replaced_in_a), (b, is_replaced_in_b))
    )
    return _(
        "{part}: {a} ({first}), {b} ({second})<br>{difference}",
        part=description,
        a=in_a,
        b=in_b,
        first=first,
        second=second,
        difference=format_number(a - b),
    )


def norm_divisors_text(comparison: Comparison, query: int) -> str:
    """Compare the divisors of the norms in both runs."""
    config = comparison.trace.config
    if not has_final_norm(config):
        return _("each run’s norms divide by what they did in that run")
    last = norm_input_tap(config, "final_norm")
    after, before = (compute_norm_divisor(run, run[last][query], "final_norm", query) for run in comparison.runs)
    return _(
        "the final norm divides by {after}, unchanged by {before}:<br>that alone multiplies each part by {times}",
        after=format_number(after),
        before=format_number(before),
        times=format_number(before / after),
    )


def inspect_component_difference(
    comparison: Comparison, selection: Selection, point: ClickedPoint
) -> tuple[Derivation, ...]:
    """Derive the clicked component's contribution in A and in B; of interventions, its change first."""
    arguments = attribution_arguments_of_both_runs(comparison, selection)
    components = logit_components(comparison.trace, has_changes=has_intervention_bar(comparison))
    component, layer = get_item(components, point.coordinate("item"))
    derivations = tuple(component_contribution(*run_arguments, component, layer) for run_arguments in arguments)
    return (derive_change(*derivations), *derivations) if comparison.is_unchanged else derivations


def describe_interventions(trace: Trace) -> str:
    """Describe the run's interventions, as in "positions shifted by 5; head 1 of layer 2 ablated"."""
    return "; ".join(intervention.describe(trace.config, token_formatter(trace)) for intervention in trace.edits)


def format_probability_moved(comparison: Comparison, query: int) -> str:
    """Format the share of a next token's probability that moved, in percent, or that it is rounding error."""
    share, limit = probability_moved(comparison, query), comparison_rounding_threshold(comparison)
    return format_difference(100 * share, 100 * limit, comparison.trace.dtype, "{value}%")


def intervention_summary(comparison: Comparison, selection: Selection) -> str:
    """Describe the interventions and their effects in two lines."""
    layer, head = selection.layer, selection.head
    limit, weights = comparison_rounding_threshold(comparison), np.abs(pattern_change(comparison, layer, head)).max()
    limit_of_scores = limit * largest_score(comparison, layer, head)
    return _(
        "{changes}: the scores of layer {layer} head {head} change by {scores}, its weights by {weights};\n{outcome}",
        changes=describe_interventions(comparison.trace),
        layer=layer,
        head=head,
        scores=format_largest_difference(
            largest_score_change(comparison, layer, head), limit_of_scores, comparison.trace.dtype
        ),
        weights=format_difference(weights, limit, comparison.trace.dtype),
        outcome=effect_summary(comparison, selection.query),
    )


def effect_summary(comparison: Comparison, query: int) -> str:
    """Describe the effect on the next token after a query and on the whole text."""
    trace = comparison.trace
    moved = _(
        "after {token} ({position}) {share} of the probability moves to other tokens",
        token=quote_token(trace.tokens[query]),
        position=query,
        share=format_probability_moved(comparison, query),
    )
    if len(trace) == 1:
        return moved
    return _(
        "{moved}; the text’s mean surprisal is {after} bits a token, {before} unchanged",
        moved=moved,
        after=format_number(np.nanmean(surprisal(trace))),
        before=format_number(np.nanmean(surprisal(comparison.other))),
    )
