"""Patching view: effects of values patched from one prompt's run into the other's, and their verification."""

from collections.abc import Callable
from contextlib import suppress

import numpy as np

from explorer.analysis.next_token import ranking_without_interventions
from explorer.analysis.patching_effects import (
    CleanAndCorruptedRuns,
    check_patched_run,
    check_unpatched,
    component_effects,
    layers_of_largest_effect,
    layers_of_move,
    metric_label,
    neuron_effects,
    patch_effect,
    patch_estimate,
    path_effect,
    small_difference_note,
    small_difference_warning,
    strongest_neuron_indices,
)
from explorer.errors import PointNotFoundError
from explorer.explain.derivation import ClickedPoint, Derivation, get_element, get_item, largest_error
from explorer.explain.notation import escape_text, format_number, format_percent, quote_token_in_text
from explorer.interventions import Intervention, parse_intervention
from explorer.state.selection import Selection, SelectionField
from explorer.tracing.comparison import Comparison
from explorer.tracing.patching.patching_setup import DIRECTIONS, METRICS, MIN_DIFFERENCE
from explorer.tracing.trace import Trace
from explorer.translations import N_, _, translate
from explorer.views.patching.effect_maps import (
    HEAD_COMPONENTS,
    ONE_PROMPT,
    POSITION_COMPONENTS,
    TOP_NEURONS,
    both_defined,
    estimate_vs_exact,
    estimated_effect_map,
    exact_effect_map,
    make_prompt_pair,
    neuron_effect_bars,
    no_effect_message,
    patch_texts,
    path_effect_map,
    receiver_label,
    require_patchable_pair,
    selected_receiver,
)
from explorer.views.selection import NUM_LISTED
from explorer.views.style import shorten_token
from explorer.views.two_run_figures import NoDifferenceError
from explorer.views.verification import Verification, check_values
from explorer.views.view import Panel, View

Node = tuple[Intervention, np.ndarray]  # the intervention that patches it, and the metrics (M,) measured then
Largest = Callable[[CleanAndCorruptedRuns, Selection], Node]


def node_patch_and_metrics(
    prompt_pair: CleanAndCorruptedRuns, component: str, direction: str, layer: int, column: int
) -> Node:
    """Return the intervention that patches a node of a map, and the metrics (M,) of the patched run.

    Raises:
        PointNotFoundError: the map has no such cell, or its position is not aligned.
    """
    metrics = prompt_pair.experiment.component_metrics(component)[DIRECTIONS.index(direction)]  # (M, L, P)
    for layer_columns in metrics:
        get_element(layer_columns, layer, column)
    text = patch_texts(prompt_pair, component, direction, metrics.shape[1:])[layer][column]
    if not text:
        raise PointNotFoundError(_("the token at position {at} has no aligned token in the other run", at=column))
    return parse_intervention(text), metrics[:, layer, column]


def largest_patch_and_metrics(
    prompt_pair: CleanAndCorruptedRuns, selection: Selection, component: str, direction: str
) -> Node:
    """Return the patch with the largest effect in a map, and its metrics."""
    values = np.nan_to_num(
        np.abs(component_effects(prompt_pair.experiment, component, selection.option("metric"), direction))
    )
    return node_patch_and_metrics(
        prompt_pair, component, direction, *(int(i) for i in np.unravel_index(values.argmax(), values.shape))
    )


def verify_patching(runs: Comparison, selection: Selection, largest: Largest | None, direction: str) -> Verification:
    """Verify a patching experiment.

    Both runs' logits are recomputed, their metrics compared with those measured, and the node of the largest
    effect is run as an ordinary intervention.
    """
    prompt_pair = make_prompt_pair(runs, selection)
    checks = {}
    for name, run in (("clean", prompt_pair.clean), ("corrupted", prompt_pair.corrupted)):
        checks |= {f"{tap}, {name}": check for tap, check in check_values(run, ["logits"]).items()}
    checks[_("measured of clean and corrupted run")] = check_unpatched(prompt_pair)
    if largest:
        intervention, metrics = largest(prompt_pair, selection)
        checks[_("the largest effect, as a changed run")] = check_patched_run(
            prompt_pair, intervention, metrics, direction
        )
    template = (
        _("the largest effect run again as an ordinary change, largest error {error}")
        if largest
        else _("measured of both runs as captured, largest error {error}")
    )
    details = _("logits of the clean and of the corrupted run")
    return Verification.from_checks(
        checks, template.format(error=format_number(largest_error(checks.values()))), details, *runs.runs
    )


def verify_map(runs: Comparison, selection: Selection, component: str, direction: str) -> Verification:
    """Verify the largest effect of a map by a rerun."""
    return verify_patching(
        runs, selection, lambda two, s: largest_patch_and_metrics(two, s, component, direction), direction
    )


def verify_neurons(runs: Comparison, selection: Selection) -> Verification:
    """Verify the largest effect of a neuron by a rerun."""

    def get_largest(prompt_pair: CleanAndCorruptedRuns, selection: Selection) -> Node:
        values = neuron_effects(prompt_pair.experiment, selection.layer, selection.option("metric"))
        return neuron_patch_and_metrics(prompt_pair, selection.layer, int(np.nan_to_num(np.abs(values[0])).argmax()), 0)

    return verify_patching(runs, selection, get_largest, "denoise")


def neuron_patch_and_metrics(prompt_pair: CleanAndCorruptedRuns, layer: int, neuron: int, curve: int) -> Node:
    """Return the patch of a neuron at all positions, and its metrics."""
    metrics = prompt_pair.experiment.neuron_metrics(layer)[curve][:, neuron]
    return parse_intervention(f"blocks.{layer}.ffn.hidden.{neuron}*patch"), metrics


def inspect_node(
    runs: Comparison, selection: Selection, component: str, direction: str, point: ClickedPoint
) -> Derivation | None:
    """Derive the effect of patching the clicked node of a map."""
    prompt_pair = make_prompt_pair(runs, selection)
    intervention, metrics = node_patch_and_metrics(prompt_pair, component, direction, point.row, point.column)
    return patch_effect(prompt_pair, intervention, metrics, selection.option("metric"), direction)


def inspect_neuron(runs: Comparison, selection: Selection, point: ClickedPoint) -> Derivation | None:
    """Derive the effect of patching the clicked neuron."""
    prompt_pair = make_prompt_pair(runs, selection)
    order = strongest_neuron_indices(
        neuron_effects(prompt_pair.experiment, selection.layer, selection.option("metric")), TOP_NEURONS
    )
    direction = get_item(DIRECTIONS, point.coordinate_or_none("curve") or 0)
    intervention, metrics = neuron_patch_and_metrics(
        prompt_pair, selection.layer, int(get_item(order, point.coordinate("item"))), DIRECTIONS.index(direction)
    )
    return patch_effect(prompt_pair, intervention, metrics, selection.option("metric"), direction)


def inspect_estimate(runs: Comparison, selection: Selection, component: str, point: ClickedPoint) -> Derivation | None:
    """Derive the clicked estimate of attribution patching."""
    prompt_pair = make_prompt_pair(runs, selection)
    get_element(
        prompt_pair.experiment.estimate(selection.option("patch_direction"), component, selection.option("metric")),
        point.row,
        point.column,
    )
    return derive_estimate(prompt_pair, selection, component, (point.row, point.column))


def derive_estimate(
    prompt_pair: CleanAndCorruptedRuns, selection: Selection, component: str, index: tuple[int, int]
) -> Derivation | None:
    """Derive an estimate of attribution patching."""
    return patch_estimate(
        prompt_pair, component, index, selection.option("metric"), selection.option("patch_direction")
    )


def inspect_estimate_vs_exact(
    runs: Comparison, selection: Selection, component: str, point: ClickedPoint
) -> tuple[Derivation, Derivation] | None:
    """Derive the exact effect and the estimate of a dot."""
    prompt_pair, direction = make_prompt_pair(runs, selection), selection.option("patch_direction")
    exact = component_effects(prompt_pair.experiment, component, selection.option("metric"), direction)
    estimates = prompt_pair.experiment.estimate(direction, component, selection.option("metric"))
    indices = np.argwhere(both_defined(exact, estimates))
    layer, column = (int(i) for i in get_item(indices.tolist(), point.coordinate("item")))
    intervention, metrics = node_patch_and_metrics(prompt_pair, component, direction, layer, column)
    exact_derivation = patch_effect(prompt_pair, intervention, metrics, selection.option("metric"), direction)
    return exact_derivation and (exact_derivation, derive_estimate(prompt_pair, selection, component, (layer, column)))


def inspect_path(runs: Comparison, selection: Selection, point: ClickedPoint) -> Derivation | None:
    """Derive the effect of the clicked head along its direct path."""
    prompt_pair = make_prompt_pair(runs, selection)
    receiver, direction = selected_receiver(prompt_pair, selection), selection.option("patch_direction")
    get_element(prompt_pair.experiment.path_metrics(direction, receiver)[0], point.row, point.column)
    return path_effect(prompt_pair, receiver, (point.row, point.column), selection.option("metric"), direction)


def likely_token_options(name: str) -> Callable[[Comparison | Trace, Selection], list[tuple[str, str]]]:
    """Return a function that lists the most probable tokens at the end, by their texts; first "" with the current one.

    Args:
        name: of the field, "answer" or "wrong".
    """

    def options(runs: Comparison | Trace, selection: Selection) -> list[tuple[str, str]]:
        trace, current = runs, _("as proposed")
        if isinstance(runs, Comparison):
            trace = runs.trace
            with suppress(NoDifferenceError):
                prompt_pair = make_prompt_pair(runs, selection)
                current = shorten_token(prompt_pair.clean.vocabulary[getattr(prompt_pair.experiment, name)])
        ranking = ranking_without_interventions(trace, len(trace) - 1)
        tokens = [trace.vocabulary[token_id] for token_id in ranking[:NUM_LISTED]]
        return [("", current), *((escape_text(text), shorten_token(text)) for text in tokens)]

    return options


METRIC_LABELS = {
    "logit_difference": N_("logit difference"),
    "log_probability": N_("log-probability"),
    "probability": N_("probability (hides negative effects)"),
}
DIRECTION_LABELS = {"denoise": N_("denoising"), "noise": N_("noising")}
RECEIVERS = {
    "logits": N_("logits"),
    "q": N_("q of the chosen head"),
    "k": N_("k of the chosen head"),
    "v": N_("v of the chosen head"),
}
PATCHING_FIELDS = (
    # which of two runs is the clean one, whose answer is explained; the other is the corrupted one
    SelectionField("clean_run", "a", N_("clean prompt"), {"a": "A", "b": "B"}),
    # texts of the right and the wrong next token after the clean one; "" for the proposed ones
    SelectionField("answer", "", N_("answer"), options=likely_token_options("answer"), is_free=True),
    SelectionField("wrong", "", N_("wrong answer"), options=likely_token_options("wrong"), is_free=True),
    SelectionField("metric", "logit_difference", N_("measure"), METRIC_LABELS),
    # components of the maps by position and by head
    SelectionField("patch_position", "resid_pre", N_("by position"), POSITION_COMPONENTS),
    SelectionField("patch_head", "attn.z", N_("by head"), HEAD_COMPONENTS),
    # direction of patching in estimates and along paths
    SelectionField("patch_direction", "denoise", N_("estimates and paths"), DIRECTION_LABELS),
    # of path patching: the logits, or a vector of the selected head
    SelectionField("receiver", "logits", N_("receiver"), RECEIVERS),
)


def describe_patching(runs: Comparison, selection: Selection) -> str:
    """Describe which run is clean and which corrupted, the metric, and its value in both."""
    try:
        prompt_pair = make_prompt_pair(runs, selection)
    except NoDifferenceError as incomparable:
        return str(incomparable)
    clean, corrupted = prompt_pair.experiment.unpatched_metrics[:, METRICS.index(selection.option("metric"))]
    roles = (
        _("clean: B, corrupted: A, both without their changes")
        if prompt_pair.clean_run == "b"
        else _("clean: A, corrupted: B, both without their changes")
    )
    metric_text = _(
        "m = {metric}, after the last token; answer {answer}, wrong answer {wrong}: m(clean) = {clean}, m(corrupted) = "
        "{corrupted}",
        metric=metric_label(selection.option("metric")),
        answer=prompt_pair.token_text(prompt_pair.experiment.answer),
        wrong=prompt_pair.token_text(prompt_pair.experiment.wrong),
        clean=format_number(clean),
        corrupted=format_number(corrupted),
    )
    none = no_effect_message() if abs(clean - corrupted) < MIN_DIFFERENCE else ""
    small = small_difference_warning(prompt_pair, selection.option("metric"))
    hides = (
        _("what lowers a small probability can hardly be seen in it")
        if selection.option("metric") == "probability"
        else ""
    )
    answers = answer_warning(prompt_pair, selection.option("metric"))
    reason = proposed_answers_reason(prompt_pair, selection)
    paths = _(
        "direct paths to {receiver}: what all other heads and every feed-forward write stays as it was, frozen; norms "
        "are computed anew",
        receiver=receiver_label(selected_receiver(prompt_pair, selection)),
    )
    note = alignment_note(prompt_pair)
    lines = (roles, note, metric_text, reason, none, small, answers, hides, translate(EFFECTS), paths)
    return "\n".join(filter(None, lines))


def summarise_patching(runs: Comparison, selection: Selection) -> str:
    """Tell where patches restore the answer, with a warning if the difference that effects are divided by is small.

    Otherwise a warning of answers that do not tell the prompts apart comes first, or why they are proposed.
    """
    try:
        prompt_pair = make_prompt_pair(runs, selection)
    except NoDifferenceError:
        return ""
    metric = selection.option("metric")
    warning = small_difference_warning(prompt_pair, metric)
    with suppress(NoDifferenceError):
        finding = strongest_patch_sentence(runs, selection)
        if warning:
            return finding or warning
        about_answers = answer_warning(prompt_pair, metric) or proposed_answers_reason(prompt_pair, selection)
        return " ".join(filter(None, (about_answers, finding)))
    return warning or answer_warning(prompt_pair, metric)


def proposed_answers_reason(prompt_pair: CleanAndCorruptedRuns, selection: Selection) -> str:
    """Say why these answers are proposed if both runs have the same likeliest token; "" if not, or if one is chosen."""
    experiment = prompt_pair.experiment
    likeliest, other = (
        int(ranking_without_interventions(run, len(prompt) - 1)[0])
        for run, prompt in ((prompt_pair.clean, experiment.clean), (prompt_pair.corrupted, experiment.corrupted))
    )
    is_chosen = selection.option("answer") or selection.option("wrong")
    clean, corrupted = experiment.unpatched_metrics[:, METRICS.index("logit_difference")]
    if is_chosen or likeliest != other or clean - corrupted < MIN_DIFFERENCE:
        return ""
    return _(
        "Both runs say {token}, so the measure takes {answer}, which falls most in probability, and {wrong}, which "
        "rises most.",
        token=prompt_pair.token_text(likeliest),
        answer=prompt_pair.token_text(experiment.answer),
        wrong=prompt_pair.token_text(experiment.wrong),
    )


MIN_LATER_EFFECT = 0.1  # at the last token, of the effect that is told


def strongest_patch_sentence(runs: Comparison, selection: Selection) -> str:
    """Return where denoising patches by position restore the answer; "" if none does.

    If the effect moves from one token to the last, its layers; otherwise what the strongest patch does to the answer's
    probability, and the largest effect at the last token, if it comes in a later layer. Beside a warning that the
    measures differ little there is room for one of these.
    """
    component, metric = selection.option("patch_position"), selection.option("metric")
    prompt_pair = require_patchable_pair(runs, selection, component)
    experiment, last_position = prompt_pair.experiment, len(prompt_pair.tokens) - 1
    effects = component_effects(experiment, component, metric, "denoise")
    if not np.nan_to_num(effects).any():
        return ""
    careful = small_difference_note(prompt_pair, metric)
    layers, position = layers_of_largest_effect(effects)
    move = layers_of_move(effects) if component == "resid_pre" else None
    if move:
        sentence = _(
            "Patched alone, {token} restores more than half up to layer {last}; {end} does from layer {first}.",
            token=quote_token_in_text(prompt_pair.tokens, move.position),
            last=move.last_layer,
            end=quote_token_in_text(prompt_pair.tokens, last_position),
            first=move.first_layer_at_end,
        )
        return " ".join(filter(None, (sentence, careful)))
    row = METRICS.index("probability")
    patched = experiment.component_metrics(component)[DIRECTIONS.index("denoise"), row, layers, position]
    before, *after = (
        format_percent(float(share)) for share in (experiment.unpatched_metrics[1, row], patched.min(), patched.max())
    )
    sentence = translate(
        IN_LAYER_SENTENCE if len(layers) == 1 else IN_LAYERS_SENTENCE,
        token=quote_token_in_text(prompt_pair.tokens, position),
        first=layers[0],
        last=layers[-1],
        answer=prompt_pair.token_text(experiment.answer),
        before=before,
        after=after[0] if after[0] == after[1] else _("{least} to {most}", least=after[0], most=after[1]),
    )
    if careful:
        return f"{sentence} {careful}"
    at_end = np.nan_to_num(effects[:, -1])
    layer = int(at_end.argmax())
    if position == last_position or layer <= layers[-1] or at_end[layer] < MIN_LATER_EFFECT:
        return sentence
    later = _(
        "In layer {layer}, {token} restores {share}.",
        token=quote_token_in_text(prompt_pair.tokens, last_position),
        layer=layer,
        share=format_percent(float(at_end[layer])),
    )
    return f"{sentence} {later}"


IN_LAYER_SENTENCE = N_("Most comes from {token} in layer {first}, patched alone: {answer} {before} → {after}.")
IN_LAYERS_SENTENCE = N_(
    "Most comes from {token} in layers {first} to {last}, each patched alone: {answer} {before} → {after}."
)


def answer_warning(prompt_pair: CleanAndCorruptedRuns, metric: str) -> str:
    """Return a warning if the metric is not larger in the clean run, or both favour the same answer; "" otherwise."""
    experiment = prompt_pair.experiment
    answer, wrong = map(prompt_pair.token_text, (experiment.answer, experiment.wrong))
    clean, corrupted = experiment.unpatched_metrics[:, METRICS.index(metric)]
    if corrupted - clean >= MIN_DIFFERENCE:
        return _(
            "The corrupted prompt favours {answer} more than the clean one. Choose another answer, or the other prompt "
            "as the clean one.",
            answer=answer,
        )
    if metric != "logit_difference" or clean - corrupted < MIN_DIFFERENCE or clean * corrupted <= 0:
        return ""
    favoured, other = (answer, wrong) if clean > 0 else (wrong, answer)
    return _(
        "Both prompts favour {favoured} over {other}: the map shows what shifts this, not what decides it.",
        favoured=favoured,
        other=other,
    )


def alignment_note(prompt_pair: CleanAndCorruptedRuns) -> str:
    """Describe which positions are patched if the prompts are not aligned one to one; "" if they are."""
    if prompt_pair.experiment.is_by_position:
        return ""
    return _(
        "the clean prompt has {clean} tokens and the corrupted one {corrupted}: values go over between tokens that "
        "stand beside each other in the strips above; {lone} of the clean prompt have no partner and are not patched",
        clean=len(prompt_pair.experiment.clean),
        corrupted=len(prompt_pair.experiment.corrupted),
        lone=len(prompt_pair.unaligned_positions),
    )


EFFECTS = N_(
    "denoising (m(patched) − m(corrupted)) / (m(clean) − m(corrupted))\n"
    "noising (m(patched) − m(clean)) / (m(clean) − m(corrupted))"
)


POSITION_CLICKS = {"x": "key", "y": "layer"}  # the query stays at the answer
HEAD_CLICKS = {"x": "head", "y": "layer"}


def exact_panels(columns: str, component_field: str, clicks: dict[str, str], **titles: str) -> tuple[Panel, ...]:
    """Return a map of exact effects for each direction.

    Args:
        columns: of the maps, as in the panels' names.
        component_field: field of the selection with the component that is patched.
        clicks: what a click selects.
        titles: direction -> title.
    """
    return tuple(
        Panel(
            name=f"{columns}_{direction}",
            title=title,
            draw=lambda runs, s, d=direction: exact_effect_map(runs, s, s.option(component_field), d),
            compared_run="other",
            click_selects=clicks,
            verify=lambda runs, s, d=direction: verify_map(runs, s, s.option(component_field), d),
            inspect=lambda runs, s, point, d=direction: inspect_node(runs, s, s.option(component_field), d, point),
            width="half",
        )
        for direction, title in titles.items()
    )


def estimate_panels(
    suffix: str, component_field: str, clicks: dict[str, str], title: str, agreement_title: str
) -> tuple[Panel, Panel]:
    """Return a map of estimates, and their agreement with exact effects; arguments as of `exact_panels`."""
    return (
        Panel(
            name=f"estimate{suffix}",
            title=title,
            draw=lambda runs, s: estimated_effect_map(runs, s, s.option(component_field)),
            inspect=lambda runs, s, point: inspect_estimate(runs, s, s.option(component_field), point),
            compared_run="other",
            click_selects=clicks,
            verify=lambda runs, s: verify_patching(runs, s, None, s.option("patch_direction")),
            width="half",
        ),
        Panel(
            name=f"agreement{suffix}",
            title=agreement_title,
            draw=lambda runs, s: estimate_vs_exact(runs, s, s.option(component_field)),
            inspect=lambda runs, s, point: inspect_estimate_vs_exact(runs, s, s.option(component_field), point),
            compared_run="other",
            verify=lambda runs, s: verify_map(runs, s, s.option(component_field), s.option("patch_direction")),
            width="half",
        ),
    )


VIEW = View(
    name="patching",
    title=N_("Patching"),
    group="try",
    order=130,
    fields=PATCHING_FIELDS,
    description=N_(
        "Which values carry the answer? Each value of one run is put alone into the other: the map shows how far the "
        "answer follows."
    ),
    sentence=summarise_patching,
    formula=describe_patching,
    code=("explorer.tracing.patching.patching_methods:patch_each_node",),
    code_lines=("value[rows, indices] = source_value",),
    is_comparison=True,
    single_run_message=ONE_PROMPT,
    needs_two_prompts=True,
    required_taps=("blocks.*.attn.z", "blocks.*.ffn.hidden", "blocks.*.resid_pre", "logits"),
    unavailable_message=lambda config: _("Too little was captured of this model to put values of another run into it."),
    controls=(
        *("answer", "wrong", "clean_run", "metric", "patch_position", "patch_head", "patch_direction", "receiver"),
        *("layer", "head"),
    ),
    panels=(
        *exact_panels(
            "positions",
            "patch_position",
            POSITION_CLICKS,
            denoise=N_("Denoising: what suffices, and where"),
            noise=N_("Noising: what is needed, and where"),
        ),
        *exact_panels(
            "heads",
            "patch_head",
            HEAD_CLICKS,
            denoise=N_("Denoising by layer and head"),
            noise=N_("Noising by layer and head"),
        ),
        *estimate_panels(
            "",
            "patch_head",
            HEAD_CLICKS,
            N_("Attribution patching: an estimate by head"),
            N_("How good the estimate is, head by head"),
        ),
        *estimate_panels(
            "_positions",
            "patch_position",
            POSITION_CLICKS,
            N_("Attribution patching: an estimate by position"),
            N_("How good the estimate is, position by position"),
        ),
        Panel(
            name="paths",
            title=N_("Path patching: what heads send the receiver"),
            draw=path_effect_map,
            compared_run="other",
            click_selects=HEAD_CLICKS,
            verify=lambda runs, s: verify_patching(runs, s, None, s.option("patch_direction")),
            inspect=inspect_path,
            width="half",
        ),
        Panel(
            name="neurons",
            title=N_("The layer’s 20 neurons with the largest effects"),
            heading=N_("Layer {layer}: the 20 neurons with the largest effects"),
            draw=neuron_effect_bars,
            compared_run="other",
            click_selects={"customdata": "neuron"},
            verify=verify_neurons,
            inspect=inspect_neuron,
            width="half",
        ),
    ),
)
