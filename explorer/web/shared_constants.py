"""Names and defaults that the page's script and Python share: scopes of requests, element ids, fields and tabs.

`assets.py` writes lists and defaults that the script needs to the module `shared_constants.js`; it names elements as
CSS does, by their ids.
"""

from dataclasses import fields
from typing import Any

from explorer.explain.notation import END_OF_TEXT_TOKENS
from explorer.state.generation_settings import GenerationSettings
from explorer.state.page_state import PageState
from explorer.state.selection import Selection
from explorer.translations import LANGUAGES
from explorer.views import STORY_STEPS, STORY_VIEWS, numbers_views

# What a change of the state asks for, by importance; the last for everything.
ABOUT = ("tune", "token", "pick", "view", "show")
STAGES = range(3)  # of an answer: visible at once, the rest, verifications

INTEGER_SETTINGS = tuple(
    field.name for field in fields(GenerationSettings) if field.type is int
)  # settings of whole numbers

ADVICE, BRANCHES, BRIEF, CHANGES, PICKER, PLAYBACK = "advice", "branches", "brief", "changes", "picker", "playback"
CHAT, GUESS, IN_FULL, OPEN_MODEL, PROBLEM = "chat", "guess", "in-full", "open-model", "problem"
STORY, STRIP = "story", "strip"
LESSON = "lesson"
FACTS, VOCABULARY = "facts", "vocabulary"  # of the model
WHY, STAND_INS = "why-token", "stand-ins"
RUNS, SERIES, STRIP_B = "runs", "series", "strip-b"
NEXT_TOKEN, NEXT_TOKEN_WORDS = "next-token", "next-token-words"
VIEW, TAB = "view", "tab"  # the open view, and all of one
# What a tab has besides its figures.
WORDS, FORMULA, CODE, CHOOSERS, WHAT_IFS = "words", "formula", "code", "choosers", "what-ifs"
LISTS, WRITTEN = "lists", "written"
WALK = "walk"
WALKS = {"attention": "attention", "positions": "rotation", "residual": "layers"}  # a tab's
MARK = "-mark"  # suffix of a figure's id: its verification
EFFECT = "-effect"  # and of the list of changes: what they did to the prediction
QUESTION = "-question"  # and of an explanation: its button's text
HEADING = "-heading"  # and what stands above it
OF_B = "-b"  # suffix of the id of B's figure beside A's


def element_id(view: str, name: str) -> str:
    """Return the id of a tab's figure or other element."""
    return f"{view}-{name}"


def run_state_change(page_state: PageState) -> dict[str, Any]:
    """Return the change of the browser's state to a run.

    Of the selection it has the tokens alone: clicks may have changed the rest since.
    """
    tokens = {"query": page_state.selection.query, "key": page_state.selection.key, "turn": page_state.turn}
    return page_state.run.as_dict() | page_state.other_as_dict() | page_state.tree_as_dict() | tokens


def url_field_defaults() -> dict[str, Any]:
    """Return the values that a field of the state has where a URL with a view, a model and token ids lacks it.

    The depth is then the user's own, and the layer and the neuron are those with the largest effects.
    """
    defaults = Selection().as_dict() | GenerationSettings().as_dict() | {"dropped": 0, "began": 0, "b.dropped": 0}
    return {name: value for name, value in defaults.items() if name not in ("view", "depth", "layer", "neuron")}


def js_constants() -> dict[str, Any]:
    """Return what the script needs, too (static/shared_constants.d.ts)."""
    return {
        "ABOUT": ABOUT,
        "ADDRESS_DEFAULTS": url_field_defaults(),
        "COMPARING": [view.name for view in numbers_views(has_own_module=True) if view.is_comparison],
        "DEEPER_VIEWS": {view.name: view.deeper_views for view in STORY_VIEWS},
        "END_OF_TEXT_TOKENS": END_OF_TEXT_TOKENS,
        "FULL_TABS": [view.name for view in numbers_views(has_own_module=True)],
        "PLOTLY_URL": "../plotly.js",  # from the script that draws figures
        "SELECTABLE": [*Selection().as_dict(), *GenerationSettings().as_dict()],
        "SIMPLE_TABS": [view.name for view in STORY_VIEWS],
        "STORY_TABS": [view.name for view in STORY_STEPS],
        "LANGUAGES": LANGUAGES,
        "WHOLE": INTEGER_SETTINGS,
    }
