"""Figures of patching: the two prompts, and effects, exact, of paths, of neurons, and estimated by gradients."""

from collections.abc import Sequence

import numpy as np

from explorer.analysis.next_token import next_token_distribution, ranking_without_interventions
from explorer.analysis.patching_effects import (
    CleanAndCorruptedRuns,
    compare_estimate,
    component_effects,
    neuron_effects,
    patching_effects,
    small_difference_warning,
    strongest_neuron_indices,
)
from explorer.explain.notation import (
    format_contribution,
    format_number,
)
from explorer.state.selection import Selection
from explorer.state.token_alignment import align_tokens
from explorer.tracing.comparison import Comparison, whole_patterns_only_message
from explorer.tracing.patching.experiment import PatchingExperiment
from explorer.tracing.patching.patching_setup import BY_POSITION, DIRECTIONS, Receiver
from explorer.tracing.trace import Trace
from explorer.translations import N_, _, translate
from explorer.views import graph_objects as go
from explorer.views.style import (
    ATTENTION,
    FEED_FORWARD,
    ORANGE,
    RESIDUAL,
    SELECTED,
    annotate_empty,
    figure,
    note_above,
    position_labels,
    token_axis,
)
from explorer.views.two_run_figures import NoDifferenceError

ONE_PROMPT = N_(
    "Patching takes two prompts with different answers. Choose a pair, or compare with a prompt of your own."
)

POSITION_COMPONENTS = {
    "resid_pre": N_("residual stream before the layer"),
    "attn.out": N_("attention’s output"),
    "ffn.out": N_("feed-forward’s output"),
}
HEAD_COMPONENTS = {
    "attn.z": N_("z, what it fetches"),
    "attn.q": N_("q, queries"),
    "attn.k": N_("k, keys"),
    "attn.v": N_("v, values"),
    "attn.pattern": N_("attention pattern"),
}
COMPONENT_LABELS = POSITION_COMPONENTS | HEAD_COMPONENTS


def make_prompt_pair(runs: Comparison, selection: Selection) -> CleanAndCorruptedRuns:
    """Return the comparison's runs as the clean and the corrupted prompt.

    Raises:
        NoDifferenceError: the runs are of different models, no tokens are aligned, or there is no such answer
            token.
    """
    (trace, other), (ids, other_ids) = runs.runs, runs.prompt_ids
    if trace.model != other.model:
        message = _(
            "A and B are read by different models. Patching is between two prompts of one: compare with a prompt."
        )
        raise NoDifferenceError(message)
    texts = [tuple(trace.vocabulary[token_id] for token_id in prompt) for prompt in (ids, other_ids)]
    alignment = align_tokens(*texts, runs.pins)
    if alignment.kind == "none":
        raise NoDifferenceError(_("No tokens of the two prompts are aligned. Align two tokens above first."))
    baseline_runs = [run.baseline or run for run in runs.runs]
    run_and_ids = {"a": (baseline_runs[0], ids), "b": (baseline_runs[1], other_ids)}
    clean_run = selection.option("clean_run")
    other_run = "a" if clean_run == "b" else "b"
    (clean, clean_ids), (corrupted, corrupted_ids) = run_and_ids[clean_run], run_and_ids[other_run]
    answers, wrong_answers = rank_answers(clean, len(clean_ids) - 1, corrupted, len(corrupted_ids) - 1)
    answer = resolve_token(clean, selection.option("answer"), int(answers[0]))
    proposed = next(int(token_id) for token_id in wrong_answers if token_id != answer)
    wrong_answer = resolve_token(clean, selection.option("wrong"), proposed)
    if answer == wrong_answer:
        raise NoDifferenceError(_("The answer and the wrong answer are the same token: choose two that differ."))
    alignment_by_run = {"a": alignment, "b": align_tokens(*texts[::-1], tuple((b, a) for a, b in runs.pins))}
    target_partners = tuple(
        alignment_by_run[run].partners for run in (other_run, clean_run)
    )  # for each run that is patched
    experiment = PatchingExperiment(
        trace.model,
        clean_ids,
        corrupted_ids,
        answer,
        wrong_answer,
        (None, None) if alignment.is_identity else target_partners,
    )
    return CleanAndCorruptedRuns(experiment, clean, corrupted, clean_run, alignment)


def rank_answers(clean: Trace, clean_end: int, corrupted: Trace, corrupted_end: int) -> tuple[np.ndarray, np.ndarray]:
    """Return token ids, the best to propose as the answer and as the wrong answer first, each (V,).

    They are the runs' likeliest tokens; if both runs have the same one, those whose probability differs most.

    Args:
        clean_end, corrupted_end: positions of the prompts' last tokens.
    """
    rankings = ranking_without_interventions(clean, clean_end), ranking_without_interventions(corrupted, corrupted_end)
    if rankings[0][0] != rankings[1][0]:
        return rankings
    p_clean, p_corrupted = (
        next_token_distribution(run, end).plain for run, end in ((clean, clean_end), (corrupted, corrupted_end))
    )
    if (p_clean == p_corrupted).all():
        return rankings
    order = np.argsort(p_corrupted - p_clean, kind="stable")
    return order, order[::-1]


def require_patchable_pair(runs: Comparison, selection: Selection, component: str) -> CleanAndCorruptedRuns:
    """Return the prompt pair, or raise if the component cannot be patched between its prompts.

    Raises:
        NoDifferenceError: the component cannot be patched between them, or see `make_prompt_pair`.
    """
    prompt_pair = make_prompt_pair(runs, selection)
    if component == "attn.pattern" and not prompt_pair.experiment.is_by_position:
        raise NoDifferenceError(
            whole_patterns_only_message(len(prompt_pair.experiment.clean), len(prompt_pair.experiment.corrupted))
        )
    return prompt_pair


def resolve_token(trace: Trace, text: str, proposed: int) -> int:
    """Return the id of a token's text, with a space before it if there is no other; `proposed` for an empty text.

    Raises:
        NoDifferenceError: the vocabulary has no such token.
    """
    text = text.replace("·", " ").replace("↵", "\n")
    if not text:
        return proposed
    vocabulary = list(trace.vocabulary)
    for candidate in (text, f" {text}"):
        if candidate in vocabulary:
            return vocabulary.index(candidate)
    message = _(
        "“{text}” is no token of this model: choose one of the list, or write one as the next-token panel does."
    )
    raise NoDifferenceError(message.format(text=text))


PALE_FACTOR = 2  # end of the colour scale, in multiples of the largest effect, if the difference divided by is small
MIN_COLUMNS_OF_NOTE = 5  # over which "not patched" is written across
DIRECTION = {"denoise": N_("clean into corrupted"), "noise": N_("corrupted into clean")}


def effect_map(
    prompt_pair: CleanAndCorruptedRuns,
    component: str,
    values: np.ndarray,
    chosen_index: tuple[int, int] | None,
    title: str,
    texts: Sequence[Sequence[str]] | None = None,
    direction: str = "denoise",
    metric: str = "logit_difference",
    limit: float | None = None,
) -> go.Figure:
    """Draw the effects (L, P) of patching a component: row = layer, column = position or head; the chosen cell framed.

    Args:
        title: what the effects are, for the alternative text.
        texts: of each cell the intervention that patches it, for a click.
        direction: decides into which run the click patches.
        metric: that the effects are on.
        limit: the effect of the darkest colour; None for the largest.
    """
    by_position = component in BY_POSITION
    finite = np.isfinite(values)
    limit = limit or largest_effect(values) or 1
    if small_difference_warning(prompt_pair, metric):
        limit *= PALE_FACTOR
    hover = (
        _("layer %{y}, position %{x}<br>effect %{z:+.3g}<extra></extra>")
        if by_position
        else _("layer %{y} head %{x}<br>effect %{z:+.3g}<extra></extra>")
    )
    x = {"x": position_labels(prompt_pair.tokens)} if by_position else {}
    max_effect = np.unravel_index(np.nan_to_num(np.abs(values)).argmax(), values.shape)
    fig = figure(
        go.Heatmap(
            **x,
            z=values,
            zmin=-limit,
            zmax=limit,
            text=[[format_contribution(value) if np.isfinite(value) else "" for value in row] for row in values],
            texttemplate="%{text}" if values.shape[1] <= 12 else None,
            hovertemplate=hover,
            hoverongaps=False,
            xgap=1,
            ygap=1,
            colorbar={"title": {"text": translate(EFFECT_LABELS[direction][metric]), "side": "right"}},
        ),
        alt=_(
            "{words}: the largest effect is {effect}, of layer {layer}, column {column}.",
            words=title,
            effect=format_number(values[max_effect]) if finite.any() else _("not defined"),
            layer=max_effect[0],
            column=max_effect[1],
        ),
        xaxis={**token_axis(prompt_pair.tokens, _("token of the clean prompt"), max_labels=32)}
        if by_position
        else {"title": {"text": _("head")}, "dtick": 1, "showgrid": False},
        yaxis={
            "title": {"text": _("layer; patched: {part}", part=translate(COMPONENT_LABELS[component]))},
            **{"dtick": 1, "showgrid": False, "autorange": "reversed"},
        },
    )
    if chosen_index and chosen_index[1] < values.shape[1]:
        row, column = chosen_index
        corners = {"x0": column - 0.5, "x1": column + 0.5, "y0": row - 0.5, "y1": row + 0.5}
        fig.add_shape(type="rect", **corners, line={"color": SELECTED, "width": 3})
    if not finite.any():
        annotate_empty(fig, no_effect_message())
    else:
        row, column = map(int, max_effect)
        node = _node_label(prompt_pair, row, column, by_position)
        strongest = _("strongest: {node}, {effect}", node=node, effect=format_contribution(values[max_effect]))
        fig.add_annotation(**note_above(strongest)[0])
    if finite.any() and texts is not None:
        fig.set_click_interventions(texts, prompt_pair.patched_run_field(direction), False, prompt_pair.answer_in_a)
    return _use_clean_axis(fig, prompt_pair, np.isnan(values).all(axis=0) & finite.any()) if by_position else fig


def largest_effect(values: np.ndarray) -> float:
    """Return the largest |effect| that is defined; 0 if none is."""
    return float(np.abs(values[np.isfinite(values)]).max(initial=0.0))


def _use_clean_axis(fig: go.Figure, prompt_pair: CleanAndCorruptedRuns, is_unpatched: np.ndarray) -> go.Figure:
    """Return a figure whose axis has the positions of the clean prompt, which need not be A's.

    Positions that nothing is patched to are grey, with one note for those that follow each other.
    """
    edges = np.flatnonzero(np.diff(is_unpatched.astype(int), prepend=0, append=0))
    for first, end in edges.reshape(-1, 2).tolist():
        corners = {"x0": first - 0.5, "x1": end - 0.5, "y0": 0, "y1": 1, "yref": "y domain"}
        fig.add_shape(type="rect", **corners, fillcolor=RESIDUAL, opacity=0.3, line={"width": 0})
        fig.add_annotation(
            text=_("not patched"),
            x=(first + end - 1) / 2,
            y=0.5,
            yref="paper",
            textangle=0 if end - first >= MIN_COLUMNS_OF_NOTE else -90,
            showarrow=False,
            font={"size": 11},
        )
    return fig.set_meta(of=prompt_pair.clean_run)


def chosen_cell(prompt_pair: CleanAndCorruptedRuns, component: str, selection: Selection) -> tuple[int, int] | None:
    """Return the chosen cell; None if heads share their keys and values, as the chosen one has no cell of its own."""
    if component in BY_POSITION:
        return selection.layer, prompt_pair.to_clean_position(selection.key)
    shared = (
        component in ("attn.k", "attn.v") and prompt_pair.clean.config.kv_heads != prompt_pair.clean.config.num_heads
    )
    return None if shared else (selection.layer, selection.head)


def no_effect_message() -> str:
    """Return the message for two runs with equal metrics."""
    return _("clean and corrupted run measure the same: there is no effect to share out")


def exact_effect_map(runs: Comparison, selection: Selection, component: str, direction: str) -> go.Figure:
    """Draw the effect of patching each node of a component by itself from one run into the other.

    Both directions have one scale, as they stand side by side.
    """
    prompt_pair = require_patchable_pair(runs, selection, component)
    effects = {
        name: component_effects(prompt_pair.experiment, component, selection.option("metric"), name)
        for name in DIRECTIONS
    }
    values = effects[direction]
    title = _("{part}, {direction}", part=component, direction=translate(DIRECTION[direction]))
    texts = patch_texts(prompt_pair, component, direction, values.shape)
    return effect_map(
        prompt_pair,
        component,
        values,
        chosen_cell(prompt_pair, component, selection),
        title,
        texts,
        direction,
        selection.option("metric"),
        max(map(largest_effect, effects.values())),
    )


EFFECT_LABELS = {
    "either": {
        "logit_difference": N_("effect on the logit difference"),
        "log_probability": N_("effect on the log-probability"),
        "probability": N_("effect on the probability"),
    },
    "denoise": {
        "logit_difference": N_("share of the logit difference restored"),
        "log_probability": N_("share of the log-probability restored"),
        "probability": N_("share of the probability restored"),
    },
    "noise": {
        "logit_difference": N_("share of the logit difference gained (lost: below 0)"),
        "log_probability": N_("share of the log-probability gained (lost: below 0)"),
        "probability": N_("share of the probability gained (lost: below 0)"),
    },
}


def patch_texts(
    prompt_pair: CleanAndCorruptedRuns, component: str, direction: str, shape: tuple[int, int]
) -> list[list[str]]:
    """Return for each node (L, P) the text of the intervention that patches it; "" where none can."""
    layers, num_columns = shape
    if component not in BY_POSITION:
        return [[f"blocks.{i}.{component}.{j}*patch" for j in range(num_columns)] for i in range(layers)]
    target_positions = prompt_pair.experiment.target_positions(direction)
    return [
        ["" if position is None else f"blocks.{i}.{component}@{position}*patch" for position in target_positions]
        for i in range(layers)
    ]


def path_effect_map(runs: Comparison, selection: Selection) -> go.Figure:
    """Draw each head's direct effect on a receiver, with everything else frozen."""
    prompt_pair = make_prompt_pair(runs, selection)
    receiver = selected_receiver(prompt_pair, selection)
    direction = selection.option("patch_direction")
    metrics = prompt_pair.experiment.path_metrics(direction, receiver)
    values = patching_effects(prompt_pair.experiment, metrics, selection.option("metric"), direction)
    title = _(
        "direct paths to {receiver}, {direction}",
        receiver=receiver_label(receiver),
        direction=translate(DIRECTION[direction]),
    )
    fig = effect_map(prompt_pair, "attn.z", values, None, title, direction=direction, metric=selection.option("metric"))
    if receiver != "logits" and receiver[0] == 0:
        annotate_empty(fig, _("no head comes before layer 0: choose a receiver in a later layer"))
    return fig


def selected_receiver(prompt_pair: CleanAndCorruptedRuns, selection: Selection) -> Receiver:
    """Return the chosen receiver: the logits, or the chosen head's q, k or v (its shared kv head, if it has one)."""
    if selection.option("receiver") == "logits":
        return "logits"
    config, head = prompt_pair.clean.config, selection.head
    shared = head if selection.option("receiver") == "q" else head * config.kv_heads // config.num_heads
    return selection.layer, shared, selection.option("receiver")


def receiver_label(receiver: Receiver) -> str:
    """Return the label of a path's receiver."""
    if receiver == "logits":
        return _("the logits")
    return _("{name} of head {head} of layer {layer}", name=receiver[2], head=receiver[1], layer=receiver[0])


TOP_NEURONS = 20


def neuron_effect_bars(runs: Comparison, selection: Selection) -> go.Figure:
    """Draw the neurons of the chosen layer with the largest effects, with a bar for each direction."""
    prompt_pair = make_prompt_pair(runs, selection)
    values = neuron_effects(prompt_pair.experiment, selection.layer, selection.option("metric"))  # (2, F)
    order = strongest_neuron_indices(values, TOP_NEURONS)
    names = [str(neuron) for neuron in order]
    hover, undefined_hover = _("neuron %{x}<br>effect %{y:+.3g}"), _("neuron %{x}<br>effect not defined")
    both = zip(("denoise", "noise"), np.nan_to_num(values[:, order]), (ORANGE, SELECTED), strict=True)
    fig = figure(
        [
            go.Bar(
                x=names,
                y=bars,
                customdata=order,
                name=translate(DIRECTION[direction]),
                marker={"color": colour},
                hovertemplate=(hover if np.isfinite(values).any() else undefined_hover) + "<extra></extra>",
            )
            for direction, bars, colour in both
        ],
        alt=_(
            "The {count} neurons of layer {layer} with the largest effects: first {neuron}, {effect}.",
            count=len(order),
            layer=selection.layer,
            neuron=names[0],
            effect=format_number(values[0, order[0]]),
        ),
        xaxis={"title": {"text": _("neuron of layer {layer}", layer=selection.layer)}, "type": "category"},
        yaxis={"title": {"text": translate(EFFECT_LABELS["either"][selection.option("metric")])}},
    )
    if not np.isfinite(values).any():
        annotate_empty(fig, no_effect_message())
        return fig
    texts = [f"blocks.{selection.layer}.ffn.hidden.{neuron}*patch" for neuron in order]
    return fig.set_click_interventions(texts, prompt_pair.patched_run_field("denoise"), False, prompt_pair.answer_in_a)


def estimated_effect_map(runs: Comparison, selection: Selection, component: str) -> go.Figure:
    """Draw the patching effects of a component, estimated by gradients."""
    prompt_pair = require_patchable_pair(runs, selection, component)
    direction = selection.option("patch_direction")
    values = prompt_pair.experiment.estimate(direction, component, selection.option("metric"))
    title = _("estimate of {part}, {direction}", part=component, direction=translate(DIRECTION[direction]))
    texts = patch_texts(prompt_pair, component, direction, values.shape)
    return effect_map(
        prompt_pair,
        component,
        values,
        chosen_cell(prompt_pair, component, selection),
        title,
        texts,
        direction,
        selection.option("metric"),
    )


def estimate_vs_exact(runs: Comparison, selection: Selection, component: str) -> go.Figure:
    """Draw estimates (y) over exact effects (x), a dot for each node; the worst are labelled."""
    prompt_pair = require_patchable_pair(runs, selection, component)
    direction, metric = selection.option("patch_direction"), selection.option("metric")
    exact = component_effects(prompt_pair.experiment, component, metric, direction)
    estimate = prompt_pair.experiment.estimate(direction, component, metric)
    fit = compare_estimate(exact, estimate)
    layers, columns = (range(size) for size in exact.shape)
    names = [
        [_node_label(prompt_pair, layer, corner, component in BY_POSITION) for corner in columns] for layer in layers
    ]
    worst = zip(fit.worst, fit.errors, strict=True)
    error_texts = [_("{node} ({error})", node=names[i][j], error=format_contribution(error)) for (i, j), error in worst]
    is_defined = both_defined(exact, estimate).ravel()
    exact_values, estimated_values = (np.nan_to_num(effects.ravel())[is_defined] for effects in (exact, estimate))
    ends = [
        float(min(exact_values.min(), estimated_values.min())),
        float(max(exact_values.max(), estimated_values.max())),
    ]
    diagonal = go.Scatter(x=ends, y=ends, mode="lines", line={"dash": "dot", "width": 1, "color": RESIDUAL})
    dots = go.Scatter(
        x=exact_values,
        y=estimated_values,
        mode="markers",
        marker={"color": FEED_FORWARD if component == "ffn.out" else ATTENTION, "size": 7},
        text=np.ravel(names)[is_defined].tolist(),
        hovertemplate=_("%{text}<br>exact %{x:+.3g}, estimated %{y:+.3g}<extra></extra>")
        if np.isfinite(exact).any()
        else _("%{text}<br>effect not defined<extra></extra>"),
        showlegend=False,
    )
    fig = figure(
        [diagonal | {"hoverinfo": "skip", "showlegend": False}, dots],
        alt=_(
            "Estimates by gradients beside exact effects, correlation {correlation}; it errs most at {worst}.",
            correlation=format_number(fit.correlation),
            worst=", ".join(error_texts),
        ),
        xaxis={"title": {"text": _("exact effect")}},
        yaxis={"title": {"text": _("estimated effect")}},
    )
    if not np.isfinite(exact).any():
        annotate_empty(fig, no_effect_message())
        return fig
    lines = [
        _("correlation {correlation}", correlation=format_number(fit.correlation)),
        _("errs most at"),
        *error_texts,
    ]
    corner = {"xref": "paper", "yref": "paper", "x": 0.02, "y": 0.98, "xanchor": "left", "yanchor": "top"}
    return fig.add_annotation(text="<br>".join(lines), align="left", showarrow=False, **corner)


def both_defined(exact: np.ndarray, estimates: np.ndarray) -> np.ndarray:
    """Return a mask (L, P) of the nodes with both an exact effect and an estimate; all of them if none has both."""
    is_defined = np.isfinite(exact) & np.isfinite(estimates)
    return is_defined if is_defined.any() else ~is_defined


def _node_label(prompt_pair: CleanAndCorruptedRuns, layer: int, column: int, by_position: bool) -> str:
    if by_position:
        return _("layer {layer}, {place}", layer=layer, place=position_labels(prompt_pair.tokens)[column])
    return _("layer {layer} head {head}", layer=layer, head=column)
