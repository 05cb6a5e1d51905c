"""What the page's script and Python call things: what can be asked, and the ids of the elements that answers are for.

`assets.py` gives the script what it needs of it as the module `protocol.js`, so that a name is written once.
"""

from dataclasses import fields
from typing import Any

from explorer.state.selection import FULL_TABS, SIMPLE_TABS
from explorer.state.settings import GenerationSettings

# What a change of the state asks for, by importance; the last for everything.
ABOUT = ("tune", "token", "pick", "view", "show")
PARTS = range(3)  # of an answer: what is seen at once, the rest, what vouches for it

WHOLE = tuple(field.name for field in fields(GenerationSettings) if field.type is int)  # settings of whole numbers

ADVICE, BRANCHES, BRIEF, CHANGES, PICKER, PLAYBACK = "advice", "branches", "brief", "changes", "picker", "playback"
GUESS, IN_FULL, OPEN_MODEL, PROBLEM, STORY, STRIP = "guess", "in-full", "open-model", "problem", "story", "strip"
LESSON = "lesson"
WHY, STAND_INS = "why-token", "stand-ins"
RUNS, SERIES, STRIP_B = "runs", "series", "strip-b"
NEXT_TOKEN, NEXT_TOKEN_WORDS = "next-token", "next-token-words"
TAB = "tab"  # all of one
# What a tab has besides its pictures.
WORDS, FORMULA, CHOOSERS, WHAT_IFS = "words", "formula", "choosers", "what-ifs"
LISTS, WRITTEN = "lists", "written"
WALK = "walk"
WALKS = {"attention": "attention", "positions": "rotation", "residual": "layers"}  # a tab's
MARK = "-mark"  # after a picture's id: what vouches for it


def in_tab(view: str, name: str) -> str:
    """The id of a picture of a tab, or of what it has besides."""
    return f"{view}-{name}"


def for_script() -> dict[str, Any]:
    """The names that the script needs, too (static/protocol.d.ts)."""
    return {
        "ABOUT": ABOUT,
        "ADVICE": ADVICE,
        "CHOOSERS": CHOOSERS,
        "FORMULA": FORMULA,
        "FULL_TABS": FULL_TABS,
        "LESSON": LESSON,
        "MARK": MARK,
        "NEXT_TOKEN": NEXT_TOKEN,
        "PROBLEM": PROBLEM,
        "SERIES": SERIES,
        "SIMPLE_TABS": SIMPLE_TABS,
        "STAND_INS": STAND_INS,
        "TAB": TAB,
        "WHAT_IFS": WHAT_IFS,
        "WHOLE": WHOLE,
        "WHY": WHY,
    }
