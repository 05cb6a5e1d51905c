"""Interventions on a run, one file for each kind: its text, validation, hooks and exact effect."""

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
from explorer.interventions.parsing import (
    KINDS,
    MAX_INTERVENTIONS,
    SEPARATOR,
    make_intervention,
    parse_intervention,
    parse_interventions,
    sort_interventions,
)
from explorer.interventions.patch import CrossRunIntervention, Patch, PatchMean
from explorer.interventions.position import PositionShift, RopeBaseReplacement
from explorer.interventions.scale_and_zero_ablation import ROTATION_OFF, Scale, ZeroAblation

Edit = make_intervention  # its earlier name

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
