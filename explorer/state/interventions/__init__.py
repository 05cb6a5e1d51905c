"""Interventions on a run, one class for each kind, and their text form."""

from explorer.state.interventions.attention_edges import AttentionEdge, DropEdge, MaskEdge, no_key_left_message
from explorer.state.interventions.axes import index_axis
from explorer.state.interventions.clamp import Clamp
from explorer.state.interventions.direction import (
    AddDirection,
    DirectionIntervention,
    DirectionSpec,
    Prompts,
    RemoveDirection,
)
from explorer.state.interventions.intervention import Intervention, Text
from explorer.state.interventions.intervention_text import (
    KINDS,
    MAX_INTERVENTIONS,
    SEPARATOR,
    make_intervention,
    parse_intervention,
    parse_interventions,
    sort_interventions,
)
from explorer.state.interventions.mean import MeanAblation
from explorer.state.interventions.norm import NormReplacement, active_norm_replacements
from explorer.state.interventions.patch import CrossRunIntervention, Patch, PatchMean
from explorer.state.interventions.position_interventions import PositionShift, RopeBaseReplacement
from explorer.state.interventions.position_set import PositionSet
from explorer.state.interventions.scale import ROTATION_OFF, Scale, ZeroAblation

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
    "AttentionEdge",
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
