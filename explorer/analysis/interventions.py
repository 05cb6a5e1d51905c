"""Recomputation of interventions in NumPy, for values that the analysis propagates."""

import numpy as np

from explorer.interventions.intervention import Effect
from explorer.interventions.mask import MaskEdge
from explorer.interventions.text import sort_interventions
from explorer.tracing.trace import Trace


def active_effects(trace: Trace, name: str) -> list[Effect]:
    """Return the effects of the run's interventions on a value, in the order in which they act."""
    return [
        intervention.effect_class(intervention)
        for intervention in sort_interventions(trace.edits, trace.config)
        if intervention.affects(name)
    ]


def apply_intervention_linear_part(
    trace: Trace, name: str, x: np.ndarray, position: int | np.ndarray | None = None, backwards: bool = False
) -> np.ndarray:
    """Apply the linear part of the run's interventions on a value to vectors (…, N) at its tap, or to logits.

    The constants that interventions add are left out, see `added_constant`.

    Args:
        position: position of the vectors, or (T,) one for each of x (…, T, N); required if interventions act at
            some positions only.
        backwards: transform a direction that is read after the interventions to the direction before them.
    """
    effects = active_effects(trace, name)
    for effect in reversed(effects) if backwards else effects:
        x = effect.apply_linear(trace, x, position)
    return x


def recompute_with_interventions(trace: Trace, name: str, value: np.ndarray) -> np.ndarray:
    """Apply the run's interventions to a whole value that was recomputed without them."""
    for effect in active_effects(trace, name):
        value, _sizes = effect.recompute(trace, value, np.abs(value))
    return value


def adds_constant(trace: Trace, name: str) -> bool:
    """Return whether interventions on a value add a constant to it."""
    return any(effect.adds for effect in active_effects(trace, name))


def added_constant(trace: Trace, name: str, before: np.ndarray, position: int | np.ndarray) -> np.ndarray:
    """Return the constant that interventions added to a value: captured minus linear part of `before`."""
    captured = trace[name][..., position, :].astype(np.float64)
    return (
        captured - apply_intervention_linear_part(trace, name, before, position)
        if adds_constant(trace, name)
        else np.zeros_like(captured)
    )


def masked_attention_edges(trace: Trace, name: str) -> np.ndarray:
    """Return (H, T, T) booleans: True for query-key edges that the run's masks block."""
    mask = np.zeros(trace[name].shape, dtype=bool)
    for intervention in sort_interventions(trace.edits, trace.config):
        if isinstance(intervention, MaskEdge) and intervention.tap == name and intervention.key < len(trace):
            queries = [query for query in range(len(trace)) if intervention.blocks_query(query)]
            mask[slice(None) if intervention.index is None else intervention.index, queries, intervention.key] = True
    return mask
