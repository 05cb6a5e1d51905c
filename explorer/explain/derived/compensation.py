"""Derivations of compensation: the change of direct effects in a run with interventions."""

from explorer.explain.calculation import Calculation, unique_inputs
from explorer.explain.derivation import Derivation
from explorer.explain.derived.attribution import component_contribution, head_contribution
from explorer.explain.notation import format_number
from explorer.tracing.comparison import Comparison
from explorer.translations import _


def head_compensation(
    comparison: Comparison, position: int, token_id: int, contrast_id: int | None, layer: int, head: int
) -> Derivation:
    """Derive the change of a head's contribution to a logit."""
    return _difference(
        *(head_contribution(run, position, token_id, contrast_id, layer, head) for run in comparison.runs)
    )


def component_compensation(
    comparison: Comparison, position: int, token_id: int, contrast_id: int | None, component: str, layer: int
) -> Derivation:
    """Derive the change of the contribution of one of `LOGIT_COMPONENTS`."""
    return _difference(
        *(component_contribution(run, position, token_id, contrast_id, component, layer) for run in comparison.runs)
    )


def _difference(after: Derivation, before: Derivation) -> Derivation:
    value = after.recomputed_value - before.recomputed_value
    working = Calculation(
        _("changed − unchanged, each {formula}", formula=after.working.symbols.removeprefix("= ")),
        lambda: (
            f"{format_number(after.recomputed_value)} − "
            f"{format_number(before.recomputed_value)} = {format_number(value)}"
        ),
        value,
        unique_inputs((*after.working.inputs, *before.working.inputs)),
    )
    return Derivation(after.name, after.location, after.value - before.value, working, after.source)
