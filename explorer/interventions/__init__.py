"""Interventions on a run, one file for each kind: its text, validation, hooks and exact effect.

In text an intervention is such as "blocks.2.attn.z.1@3-5*zero" or "rope.angles*base*500". It has the tap, the index,
the positions after an @, the operation, the named argument of some kinds, and the amount. The index may stand in
brackets as in Python: "blocks.2.attn.z[1]@3-5*zero".
"""

import pkgutil
import re
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace
from importlib import import_module

from explorer.errors import UserError
from explorer.interventions.attention_mask import (
    AttentionEdgeIntervention,
    DropEdge,
    MaskEdge,
    no_key_left_message,
)
from explorer.interventions.clamp import Clamp
from explorer.interventions.direction import (
    AddDirection,
    DirectionIntervention,
    DirectionSpec,
    Prompts,
    RemoveDirection,
)
from explorer.interventions.intervention import Intervention, PositionSet, Text, index_axis
from explorer.interventions.mean_ablation import MeanAblation
from explorer.interventions.norm_replacement import NormReplacement, active_norm_replacements
from explorer.interventions.patch import CrossRunIntervention, Patch, PatchMean
from explorer.interventions.position import PositionShift, RopeBaseReplacement
from explorer.interventions.scale_and_zero_ablation import ROTATION_OFF, Scale, ZeroAblation
from explorer.translations import _
from model.config import ModelConfig

__all__ = [
    "Edit",
    "SEPARATOR",
    "KINDS",
    "MAX_INTERVENTIONS",
    "ROTATION_OFF",
    "AddDirection",
    "DirectionIntervention",
    "RopeBaseReplacement",
    "Clamp",
    "DropEdge",
    "AttentionEdgeIntervention",
    "make_intervention",
    "CrossRunIntervention",
    "Intervention",
    "MaskEdge",
    "MeanAblation",
    "NormReplacement",
    "Patch",
    "PatchMean",
    "PositionSet",
    "Prompts",
    "DirectionSpec",
    "Text",
    "RemoveDirection",
    "Scale",
    "PositionShift",
    "ZeroAblation",
    "index_axis",
    "sort_interventions",
    "active_norm_replacements",
    "no_key_left_message",
    "parse_intervention",
    "parse_interventions",
]

MAX_INTERVENTIONS = 16  # of one run
SEPARATOR = "~"  # edits in a text
INDEXED = re.compile(r"(.*)(?:\.([0-9]{1,9})|\[([0-9]{1,9})\])", re.ASCII)
STAR = re.compile(r"(?<!blocks\.)\*")  # one that does not stand for all layers


def discover_kinds() -> dict[str, type[Intervention]]:
    """Return the kinds of interventions by operation, those of every file here with `KINDS`, in the order they act."""
    modules = [import_module(f"{__name__}.{module.name}") for module in pkgutil.iter_modules(__path__)]
    kinds = [kind for module in modules for kind in getattr(module, "KINDS", ())]
    return {kind.operation: kind for kind in sorted(kinds, key=lambda kind: kind.order)}


KINDS = discover_kinds()


def make_intervention(
    tap: str,
    operation: str,
    amount: float = 0.0,
    index: int | None = None,
    *,
    positions: PositionSet | str | int | Iterable[int] | None = None,
    by: str = "",
    source: Hashable = None,
) -> Intervention:
    """Return the intervention of the kind `operation`, one of `KINDS`; raise UserError if there is none.

    Args:
        positions: to change, numbers or text like "3-5.9"; None: all, including future ones.
        by: the named argument of some kinds, a direction or a norm.
        source: for patches, the `Trace` of the other run.
    """
    if operation not in KINDS:
        raise UserError(_("a change is one of {kinds}, got {got!r}", kinds=", ".join(KINDS), got=operation[:80]))
    intervention = KINDS[operation](tap, amount, index, PositionSet.parse(positions), by)
    if source is None:
        return intervention
    if not isinstance(intervention, CrossRunIntervention):
        raise UserError(_("{kind!r} uses no other run: remove its source", kind=operation))
    return replace(intervention, source=source)


def parse_intervention(text: str) -> Intervention:
    """Parse the text of an intervention; raise UserError if it is invalid."""
    location, *rest = STAR.split(text)
    operation, *rest = rest or [""]
    needs_argument = operation in KINDS and KINDS[operation].argument_example
    by = rest.pop(0) if needs_argument and rest else ""
    if not operation or len(rest) > 1:
        raise UserError(_("a change is written tap*operation or tap*operation*amount, got {got!r}", got=text[:80]))
    location, at_sign, positions = location.partition("@")
    indexed = INDEXED.fullmatch(location)
    tap, index = (indexed[1], int(indexed[2] or indexed[3])) if indexed else (location, None)
    try:
        amount = float(rest[0]) if rest else 0.0
    except ValueError:
        raise UserError(_("the amount of a change is a number, got {got!r}", got=rest[0][:80])) from None
    return make_intervention(tap, operation, amount, index, positions=positions if at_sign else None, by=by)


def parse_interventions(interventions: str | Sequence[str]) -> tuple[Intervention, ...]:
    """Parse interventions from their texts, or from one text joined by "~".

    Raises:
        UserError: they are invalid, too many or repeated.
    """
    texts = interventions.split(SEPARATOR) if isinstance(interventions, str) and interventions else interventions or ()
    if not isinstance(texts, list | tuple) or not all(isinstance(text, str) for text in texts):
        raise UserError(_("edits are texts"))
    if len(texts) > MAX_INTERVENTIONS:
        raise UserError(_("a run has at most {most} changes, got {got}", most=MAX_INTERVENTIONS, got=len(texts)))
    parsed = tuple(map(parse_intervention, texts))
    if len({intervention.identity_key for intervention in parsed}) < len(parsed):
        raise UserError(_("a run can have each intervention on an activation only once, got one twice"))
    return parsed


def sort_interventions(interventions: Iterable[Intervention], config: ModelConfig) -> list[Intervention]:
    """Return the interventions in the order in which they act in a model, one tap each, without duplicates."""
    expanded = (
        intervention if tap == intervention.tap else replace(intervention, tap=tap)
        for intervention in interventions
        for tap in intervention.affected_taps(config)
    )
    return sorted(dict.fromkeys(expanded), key=lambda intervention: intervention.order)


Edit = make_intervention  # its earlier name
