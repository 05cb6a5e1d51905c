"""The tab of directions: lists that a visitor writes, and what is written on by the panel's settings."""

import pytest

from explorer.explain.notation import quoted
from explorer.state.errors import UserError
from explorer.state.interventions import Recipe
from explorer.state.page_state import PageState
from explorer.state.selection import Selection
from explorer.state.settings import GenerationSettings
from explorer.tracing.runs import Runs
from explorer.views.directions import WRITTEN
from explorer.web.answers.endpoints import Endpoints
from explorer.web.events.opening import Opening

STEERED = "blocks.1.resid_post*add*unembed.17*5"


@pytest.fixture(scope="module")
def endpoints(library) -> Endpoints:
    return Endpoints(Runs(library))


@pytest.fixture
def state(endpoints) -> dict:
    run = Opening(endpoints.runs).run_of("rope", "the fox asked the owl")
    return run.as_dict() | Selection(view="directions", query=3, key=1).as_dict()


def contents(endpoints, about, state):
    found, part, more = {}, 0, True
    while more:
        answer = endpoints.answer(about, state, part)
        found, part, more = found | answer["contents"], part + 1, answer["more"]
    return found


def test_a_direction_is_made_of_what_two_boxes_hold(endpoints, state):
    state = state | {"view": "directions", "layer": 1}
    made = endpoints.direction_of_lists(state, "one two\n\n  \nthree↵four\n", "five")
    recipe = Recipe.parse(made)
    assert recipe.numbers == (1,) and [len(each) for each in recipe.lists] == [2, 1]
    shown = contents(endpoints, "pick", state | {"direction": made})["directions-lists"]
    assert shown == {"lists": ["one two\nthree↵four", "five"], "make": "Take their means after layer 1"}
    other = contents(endpoints, "pick", state | {"direction": "unembed.17"})["directions-lists"]
    assert other["lists"] == ["", ""]


@pytest.mark.parametrize(
    ("towards", "away", "said"),
    [
        ("", "five", "each list of a direction has 1 to 32 prompts"),
        (["one"], "five", "a list of prompts is a text"),
        ("same", "same", "points nowhere"),
    ],
)
def test_lists_that_make_none_are_told(endpoints, state, towards, away, said):
    with pytest.raises(UserError, match=said):
        endpoints.direction_of_lists(state, towards, away)


def test_markup_in_prompts_is_text(endpoints, state):
    nasty = "<img src=x onerror=alert(1)>${1+1}"
    made = endpoints.direction_of_lists(state, nasty, "five")
    shown = contents(endpoints, "pick", state | {"view": "directions", "direction": made})["directions-lists"]
    assert shown["lists"][0] == nasty


@pytest.mark.parametrize("about", ["show", "pick", "tune"])
def test_what_is_written_on_follows_the_panel(endpoints, state, about):
    state = state | {"view": "directions", "edits": STEERED, "direction": "unembed.17"}
    trace = endpoints.runs.trace(PageState.parse(state).run)
    for settings in (GenerationSettings(), GenerationSettings(seed=5, temperature=1.7, top_k=0)):
        said = contents(endpoints, about, state | settings.as_dict())["directions-written"]
        ids = trace.written(WRITTEN, settings)
        assert said.split("\n")[0].endswith(quoted(trace.text(ids)))
    assert contents(endpoints, about, state | {"edits": ""})["directions-written"] == ""
    assert "directions-written" not in contents(endpoints, about, state | {"view": "residual"})
