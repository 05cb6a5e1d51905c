"""Glossary of the page's terms, which makes the page's explanations and docs/glossary.md."""

from explorer.lessons.glossary.glossary_entry import GlossaryEntry, GlossaryExampleContext
from explorer.lessons.glossary.interpretability_terms import ATTRIBUTION, COMPARISON
from explorer.lessons.glossary.model_terms import ATTENTION, LAYERS, TOKENS
from explorer.lessons.glossary.prediction_and_training_terms import PREDICTIONS, STATISTICS, TRAINING
from explorer.translations import translate

PARTS = (TOKENS, ATTENTION, LAYERS, ATTRIBUTION, PREDICTIONS, STATISTICS, TRAINING, COMPARISON)
ENTRIES = tuple(entry for part in PARTS for entry in part)
ENTRY_BY_NAME: dict[str, GlossaryEntry] = {entry.name: entry for entry in ENTRIES}


def entry_names_by_form() -> dict[str, str]:
    """Return the translated forms of all terms -> the name of their entry."""
    return {translate(form): entry.name for entry in reversed(ENTRIES) for form in entry.forms}


__all__ = ["ENTRIES", "ENTRY_BY_NAME", "GlossaryEntry", "GlossaryExampleContext", "entry_names_by_form"]
