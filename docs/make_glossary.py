"""Write the glossary of the documents, from that of the page: `python -m docs.make_glossary`."""

from pathlib import Path

from explorer.lessons.glossary import PARTS

GLOSSARY = Path(__file__).with_name("glossary.md")
HEADER = """# Glossary

The page's own: point at a word with dots under it, or tap it, to see what it means and what it is in this very run.
This file is written by `python -m docs.make_glossary`.
"""
TITLES = (  # of the parts, in their order
    *("Text and tokens", "Attention", "Layers", "Contributions"),
    *("Predictions", "Statistics", "Training", "Two runs"),
)


def glossary_markdown() -> str:
    """Return the glossary: a table for each part, sorted as in the page."""
    parts = [HEADER]
    for title, entries in zip(TITLES, PARTS, strict=True):
        rows = (f"| {entry.name} | {entry.meaning} |" for entry in entries)
        parts.append("\n".join([f"## {title}", "", "| term | meaning |", "| --- | --- |", *rows, ""]))
    return "\n".join(parts)


if __name__ == "__main__":
    GLOSSARY.write_text(glossary_markdown(), encoding="utf-8")
