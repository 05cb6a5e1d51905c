"""What patched runs say: how much of the way from one answer to the other a node carries."""

from dataclasses import dataclass

import numpy as np

from explorer.tracing.effect_scale import effect
from explorer.tracing.patching_question import DIRECTIONS, METRICS, PatchingQuestion


def effects(question: PatchingQuestion, measured: np.ndarray, metric: str, direction: str) -> np.ndarray:
    """Of nodes, by what all metrics are once each was put in, (M, …), the effects (see `effect_scale.effect`)."""
    row = METRICS.index(metric)
    clean, corrupted = question.unpatched[:, row]
    return effect(measured[row], clean, corrupted, direction)


def part_effects(question: PatchingQuestion, part: str, metric: str, direction: str) -> np.ndarray:
    """(L, P) of every node of a part."""
    return effects(question, question.parts()[part][DIRECTIONS.index(direction)], metric, direction)


def neuron_effects(question: PatchingQuestion, layer: int, metric: str) -> np.ndarray:
    """(2, F) of every neuron of a layer, in both directions."""
    both = zip(question.neurons(layer), DIRECTIONS, strict=True)
    return np.stack([effects(question, measured, metric, direction) for measured, direction in both])


def strongest(values: np.ndarray, count: int) -> np.ndarray:
    """The places of the neurons with the largest effects, by size, in either direction: (2, F) -> (count,)."""
    return np.argsort(-np.nan_to_num(np.abs(values)).max(axis=0), kind="stable")[:count]


@dataclass(frozen=True)
class Agreement:
    """An estimate held against what it estimates.

    Attributes:
        correlation: Pearson's, NaN where one of them does not vary.
        worst: (row, column) of the cells where it errs by most, the worst first.
        errors: estimate − exact at those.
    """

    correlation: float
    worst: tuple[tuple[int, int], ...]
    errors: tuple[float, ...]


def agreement(exact: np.ndarray, estimate: np.ndarray, count: int = 3) -> Agreement:
    """Of two maps (L, P), as far as both are defined."""
    is_defined = np.isfinite(exact) & np.isfinite(estimate)
    both = exact[is_defined], estimate[is_defined]
    varies = all(values.size and np.ptp(values) > 0 for values in both)
    correlation = float(np.corrcoef(*both)[0, 1]) if varies else float("nan")
    errors = np.nan_to_num(estimate - exact)
    order = np.argsort(-np.where(is_defined, np.abs(errors), -1), axis=None, kind="stable")[:count]
    worst = tuple((int(i), int(j)) for i, j in zip(*np.unravel_index(order, errors.shape), strict=True))
    return Agreement(correlation, worst, tuple(float(errors[place]) for place in worst))


def metric_of(logits: np.ndarray, answer: int, wrong: int) -> np.ndarray:
    """(M,) every metric of next-token logits (V,), in float64 and apart from what measured the runs."""
    logits = logits.astype(np.float64)
    largest = logits.max()
    ln = logits[answer] - largest - np.log(np.exp(logits - largest).sum())
    return np.array([logits[answer] - logits[wrong], ln, np.exp(ln)])
