"""What the page's words mean: the README's table is made of it, and the page explains every word of it in place."""

from explorer.language import look_up
from explorer.lessons.glossary import (
    of_attention,
    of_explanations,
    of_layers,
    of_numbers,
    of_predictions,
    of_text,
    of_training,
    of_two_runs,
)
from explorer.lessons.glossary.entry import Entry, Look

PARTS = of_text, of_attention, of_layers, of_explanations, of_predictions, of_numbers, of_training, of_two_runs
ENTRIES = tuple(entry for part in PARTS for entry in part.ENTRIES)
ENTRY_NAMED: dict[str, Entry] = {entry.name: entry for entry in ENTRIES}


def forms() -> dict[str, str]:
    """Each form in the language that is spoken -> the name of its entry."""
    return {look_up(form): entry.name for entry in reversed(ENTRIES) for form in entry.forms}


__all__ = ["ENTRIES", "ENTRY_NAMED", "Entry", "Look", "forms"]
