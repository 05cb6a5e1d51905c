"""Interventions at work: a class a kind, which makes the change by hooks."""

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
from explorer.tracing.at_work.averaging import Averaging
from explorer.tracing.at_work.clamping import Clamping
from explorer.tracing.at_work.directing import Adding, Removing
from explorer.tracing.at_work.hiding import Dropping, Masking
from explorer.tracing.at_work.normalising import Normalising
from explorer.tracing.at_work.putting import Putting
from explorer.tracing.at_work.scaling import Scaling
from explorer.tracing.at_work.turning import Shifting, Turning
from explorer.tracing.at_work.work import Work

WORKS: dict[type[Intervention], type[Work]] = {
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


def work_of(edit: Intervention) -> Work:
    """How an intervention is made."""
    return WORKS[type(edit)](edit)
