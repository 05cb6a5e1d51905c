"""Glossary of the page's terms, which makes the page's explanations and docs/glossary.md."""

from explorer.lessons.glossary import comparison, components, predictions, tokens
from explorer.lessons.glossary.entry import Entry, GlossaryContext
from explorer.translations import translate

PARTS = (
    *(tokens.ENTRIES, components.ATTENTION, components.LAYERS, components.ATTRIBUTION),
    *(predictions.PREDICTIONS, predictions.STATISTICS, predictions.TRAINING, comparison.ENTRIES),
)
ENTRIES = tuple(entry for part in PARTS for entry in part)
FIRST_TERMS = (  # that a beginner needs, in the order of a run
    *("token", "embedding", "layer", "attention", "head", "feed-forward", "residual stream", "logit", "probability"),
    "temperature",
)
ENTRY_BY_NAME: dict[str, Entry] = {entry.name: entry for entry in ENTRIES}


def entry_names_by_form() -> dict[str, str]:
    """Return the translated forms of all terms -> the name of their entry."""
    return {translate(form): entry.name for entry in reversed(ENTRIES) for form in entry.forms}


__all__ = ["ENTRIES", "ENTRY_BY_NAME", "FIRST_TERMS", "Entry", "GlossaryContext", "entry_names_by_form"]
