"""What vouches for the maps of effects, and how a clicked effect comes about."""

from collections.abc import Callable

import numpy as np

from explorer.analysis.patching import neuron_effects, part_effects, strongest
from explorer.analysis.rounding import largest_error
from explorer.explain.analysed.patching import as_captured, effect_of, estimate_of, path_of, run_as_changed
from explorer.explain.derivation import Derivation
from explorer.explain.notation import number
from explorer.explain.point import Point, element, nth
from explorer.language import _
from explorer.state.errors import NoSuchPoint
from explorer.state.interventions import Intervention, parse_edit
from explorer.state.selection import Selection
from explorer.tracing.comparison import Comparison
from explorer.tracing.patching_question import DIRECTIONS
from explorer.views.checks import Mark, checked
from explorer.views.patching.estimates import defined
from explorer.views.patching.exact import patch_texts
from explorer.views.patching.neurons import TOP_NEURONS
from explorer.views.patching.paths import receiver_of
from explorer.views.patching.two_prompts import TwoPrompts, two_prompts

Node = tuple[Intervention, np.ndarray]  # what puts it in, and (M,) what is measured then
Largest = Callable[[TwoPrompts, Selection], Node]


def node(two: TwoPrompts, part: str, direction: str, layer: int, place: int) -> Node:
    """NoSuchPoint where the map has no such cell."""
    measured = two.question.parts()[part][DIRECTIONS.index(direction)]  # (M, L, P)
    for row in measured:
        element(row, layer, place)
    text = patch_texts(two, part, direction, measured.shape[1:])[layer][place]
    if not text:
        raise NoSuchPoint(_("the token at position {at} has no partner in the other run", at=place))
    return parse_edit(text), measured[:, layer, place]


def largest_node(two: TwoPrompts, selection: Selection, part: str, direction: str) -> Node:
    values = np.nan_to_num(np.abs(part_effects(two.question, part, selection.metric, direction)))
    return node(two, part, direction, *(int(i) for i in np.unravel_index(values.argmax(), values.shape)))


def mark(runs: Comparison, selection: Selection, largest: Largest | None, direction: str) -> Mark:
    """Both runs' logits recomputed, what they measure held against them, and the node of the largest effect run as an
    ordinary change."""
    two = two_prompts(runs, selection)
    plain = two.clean, two.corrupted
    checks = {}
    for name, run in zip(("clean", "corrupted"), plain, strict=True):
        checks |= {f"{each}, {name}": check for each, check in checked(run, ["logits"]).items()}
    checks[_("measured of clean and corrupted run")] = as_captured(two.question, plain)
    if largest:
        edit, measured = largest(two, selection)
        checks[_("the largest effect, as a changed run")] = run_as_changed(
            two.question, plain, edit, measured, direction
        )
    words = (
        _("the largest effect run again as an ordinary change, largest error {error}")
        if largest
        else _("measured of both runs as captured, largest error {error}")
    )
    details = _("logits of the clean and of the corrupted run")
    return Mark.of(checks, words.format(error=number(largest_error(checks.values()))), details, runs.trace.dtype)


def mark_of_map(runs: Comparison, selection: Selection, part: str, direction: str) -> Mark:
    return mark(runs, selection, lambda two, s: largest_node(two, s, part, direction), direction)


def mark_of_neurons(runs: Comparison, selection: Selection) -> Mark:
    def largest(two: TwoPrompts, s: Selection) -> Node:
        values = neuron_effects(two.question, s.layer, s.metric)
        return neuron_node(two, s.layer, int(np.nan_to_num(np.abs(values[0])).argmax()), 0)

    return mark(runs, selection, largest, "denoise")


def neuron_node(two: TwoPrompts, layer: int, neuron: int, curve: int) -> Node:
    measured = two.question.neurons(layer)[curve][:, neuron]
    return parse_edit(f"blocks.{layer}.ffn.hidden.{neuron}*patch"), measured


def inspect(runs: Comparison, selection: Selection, part: str, direction: str, point: Point) -> Derivation | None:
    two = two_prompts(runs, selection)
    edit, measured = node(two, part, direction, point.row, point.column)
    return effect_of(two.question, (two.clean, two.corrupted), edit, measured, selection.metric, direction)


def inspect_neuron(runs: Comparison, selection: Selection, point: Point) -> Derivation | None:
    two = two_prompts(runs, selection)
    order = strongest(neuron_effects(two.question, selection.layer, selection.metric), TOP_NEURONS)
    direction = nth(DIRECTIONS, point.index("curve") or 0)
    edit, measured = neuron_node(two, selection.layer, int(nth(order, point.of("item"))), DIRECTIONS.index(direction))
    return effect_of(two.question, (two.clean, two.corrupted), edit, measured, selection.metric, direction)


def inspect_estimate(runs: Comparison, selection: Selection, part: str, point: Point) -> Derivation | None:
    two = two_prompts(runs, selection)
    element(two.question.estimate(selection.patch_direction, part, selection.metric), point.row, point.column)
    return estimate(two, selection, part, (point.row, point.column))


def estimate(two: TwoPrompts, selection: Selection, part: str, place: tuple[int, int]) -> Derivation | None:
    return estimate_of(
        two.question, (two.clean, two.corrupted), part, place, selection.metric, selection.patch_direction
    )


def inspect_beside(
    runs: Comparison, selection: Selection, part: str, point: Point
) -> tuple[Derivation, Derivation] | None:
    """The exact effect and the estimate that a dot stands for."""
    two, direction = two_prompts(runs, selection), selection.patch_direction
    exact = part_effects(two.question, part, selection.metric, direction)
    estimates = two.question.estimate(direction, part, selection.metric)
    places = np.argwhere(defined(exact, estimates))
    layer, place = (int(i) for i in nth(places.tolist(), point.of("item")))
    edit, measured = node(two, part, direction, layer, place)
    exactly = effect_of(two.question, (two.clean, two.corrupted), edit, measured, selection.metric, direction)
    return exactly and (exactly, estimate(two, selection, part, (layer, place)))


def inspect_path(runs: Comparison, selection: Selection, point: Point) -> Derivation | None:
    two = two_prompts(runs, selection)
    receiver, direction = receiver_of(two, selection), selection.patch_direction
    element(two.question.paths(direction, receiver)[0], point.row, point.column)
    return path_of(
        two.question,
        (two.clean, two.corrupted),
        receiver,
        (point.row, point.column),
        selection.metric,
        direction,
    )
