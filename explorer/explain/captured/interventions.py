"""Recomputation of captured values in runs with interventions."""

from dataclasses import replace

import numpy as np

from explorer.analysis.interventions import active_effects
from explorer.explain.captured.formulas import Formula
from explorer.explain.derivation import ALL, Calculation, Index
from explorer.explain.notation import format_number, token_formatter
from explorer.interventions import PositionShift, RopeBaseReplacement
from explorer.tracing.trace import Trace
from explorer.translations import _


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
        numbers=lambda: f"{working.numbers()}; {symbol} = {format_number(value)}",
        value=value,
        sizes=sizes,
    )


def apply_intervention_linear_part(trace: Trace, name: str, x: np.ndarray, position: int) -> np.ndarray:
    """Apply the linear part of interventions to vectors (…, N) at a position, or to the logits there.

    Constants that interventions add are left out.
    """
    for effect in active_effects(trace, name):
        x = effect.apply_linear(trace, x, position)
    return x


def first_token_position(trace: Trace) -> int:
    """Return the position of the first token: 0 unless a position shift is active."""
    return sum(int(intervention.amount) for intervention in trace.edits if isinstance(intervention, PositionShift))


def rope_theta(trace: Trace) -> float:
    """Return the base θ of the rotary angles."""
    changed = [intervention.amount for intervention in trace.edits if isinstance(intervention, RopeBaseReplacement)]
    return changed[-1] if changed else trace.config.rope_theta
