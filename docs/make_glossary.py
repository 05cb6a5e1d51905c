"""Write the glossary of the documents, from that of the page: `python -m docs.make_glossary`."""

from pathlib import Path

from explorer.lessons.glossary import MODULES

GLOSSARY = Path(__file__).with_name("glossary.md")
HEADER = """# Glossary

The page's own: point at a word with dots under it, or tap it, to see what it means and what it is in this very run.
This file is written by `python -m docs.make_glossary`.
"""
TITLES = (  # of the modules, in their order
    "Text and tokens",
    "Components and their contributions",
    "Predictions, statistics and training",
    "Two runs",
)


def glossary_markdown() -> str:
    """Return the glossary: a table for each part, sorted as in the page."""
    parts = [HEADER]
    for title, module in zip(TITLES, MODULES, strict=True):
        rows = (f"| {entry.name} | {entry.meaning} |" for entry in module.ENTRIES)
        parts.append("\n".join([f"## {title}", "", "| term | meaning |", "| --- | --- |", *rows, ""]))
    return "\n".join(parts)


if __name__ == "__main__":
    GLOSSARY.write_text(glossary_markdown(), encoding="utf-8")
