"""Changes to a run: a class a kind, with its limits and its words; and all of them as text."""

from explorer.state.interventions.axes import axis
from explorer.state.interventions.clamp import Clamp
from explorer.state.interventions.direction import Add, Along, Prompts, Recipe, Remove
from explorer.state.interventions.edges import Drop, Edge, Mask, nothing_left
from explorer.state.interventions.from_other import FromOther, Patch, PatchMean
from explorer.state.interventions.intervention import Intervention, Text
from explorer.state.interventions.mean import Mean
from explorer.state.interventions.norm import Norm, norms_in_place
from explorer.state.interventions.places import Positions
from explorer.state.interventions.positions import Base, Shift
from explorer.state.interventions.scale import ROTATION_OFF, Scale, Zero
from explorer.state.interventions.text import BETWEEN, KINDS, MOST_EDITS, Edit, in_order, parse_edit, parse_edits

__all__ = [
    "BETWEEN",
    "KINDS",
    "MOST_EDITS",
    "ROTATION_OFF",
    "Add",
    "Along",
    "Base",
    "Clamp",
    "Drop",
    "Edge",
    "Edit",
    "FromOther",
    "Intervention",
    "Mask",
    "Mean",
    "Norm",
    "Patch",
    "PatchMean",
    "Positions",
    "Prompts",
    "Recipe",
    "Text",
    "Remove",
    "Scale",
    "Shift",
    "Zero",
    "axis",
    "in_order",
    "norms_in_place",
    "nothing_left",
    "parse_edit",
    "parse_edits",
]
