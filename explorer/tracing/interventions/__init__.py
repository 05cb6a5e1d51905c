"""The hooks of interventions, a class a kind."""

from explorer.state.interventions import (
    Add,
    Base,
    Clamp,
    Drop,
    Intervention,
    Mask,
    Mean,
    Norm,
    Patch,
    PatchMean,
    Remove,
    Scale,
    Shift,
    Zero,
)
from explorer.tracing.interventions.averaging import Averaging
from explorer.tracing.interventions.clamping import Clamping
from explorer.tracing.interventions.directing import Adding, Removing
from explorer.tracing.interventions.hiding import Dropping, Masking
from explorer.tracing.interventions.intervention_hooks import InterventionHooks
from explorer.tracing.interventions.normalising import Normalising
from explorer.tracing.interventions.putting import Putting
from explorer.tracing.interventions.scaling import Scaling
from explorer.tracing.interventions.turning import Shifting, Turning

HOOKS: dict[type[Intervention], type[InterventionHooks]] = {
    Shift: Shifting,
    Base: Turning,
    Norm: Normalising,
    Mask: Masking,
    Drop: Dropping,
    Mean: Averaging,
    Patch: Putting,
    PatchMean: Putting,
    Scale: Scaling,
    Zero: Scaling,
    Clamp: Clamping,
    Remove: Removing,
    Add: Adding,
}


def hooks_of(edit: Intervention) -> InterventionHooks:
    """What makes an intervention."""
    return HOOKS[type(edit)](edit)
