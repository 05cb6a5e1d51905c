"""Changes to a run: a class a kind, with its limits and its words; and all of them as text."""

from explorer.state.interventions.axes import axis
from explorer.state.interventions.intervention import Intervention
from explorer.state.interventions.positions import Base, Shift
from explorer.state.interventions.scale import ROTATION_OFF, Scale, Zero
from explorer.state.interventions.text import BETWEEN, KINDS, MOST_EDITS, Edit, parse_edit, parse_edits

__all__ = [
    "BETWEEN",
    "KINDS",
    "MOST_EDITS",
    "ROTATION_OFF",
    "Base",
    "Edit",
    "Intervention",
    "Scale",
    "Shift",
    "Zero",
    "axis",
    "parse_edit",
    "parse_edits",
]
