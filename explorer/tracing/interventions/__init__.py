"""The hooks of interventions, one class for each kind."""

from explorer.state.interventions import (
    AddDirection,
    Clamp,
    DropEdge,
    Intervention,
    MaskEdge,
    MeanAblation,
    NormReplacement,
    Patch,
    PatchMean,
    PositionShift,
    RemoveDirection,
    RopeBaseReplacement,
    Scale,
    ZeroAblation,
)
from explorer.tracing.interventions.attention_edges import DropEdgeHooks, MaskEdgeHooks
from explorer.tracing.interventions.base import InterventionHooks
from explorer.tracing.interventions.clamp import ClampHooks
from explorer.tracing.interventions.direction import AddHooks, RemoveHooks
from explorer.tracing.interventions.mean import MeanHooks
from explorer.tracing.interventions.norm import NormReplacementHooks
from explorer.tracing.interventions.patch import PatchHooks
from explorer.tracing.interventions.position_interventions import PositionShiftHooks, RopeBaseHooks
from explorer.tracing.interventions.scale import ScaleHooks

HOOKS: dict[type[Intervention], type[InterventionHooks]] = {
    PositionShift: PositionShiftHooks,
    RopeBaseReplacement: RopeBaseHooks,
    NormReplacement: NormReplacementHooks,
    MaskEdge: MaskEdgeHooks,
    DropEdge: DropEdgeHooks,
    MeanAblation: MeanHooks,
    Patch: PatchHooks,
    PatchMean: PatchHooks,
    Scale: ScaleHooks,
    ZeroAblation: ScaleHooks,
    Clamp: ClampHooks,
    RemoveDirection: RemoveHooks,
    AddDirection: AddHooks,
}


def make_hooks(intervention: Intervention) -> InterventionHooks:
    """Return the hooks of an intervention."""
    return HOOKS[type(intervention)](intervention)
