"""A run's interventions in NumPy: on captured values, and on vectors that the analysis propagates."""

from dataclasses import replace

import numpy as np

from explorer.explain.captured.formulas import Formula
from explorer.explain.derivation import ALL, Calculation, Index
from explorer.explain.notation import format_six_digits, token_formatter
from explorer.interventions import PositionShift, RopeBaseReplacement, sort_interventions
from explorer.interventions.attention_mask import MaskEdge
from explorer.interventions.intervention import InterventionEffect
from explorer.tracing.trace import Trace
from explorer.translations import _


def active_effects(trace: Trace, name: str) -> list[InterventionEffect]:
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


def calculate_with_interventions(trace: Trace, name: str, index: Index, formula: Formula) -> Calculation:
    """Calculate part of a captured value with the interventions on it."""
    working = formula.calculate(trace, index)
    effects = [effect for effect in active_effects(trace, name) if effect.symbol()]
    if not effects:
        return working
    shape = trace.shape(name)
    whole = formula.calculate(trace, (ALL,) * len(shape))  # what an edit makes of one number may depend on others
    value, sizes = whole.value, np.broadcast_to(whole.sizes, shape)
    for effect in effects:
        value, sizes = effect.recompute(trace, value, sizes)
        if np.any(effect.element_mask(shape)[index]):
            working = append_intervention(
                working,
                value[index],
                sizes[index],
                effect.symbol(),
                effect.edit.describe(trace.config, token_formatter(trace)),
            )
    return working


def append_intervention(
    working: Calculation, value: np.ndarray, sizes: np.ndarray, symbol: str, description: str
) -> Calculation:
    """Append an intervention to a calculation's formula, and replace its value and sizes."""
    return replace(
        working,
        symbols=_(
            "{symbols}; then {times}, as it was changed: {words}",
            symbols=working.symbols,
            times=symbol,
            words=description,
        ),
        numbers=lambda: f"{working.numbers()}; {symbol} = {format_six_digits(value)}",
        value=value,
        sizes=sizes,
    )


def first_token_position(trace: Trace) -> int:
    """Return the position of the first token: 0 unless a position shift is active."""
    return sum(int(intervention.amount) for intervention in trace.edits if isinstance(intervention, PositionShift))


def rope_theta(trace: Trace) -> float:
    """Return the base θ of the rotary angles."""
    changed = [intervention.amount for intervention in trace.edits if isinstance(intervention, RopeBaseReplacement)]
    return changed[-1] if changed else trace.config.rope_theta
