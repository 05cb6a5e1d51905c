"""Activation patching: normalised effects, and agreement of estimates with exact effects."""

from dataclasses import dataclass

import numpy as np

from explorer.tracing.patching.experiment import DIRECTIONS, METRICS, PatchingExperiment, normalised_effect


def patching_effects(experiment: PatchingExperiment, measured: np.ndarray, metric: str, direction: str) -> np.ndarray:
    """Return the normalised effects of nodes on one metric, from all metrics (M, …) measured after patching each node.

    See `normalised_effect.normalised_effect`.
    """
    row = METRICS.index(metric)
    clean, corrupted = experiment.unpatched_metrics[:, row]
    return normalised_effect(measured[row], clean, corrupted, direction)


def component_effects(experiment: PatchingExperiment, component: str, metric: str, direction: str) -> np.ndarray:
    """Return the effects of all nodes of a component, (L, P)."""
    return patching_effects(
        experiment, experiment.component_metrics()[component][DIRECTIONS.index(direction)], metric, direction
    )


def neuron_effects(experiment: PatchingExperiment, layer: int, metric: str) -> np.ndarray:
    """Return the effects of all neurons of a layer in both directions, (2, F)."""
    metrics_by_direction = zip(experiment.neuron_metrics(layer), DIRECTIONS, strict=True)
    return np.stack(
        [patching_effects(experiment, measured, metric, direction) for measured, direction in metrics_by_direction]
    )


def strongest_neuron_indices(values: np.ndarray, count: int) -> np.ndarray:
    """Return the indices of the neurons with the largest |effect| in either direction, (2, F) -> (count,)."""
    return np.argsort(-np.nan_to_num(np.abs(values)).max(axis=0), kind="stable")[:count]


@dataclass(frozen=True)
class Agreement:
    """Agreement of an estimate with the exact values.

    Attributes:
        correlation: Pearson correlation, NaN if one of them is constant.
        worst: (row, column) of the cells with the largest errors, largest first.
        errors: estimate − exact at these cells.
    """

    correlation: float
    worst: tuple[tuple[int, int], ...]
    errors: tuple[float, ...]


def agreement(exact: np.ndarray, estimate: np.ndarray, count: int = 3) -> Agreement:
    """Compare two maps (L, P) where both are defined."""
    is_defined = np.isfinite(exact) & np.isfinite(estimate)
    finite_values = exact[is_defined], estimate[is_defined]
    varies = all(values.size and np.ptp(values) > 0 for values in finite_values)
    correlation = float(np.corrcoef(*finite_values)[0, 1]) if varies else float("nan")
    errors = np.nan_to_num(estimate - exact)
    order = np.argsort(-np.where(is_defined, np.abs(errors), -1), axis=None, kind="stable")[:count]
    worst = tuple((int(i), int(j)) for i, j in zip(*np.unravel_index(order, errors.shape), strict=True))
    return Agreement(correlation, worst, tuple(float(errors[cell]) for cell in worst))


def logit_metrics(logits: np.ndarray, answer: int, wrong: int) -> np.ndarray:
    """Return every metric of next-token logits (V,), (M,), in float64.

    Computed independently of the code that measures the runs.
    """
    logits = logits.astype(np.float64)
    largest = logits.max()
    ln = logits[answer] - largest - np.log(np.exp(logits - largest).sum())
    return np.array([logits[answer] - logits[wrong], ln, np.exp(ln)])
