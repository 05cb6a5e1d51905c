"""Contents of a page after any sequence of choices, compared with a page opened in the same state.

The page keeps a content until an answer replaces it, so an answer that lacks something that a choice changed
leaves a stale text, bar or badge. Each choice makes the requests of the page's scripts (`static/page_actions.js`).
"""

import itertools
import json
import random

import pytest

from explorer.errors import UserError
from explorer.state.generation_settings import GenerationSettings
from explorer.state.selection import field_choices, is_story_view
from explorer.tracing.model_library import ModelLibrary
from explorer.tracing.run_service import RunService
from explorer.views import FULL, STORY_VIEWS, VIEWS
from explorer.web.actions.page_state_builder import PageStateBuilder
from explorer.web.browser_api.endpoints import BrowserEndpoints
from explorer.web.browser_api.page_contents import FOLDED
from explorer.web.shared_constants import HEADING, MARK, OF_B, element_id
from tests.browser.checkpoints import write_checkpoints
from tests.exhaustive import first_in_core
from tests.subtest_loops import subtest_each

TEXT, OTHER = "The cat sat on the mat. The cat", "The dog sat on the mat. The dog"
STARTS = {
    "one run": {},
    "two runs": {"b.text": OTHER, "shown": "difference"},
    "changed": {"edits": "blocks.0.attn.z.1*zero", "why": "open", "stand_ins": "open"},
    "a step of a training": {"checkpoint": "fables/step-000004"},
    "other norms": {"checkpoint": "gpt-twin"},
    "no positions": {"checkpoint": "no-positions"},
    "written on": {"generated": "66.67.101.102", "branches": "66.70", "why": "open"},
    "changed at the end": {"edits": "blocks.0.attn.z.1@22*zero", "b.text": OTHER, "b.edits": "rope.angles*shift*5"},
}
PICKS = {
    "layer": (0, 1),
    "head": (0, 1),
    "query": (0, 3, 7, 15),
    "key": (0, 2),
    "tap": ("embed", "blocks.1.attn.q", "blocks.0.ffn.hidden", "logits"),
    "dim": (0, 5),
    "neuron": (0, 9),
    "residual_depth": (0, 1, 2),
    "target": (1, 2, 5),
    "rival": (0, 2, 3),
    "heads": ("", "0.0~1.1"),
    "window": (0, 3),
    "answer": ("", " dog"),
    "wrong": ("", " cat"),
    "direction": ("", "means.1.5.9-7"),
    **{name: words for name, words in field_choices().items() if name not in ("shade", "shown")},
}
TUNES = {
    "temperature": (0, 0.3, 1.5),
    "top_k": (0, 1, 3),
    "top_p": (1, 0.5),
    "min_p": (0, 0.2),
    "repetition_penalty": (1, 1.5),
    "seed": (0, 7),
    "find": ("", "the"),
    "guess": ("", "dog"),
}
TABS = [view.name for view in VIEWS]
OPENS = {"view": TABS, "shown": field_choices()["shown"]}
SHOWS = {  # another run: the changed fields of the state arrive with the answer to an action
    "checkpoint": ("tiny", "gpt-twin", "no-positions", "one-head", "fables/step-000008", "fables/step-000032"),
    "edits": ("", "blocks.0.attn.z.1*zero", "blocks.1.resid_post*scale*2"),
    "generated": ([], [66, 67], [101, 102, 103]),
    "b": ({}, {"b.checkpoint": "tiny", "b.edits": "blocks.0.attn.z.0*zero"}, {"b.checkpoint": "gpt-twin"}),
}
CHOICES = [
    (about, field, value)
    for about, fields in {"pick": PICKS, "tune": TUNES, "view": OPENS, "show": SHOWS}.items()
    for field, values in fields.items()
    for value in values
]


@pytest.fixture(scope="module")
def builder(tmp_path_factory, tiny_tokenizer):
    folder = tmp_path_factory.mktemp("checkpoints")
    write_checkpoints(folder, tiny_tokenizer)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("model.checkpoint.CHECKPOINTS", folder)
        yield PageStateBuilder(RunService(ModelLibrary("cpu")))


class Page:
    """A page in the browser: its state, and the latest contents by element id."""

    def __init__(self, builder: PageStateBuilder, state: dict):
        self.opening, self.endpoints = builder, BrowserEndpoints(builder.runs)
        self.state, self.contents = state, self.answer("show", state)

    def answer(self, about: str, state: dict) -> dict:
        contents = {}
        for stage in range(self.endpoints.num_stages(about, state)):
            contents |= self.endpoints.answer(about, state, stage)["contents"]
        return json.loads(json.dumps(contents))

    def choose(self, about: str, field: str, value) -> bool:
        """Set a field and update the contents; return False if nothing changes or the page refuses the value."""
        change = dict.fromkeys((name for name in self.state if name.startswith("b.")), "") if field == "b" else {}
        change |= value if field == "b" else {field: value}
        if all(self.state.get(name) == now for name, now in change.items()):
            return False
        if field == "shown" and not self.state["b.checkpoint"]:
            return False
        if field == "depth" and "story" in (value, self.state["depth"]):  # that opens another view
            return False
        before, new_state = self.state, self.state | change
        if about == "show":
            try:
                new_state |= self.opening.state_from_query(new_state).as_dict()
            except UserError:  # the page refuses it and is unchanged
                return False
        new_state["key"] = min(new_state["key"], new_state["query"])
        is_other_page = is_story_view(before["view"]) is not is_story_view(new_state["view"])
        if about == "view" and is_other_page and new_state["b.checkpoint"]:
            about = "show"
        self.state = new_state
        self.contents |= self.answer(about, new_state)
        return True

    def stale_contents(self) -> dict[str, tuple]:
        """Return the contents that differ from those of a page opened in this state, as pairs (current, fresh)."""
        fresh, view = self.answer("show", self.state), self.state["view"]
        own_ids = {name for name in self.contents if name.startswith(element_id(view, ""))}
        if self.state["shown"] != "both":  # only then B's figures next to A's are visible
            own_ids = {name for name in own_ids if not name.removesuffix(MARK).removesuffix(HEADING).endswith(OF_B)}
        hidden_ids = {name + MARK for name, content in fresh.items() if content == FOLDED}
        hidden_ids |= {name + HEADING for name in own_ids if fresh.get(name) is None}
        visible_ids = (own_ids - hidden_ids) | fresh.keys()
        current = {name: self.contents.get(name) for name in visible_ids}
        return {name: (current[name], fresh.get(name)) for name in visible_ids if current[name] != fresh.get(name)}


def walk(builder: PageStateBuilder, start: str, view: str, choices) -> int:
    """Make choices one after another, check the contents after each, and return the number of accepted choices."""
    page_state = builder.state_from_query({"checkpoint": "tiny", "text": TEXT, "view": view} | STARTS[start])
    page, accepted = Page(builder, page_state.as_dict() | GenerationSettings().as_dict()), []
    for choice in choices:
        if page.choose(*choice):
            accepted.append(choice)
            assert page.stale_contents() == {}, f"{start}, {view}, after {accepted[-4:]}"
    return len(accepted)


@pytest.mark.parametrize("view", first_in_core(["prediction", *(name for name in TABS if name != "prediction")]))
def test_no_content_is_stale_after_any_choice(builder, view):
    """Test a third of all choices in each tab, in random order."""
    choices = [choice for choice in CHOICES if choice[1] != "view"][TABS.index(view) % 3 :: 3]
    assert walk(builder, "two runs", view, random.Random(view).sample(choices, len(choices))) > len(choices) // 2


@pytest.mark.parametrize(("start", "view"), [("two runs", "looks"), ("changed", "directions")])
def test_no_content_is_stale_after_changing_tabs(builder, start, view):
    through = [view for pair in itertools.zip_longest(FULL[::3], STORY_VIEWS) for view in pair if view]
    assert walk(builder, start, view, [("view", "view", view.name) for view in through]) > 5


@pytest.mark.by_hand
@pytest.mark.parametrize("view", TABS)
@subtest_each("start", STARTS)
def test_no_content_is_stale_after_random_choices(builder, start, view):
    chance = random.Random(f"{start} {view}")
    walk(builder, start, view, chance.choices(CHOICES, k=30))
