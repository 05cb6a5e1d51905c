"""Compare view: the differences of two runs."""

from collections.abc import Sequence

import numpy as np

from explorer.analysis.direct_logit_attribution import (
    LogitAttribution,
    component_contribution,
    direct_logit_attribution,
    has_intervention_additions,
    logit_components,
)
from explorer.analysis.next_token import (
    kl_divergence,
    mean_text_loss,
    text_loss,
    token_probability,
)
from explorer.analysis.residual import residual_stages
from explorer.analysis.run_difference import (
    first_difference,
    head_attention_distance,
    head_distances,
    next_token_probabilities,
    relative_stream_distance,
    residual_distance,
    surprisal_difference,
    surprisal_gap,
)
from explorer.analysis.run_difference import next_token_probabilities as probabilities
from explorer.errors import PointNotFoundError
from explorer.explain.derivation import ClickedPoint, Derivation, get_item
from explorer.explain.notation import (
    format_contribution,
    format_factor,
    format_number,
    format_signed,
    format_six_digits,
    join_names,
    quote_token,
)
from explorer.explain.source_code import SourceLine
from explorer.state.selection import Selection
from explorer.tracing.comparison import Comparison
from explorer.tracing.trace import Trace
from explorer.tracing.training_history import model_name, step_label, training_step
from explorer.translations import N_, _
from explorer.views import graph_objects as go
from explorer.views.labels import NORMS, PARTS, logit_label, target_and_contrast
from explorer.views.shared_plots import (
    BAR_NUMBERS,
    MAX_BAR_LABELS,
    bar_token_axis,
    component_bar_data,
    probability_bars,
)
from explorer.views.style import (
    RESIDUAL,
    SELECTED,
    click_layers,
    figure,
    frame_head,
    head_map_axes,
    label,
    note_above,
    position_labels,
    stage_axis,
    token_axis,
)
from explorer.views.two_run_figures import (
    NoDifferenceError,
    likeliest_tokens_sentence,
    replaced_word_sentence,
    selection_in_other_run,
)
from explorer.views.verification import verify_comparison
from explorer.views.view import Panel, View

MAX_RELATIVE_DISTANCE = 1.0  # end of the colour scale, in multiples of B's norm


def residual_distance_map(comparison: Comparison, query: int) -> go.Figure:
    """Draw the distance of the residual streams of aligned tokens (column) at every stage (row).

    Raises:
        NoDifferenceError: the streams have different widths, or the models different numbers of layers.
    """
    trace = comparison.trace
    if trace.config.d_model != comparison.other.config.d_model:
        raise NoDifferenceError(
            _("The streams of A and B have different widths: they cannot be compared number by number.")
        )
    stage_list = residual_stages(trace)
    if not all(stage.tap in comparison.other for stage in stage_list):
        raise NoDifferenceError(_("A and B have different numbers of layers, so their stages cannot be compared."))
    values = relative_stream_distance(comparison)  # (S, T)
    raise_if_unaligned(values)
    largest = float(np.nanmax(values, initial=0.0))
    scale = _("distance ÷ B’s length")
    if largest > MAX_RELATIVE_DISTANCE:
        scale = _("distance ÷ B’s length (colours end at 1)")
    fig = figure(
        go.Heatmap(
            x=position_labels(trace.tokens),
            y=[stage.name for stage in stage_list],
            z=values,
            zmin=0,
            zmax=min(largest, MAX_RELATIVE_DISTANCE) or MAX_RELATIVE_DISTANCE,
            customdata=click_layers(stage_list, len(trace)),
            hovertemplate=_("token %{x}, stream at %{y}<br>distance ÷ B’s length: %{z:.3g}<extra></extra>"),
            hoverongaps=False,
            colorbar={"title": {"text": scale, "side": "right"}},
        ),
        alt=_(
            "How far apart the residual streams of A and B are, {tokens} tokens at {stages} stages: at most {most} "
            "times the length of B’s.",
            tokens=len(trace),
            stages=len(stage_list),
            most=format_number(largest),
        ),
        xaxis={**token_axis(trace.tokens, _("token of A"), max_labels=32)},
        yaxis=stage_axis(stage_list),
        annotations=note_above(_("A changed resid_pre shows one row later."))
        if any(map(changes_between_layers, comparison.runs))
        else [],
    )
    return fig.add_vrect(query - 0.5, query + 0.5, line={"color": SELECTED, "width": 2})


def changes_between_layers(trace: Trace) -> bool:
    """Return whether an intervention changes what a layer reads, after the row of the layer before it."""
    return any(edit.tap.endswith(".resid_pre") and edit.tap != "blocks.0.resid_pre" for edit in trace.edits)


def raise_if_unaligned(values: np.ndarray):
    """Raise a NoDifferenceError if a comparison has no numbers, as no tokens are aligned."""
    if np.isnan(values).all():
        raise NoDifferenceError(
            _("No token of B is aligned with one of A. View them one at a time, or align two tokens.")
        )


def head_attention_difference_map(comparison: Comparison, layer: int, head: int) -> go.Figure:
    """Draw the distance of every head's attention in A and B; row = layer.

    Raises:
        NoDifferenceError: the models have different numbers of layers or heads, or no tokens are aligned.
    """
    shapes = {(run.config.num_layers, run.config.num_heads) for run in comparison.runs}
    if len(shapes) > 1:
        raise NoDifferenceError(_("A and B have different numbers of layers or heads. View them one at a time."))
    values = head_distances(comparison)  # (L, H)
    raise_if_unaligned(values)
    largest_index = most_different_head(values)
    fig = figure(
        go.Heatmap(
            z=values,
            zmin=0,
            zmax=float(values[largest_index]) or 1,
            text=[[f"{value:.2f}" for value in row] for row in values],
            texttemplate="%{text}" if values.shape[1] <= 12 else None,
            hovertemplate=_("layer %{y} head %{x}<br>distance %{z:.3g}<extra></extra>"),
            xgap=1,
            ygap=1,
            colorbar={"title": {"text": _("Jensen-Shannon distance, mean of queries"), "side": "right"}},
        ),
        alt=_(
            "How different the patterns of {count} heads are in A and B, from 0 (the same) to 1: most, {distance}, "
            "layer {layer} head {head}.",
            count=values.size,
            distance=format_number(values[largest_index]),
            layer=largest_index[0],
            head=largest_index[1],
        ),
        **head_map_axes(),
    )
    return frame_head(fig, layer, head)


def most_different_head(distances: np.ndarray) -> tuple[int, int]:
    """Return layer and head of the largest distance."""
    layer, head = np.unravel_index(np.nanargmax(distances), distances.shape)
    return int(layer), int(head)


def comparison_sentence(comparison: Comparison, selection: Selection) -> str:
    """Return the likeliest next tokens of both runs, and which head looks most differently, if heads compare."""
    sentence = likeliest_tokens_sentence(comparison, selection)
    if len({(run.config.num_layers, run.config.num_heads) for run in comparison.runs}) > 1:
        return sentence
    distances = head_distances(comparison)
    if not np.nan_to_num(distances).any() or replaced_word_sentence(comparison):  # which stands before
        return sentence
    layer, head = most_different_head(distances)
    difference = _(
        "Layer {layer} head {head} differs most (Jensen-Shannon {distance} of 1).",
        layer=layer,
        head=head,
        distance=f"{distances[layer, head]:.2f}",
    )
    return f"{sentence} {difference}"


DIFFERENCE_SHADE = 0.12  # of the full colour, on which words are read
COLUMNS = ("A", "B", "A − B")
LOSS_ROW, NUM_FACTS, NUM_TOKENS = 5, 6, 8  # of the table: the only computed fact; facts and tokens


def run_facts(trace: Trace) -> dict[str, str]:
    """Return facts of a run by their names: its model, tokens, changes and loss."""
    loss = mean_text_loss(trace)
    return {
        _("model"): trained_model_name(trace),
        _("layers"): str(trace.config.num_layers),
        _("heads per layer"): str(trace.config.num_heads),
        _("tokens"): f"{len(trace):,}",
        _("changes"): str(len(trace.edits)),
        _("mean loss per token, nats"): "–" if np.isnan(loss) else format_number(loss),
    }


def trained_model_name(trace: Trace) -> str:
    """Return the name of a run's model, with its training step if it has one; "–" if it is unknown."""
    if not trace.training:
        return "–"
    checkpoint = trace.training.checkpoint
    step = step_label(checkpoint) if training_step(checkpoint) is not None else ""
    return " · ".join(filter(None, (model_name(checkpoint), step)))


def facts_table(comparison: Comparison, query: int) -> go.Figure:
    """Draw facts of A and of B in two columns, and the probabilities of next tokens with their difference.

    Facts that differ are coloured, probabilities by their size.
    """
    facts_a, facts_b = (run_facts(run) for run in comparison.runs)
    probs_a, probs_b = probabilities(comparison, query)
    token_ids = likeliest_ids(probs_a, probs_b)[:NUM_TOKENS]
    loss = mean_text_loss(comparison.trace) - mean_text_loss(comparison.other)
    rows = [(facts_a[name], facts_b[name], "") for name in facts_a]
    rows[LOSS_ROW] = (*rows[LOSS_ROW][:2], "" if np.isnan(loss) else format_signed(loss))
    rows += [_probability_cells(float(probs_a[i]), float(probs_b[i])) for i in token_ids]
    token_names = [quote_token(comparison.trace.vocabulary[i]) for i in token_ids]
    differing = [name for name in facts_a if facts_a[name] != facts_b[name]]
    fact_shades = [[float(name in differing) * DIFFERENCE_SHADE] * 2 + [0.0] for name in facts_a]
    token_shades = [[probs_a[i] / 2, np.nan_to_num(probs_b[i]) / 2, 0.0] for i in token_ids]
    names = [*facts_a, *(label(comparison.trace.vocabulary[i]) for i in token_ids)]
    return figure(
        go.Heatmap(
            x=COLUMNS,
            z=np.array(fact_shades + token_shades),
            zmin=0,
            zmax=1,
            showscale=False,
            text=rows,
            texttemplate="%{text}",
            hovertext=[[name] * 3 for name in names],
            hovertemplate=_("%{hovertext} of %{x}: %{text}<extra></extra>"),
            xgap=1,
            ygap=1,
        ),
        alt=_(
            "{count} facts of A and B; what differs: {names}. Then the next tokens {tokens} with their probabilities.",
            count=len(facts_a),
            names=join_names(differing) or "–",
            tokens=join_names(token_names),
        ),
        xaxis={"side": "top", "showgrid": False},
        yaxis={
            "autorange": "reversed",
            "showgrid": False,
            "zeroline": False,
            "tickvals": np.arange(len(names)),
            "ticktext": names,
            "tickfont": {"size": 12},
        },
        shapes=[
            {
                "type": "line",
                **{"x0": 0, "x1": 1, "xref": "paper", "y0": NUM_FACTS - 0.5, "y1": NUM_FACTS - 0.5},
                "line": {"color": RESIDUAL, "width": 1},
            }
        ],
    )


def _probability_cells(a: float, b: float) -> tuple[str, str, str]:
    if np.isnan(b):
        return format_number(a), "–", ""
    return format_number(a), format_number(b), format_signed(a - b)


def inspect_fact(
    comparison: Comparison, query: int, point: ClickedPoint
) -> Derivation | tuple[Derivation | None, ...] | None:
    """Derive the clicked loss or probability, of a difference both; None for what is not computed."""
    token_ids = likeliest_ids(*probabilities(comparison, query))[:NUM_TOKENS]
    row = get_item((*[None] * NUM_FACTS, *token_ids), point.row)
    get_item(COLUMNS, point.column)
    if row is None and point.row != LOSS_ROW:
        return None
    derivations = [
        text_loss(run) if row is None else derive_next_token_probability(comparison, query, int(row), run)
        for run in comparison.runs
    ]
    return get_item((*derivations, tuple(filter(None, derivations)) or None), point.column)


def surprisal_difference_bars(comparison: Comparison, query: int) -> go.Figure:
    """Draw each token's surprisal in A less that of its aligned token in B, in bits."""
    tokens, values = comparison.trace.tokens, surprisal_difference(comparison)
    fig = figure(
        go.Bar(
            x=position_labels(tokens),
            y=values,
            hovertemplate=_("%{x}<br>A − B %{y:+.2f} bits<extra></extra>"),
        ),
        alt=_alt_of_text(tokens, values),
        xaxis={**token_axis(tokens, _("token of A")), "range": [-0.5, len(tokens) - 0.5]},
        yaxis={"title": {"text": _("surprisal, A − B, bits")}},
        hovermode="x",
    )
    column = {"x0": query - 0.5, "x1": query + 0.5, "y0": 0, "y1": 1, "yref": "paper"}
    return fig.add_shape(type="rect", **column, line={"color": SELECTED, "width": 1})


def _alt_of_text(tokens: Sequence[str], values: np.ndarray) -> str:
    if np.isnan(values).all():
        return _("No token after the first has a partner: no surprisal to compare.")
    worst = int(np.nanargmax(np.abs(values)))
    return _(
        "Each token’s surprisal in A less its partner’s in B, in bits: most, {most}, {token} at {position}.",
        most=format_contribution(values[worst]),
        token=quote_token(tokens[worst]),
        position=worst,
    )


BARS = 8


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
    names, values, colours, _told, layers = zip(*bars_a, strict=True)
    values_b = [bar[1] for bar in bars_b]
    differences = np.subtract(values, values_b)
    # what a change overwrites on its way to the logit adds exactly 0
    are_replaced = [[value == 0 and has_intervention_additions(run) for value in bars]
                    for run, bars in zip(comparison.runs, (values, values_b), strict=True)]  # fmt: skip
    logit = logit_label(arguments[0][0], *arguments[0][2:])
    low, high = min(0.0, *differences), max(0.0, *differences)
    room = NUMBER_ROOM * (high - low) or 1.0
    notes = _difference_notes(attributions, are_replaced, has_intervention_bar(comparison))
    return figure(
        go.Bar(
            x=np.arange(len(names)),
            y=differences,
            marker={"color": colours},
            customdata=[selection.layer if layer is None else layer for layer in layers],
            hovertext=[_bar_hover(*row) for row in zip(names, values, values_b, *are_replaced, strict=True)],
            hovertemplate="%{hovertext}<extra></extra>",
            text=[format_contribution(value) for value in differences] if len(names) <= MAX_BAR_LABELS else None,
            **BAR_NUMBERS | {"textangle": -90, "constraintext": "none"},  # half a page has no room side by side
        ),
        alt=_(
            "What each of {count} parts adds to {logit}, A − B: {less} altogether; the most {most}, {part}.",
            count=len(names),
            logit=logit,
            less=format_number(attributions[0].logit - attributions[1].logit),
            most=format_contribution(differences[np.abs(differences).argmax()]),
            part=names[np.abs(differences).argmax()],
        ),
        xaxis={
            "title": {"text": _("layer and part")},
            "tickvals": np.arange(len(names)),
            "ticktext": names,
            "showgrid": False,
        },
        yaxis={"title": {"text": _("adds to the logit, A − B")}, "range": [low - room, high + room]},
        hovermode="x",
        annotations=note_above("<br>".join(notes)),
        margin={"t": 28 + 16 * len(notes)},
    )


def has_intervention_bar(comparison: Comparison) -> bool:
    """Return whether there is a bar for what interventions add to the stream, in either run."""
    return any(has_intervention_additions(run) for run in (comparison.trace, comparison.other))


def _difference_notes(
    attributions: Sequence[LogitAttribution], are_replaced: Sequence[Sequence[bool]], has_changes: bool
) -> list[str]:
    """Return the difference of the whole logits, the number of parts that changes replace, and what their bar is."""
    return [
        _("of the whole logit: {less}", less=format_contribution(attributions[0].logit - attributions[1].logit)),
        *(
            _("parts replaced in {run} by a change: {count}", run=run, count=sum(parts))
            for run, parts in zip(("A", "B"), are_replaced, strict=True)
            if any(parts)
        ),
        *[_("bar “changes”: what the changes put in")] * has_changes,
    ]


def _bar_hover(name: str, a: float, b: float, is_replaced_in_a: bool, is_replaced_in_b: bool) -> str:
    in_a, in_b = (
        _("replaced by a change") if is_replaced else format_contribution(value)
        for value, is_replaced in ((a, is_replaced_in_a), (b, is_replaced_in_b))
    )
    return _("{part}: {a} in A, {b} in B", part=name, a=in_a, b=in_b)


def likeliest_ids(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the token ids by their larger probability of two, in descending order; NaN counts as none."""
    return np.argsort(-np.fmax(a, b), kind="stable")


def top_tokens_of_either_run(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the ids of the most probable tokens in either run, in descending order.

    Raises:
        NoDifferenceError: the models have no token in common.
    """
    if np.isnan(b).all():
        raise NoDifferenceError(_("The models of A and B have no token in common."))
    return likeliest_ids(a, b)[:BARS]


def next_token_comparison(comparison: Comparison, query: int) -> go.Figure:
    """Draw the most probable next tokens in either run, a bar for each run."""
    trace = comparison.trace
    probs_a, probs_b = probabilities(comparison, query)
    token_ids = top_tokens_of_either_run(probs_a, probs_b)
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
    )


def inspect_component(comparison: Comparison, selection: Selection, point: ClickedPoint) -> tuple[Derivation, ...]:
    """Derive the clicked component's contribution in A and in B."""
    arguments = attribution_arguments_of_both_runs(comparison, selection)
    component, layer = get_item(
        logit_components(comparison.trace, has_changes=has_intervention_bar(comparison)), point.coordinate("item")
    )
    return tuple(component_contribution(*run_arguments, component, layer) for run_arguments in arguments)


def inspect_next_token_probability(
    comparison: Comparison, selection: Selection, point: ClickedPoint
) -> Derivation | None:
    """Derive a probability in B (the first bars) or in A; None for a token that B's model does not have."""
    probs_a, probs_b = probabilities(comparison, selection.query)
    token_ids = top_tokens_of_either_run(probs_a, probs_b)
    if point.row >= len(token_ids):
        raise PointNotFoundError(_("there is no bar {bar}", bar=point.row))
    run = comparison.trace if point.coordinate("curve") == 1 else comparison.other
    return derive_next_token_probability(comparison, selection.query, int(token_ids[point.row]), run)


def derive_next_token_probability(comparison: Comparison, query: int, token_id: int, run: Trace) -> Derivation | None:
    """Derive the probability in a run of a token of A's vocabulary; None for one that B's model does not have."""
    source = SourceLine("explorer/analysis/next_token.py", "plain=sampling_distribution(")
    probs_a, probs_b = probabilities(comparison, query)
    if run is comparison.trace:
        return token_probability(run, query, token_id, float(probs_a[token_id]), source)
    if np.isnan(probs_b[token_id]):
        return None
    vocabulary = comparison.trace.vocabulary
    own_id = token_id if run.vocabulary == vocabulary else list(run.vocabulary).index(vocabulary[token_id])
    position = comparison.alignment.nearest_aligned(query)
    return token_probability(run, position, own_id, float(probs_b[token_id]), source)


def describe_differences(comparison: Comparison, selection: Selection) -> str:
    """Describe the first difference of the runs and its effect on the next token."""
    return "\n".join(
        filter(None, [first_difference_text(comparison), prediction_difference_text(comparison, selection)])
    )


def first_difference_text(comparison: Comparison) -> str:
    """Return a sentence on the first value in which two runs differ."""
    difference = first_difference(comparison)
    if not comparison.has_aligned_tokens:
        return _("No token of B stands for one of A: they cannot be compared place by place.")
    if difference is None:
        return _("A and B are the same at all tokens that stand beside each other, but for rounding.")
    (tokens_a, tokens_b) = (run.tokens for run in comparison.runs)
    return _(
        "A and B first differ at {tap}, at {token} ({position}) beside {other} ({partner}), by up to {largest}. All "
        "that is computed before, and this value at earlier tokens, is the same but for rounding.",
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
        a, b = (
            direct_logit_attribution(*arguments)
            for arguments in attribution_arguments_of_both_runs(comparison, selection)
        )
        lines.append(
            _(
                "{logit}: {a} in A − {b} in B = {less}",
                logit=logit_label(trace, token_id, contrast_id),
                a=format_six_digits(a.logit),
                b=format_factor(b.logit),
                less=format_six_digits(a.logit - b.logit),
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
    description=N_("Where do two runs differ? Their streams, heads, parts of the logit and next token, A beside B."),
    sentence=comparison_sentence,
    formula=describe_differences,
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
            name="parts",
            title=N_("What each part adds to the logit: A − B"),
            heading=N_("What each part adds to {logit}: A − B"),
            draw=contribution_difference_bars,
            compared_run="other",
            click_selects={"customdata": "layer"},
            verify=verify_comparison(*PARTS, *NORMS, "final_norm", "logits"),
            inspect=inspect_component,
            width="half",
        ),
        Panel(
            name="facts",
            title=N_("A beside B: facts and next tokens"),
            draw=lambda runs, s: facts_table(runs, s.query),
            compared_run="other",
            verify=verify_comparison("logits"),
            inspect=lambda runs, s, point: inspect_fact(runs, s.query, point),
            width="half",
        ),
        Panel(
            name="heads",
            title=N_("How different each head’s attention is"),
            draw=lambda runs, s: head_attention_difference_map(runs, s.layer, s.head),
            compared_run="other",
            click_selects={"x": "head", "y": "layer"},
            verify=verify_comparison("blocks.*.attn.pattern"),
            inspect=lambda runs, s, point: head_attention_distance(runs, point.row, point.column),
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
            title=N_("Which tokens surprise A more or less than B"),
            draw=lambda runs, s: surprisal_difference_bars(runs, s.query),
            compared_run="other",
            click_selects={"x": "query"},
            verify=verify_comparison("logits"),
            inspect=lambda runs, s, point: surprisal_gap(runs, point.column),
            height=300,
            min_width=600,
        ),
    ),
)
