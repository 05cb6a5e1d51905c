"""Verification of the patching maps, and derivations of clicked effects."""

from collections.abc import Callable

import numpy as np

from explorer.analysis.patching_effects import (
    check_patched_run,
    check_unpatched,
    component_effects,
    neuron_effects,
    patch_effect,
    patch_estimate,
    path_effect,
    strongest_neuron_indices,
)
from explorer.errors import PointNotFoundError
from explorer.explain.clicked_point import ClickedPoint, get_element, get_item
from explorer.explain.derivation import Derivation, largest_error
from explorer.explain.notation import format_number
from explorer.interventions import Intervention, parse_intervention
from explorer.state.selection import Selection
from explorer.tracing.comparison import Comparison
from explorer.tracing.patching.experiment import DIRECTIONS
from explorer.translations import _
from explorer.views.patching.effect_maps import (
    TOP_NEURONS,
    CleanAndCorruptedRuns,
    both_defined,
    make_prompt_pair,
    patch_texts,
    selected_receiver,
)
from explorer.views.verification import Verification, check_values

Node = tuple[Intervention, np.ndarray]  # the intervention that patches it, and the metrics (M,) measured then
Largest = Callable[[CleanAndCorruptedRuns, Selection], Node]


def node_patch_and_metrics(
    prompt_pair: CleanAndCorruptedRuns, component: str, direction: str, layer: int, column: int
) -> Node:
    """Return the intervention that patches a node of a map, and the metrics (M,) of the patched run.

    Raises:
        PointNotFoundError: the map has no such cell, or its position is not aligned.
    """
    metrics = prompt_pair.experiment.component_metrics()[component][DIRECTIONS.index(direction)]  # (M, L, P)
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
    baseline_runs = prompt_pair.clean, prompt_pair.corrupted
    checks = {}
    for name, run in zip(("clean", "corrupted"), baseline_runs, strict=True):
        checks |= {f"{tap}, {name}": check for tap, check in check_values(run, ["logits"]).items()}
    checks[_("measured of clean and corrupted run")] = check_unpatched(prompt_pair.experiment, baseline_runs)
    if largest:
        intervention, metrics = largest(prompt_pair, selection)
        checks[_("the largest effect, as a changed run")] = check_patched_run(
            prompt_pair.experiment, baseline_runs, intervention, metrics, direction
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
    return patch_effect(
        prompt_pair.experiment,
        (prompt_pair.clean, prompt_pair.corrupted),
        intervention,
        metrics,
        selection.option("metric"),
        direction,
    )


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
    return patch_effect(
        prompt_pair.experiment,
        (prompt_pair.clean, prompt_pair.corrupted),
        intervention,
        metrics,
        selection.option("metric"),
        direction,
    )


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
        prompt_pair.experiment,
        (prompt_pair.clean, prompt_pair.corrupted),
        component,
        index,
        selection.option("metric"),
        selection.option("patch_direction"),
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
    exact_derivation = patch_effect(
        prompt_pair.experiment,
        (prompt_pair.clean, prompt_pair.corrupted),
        intervention,
        metrics,
        selection.option("metric"),
        direction,
    )
    return exact_derivation and (exact_derivation, derive_estimate(prompt_pair, selection, component, (layer, column)))


def inspect_path(runs: Comparison, selection: Selection, point: ClickedPoint) -> Derivation | None:
    """Derive the effect of the clicked head along its direct path."""
    prompt_pair = make_prompt_pair(runs, selection)
    receiver, direction = selected_receiver(prompt_pair, selection), selection.option("patch_direction")
    get_element(prompt_pair.experiment.path_metrics(direction, receiver)[0], point.row, point.column)
    return path_effect(
        prompt_pair.experiment,
        (prompt_pair.clean, prompt_pair.corrupted),
        receiver,
        (point.row, point.column),
        selection.option("metric"),
        direction,
    )
