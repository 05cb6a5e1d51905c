"""Directions tab: prompt lists that a user enters, and the continuation under the panel's settings."""

import pytest

from explorer.errors import UserError
from explorer.explain.notation import quote_token
from explorer.interventions import DirectionSpec
from explorer.state.generation_settings import GenerationSettings
from explorer.state.page_state import PageState
from explorer.state.selection import Selection
from explorer.tracing.run_service import RunService
from explorer.views.directions import CONTINUATION_TOKENS
from explorer.web.actions.page_state_builder import PageStateBuilder
from explorer.web.browser_api.endpoints import BrowserEndpoints

STEERED = "blocks.1.resid_post*add*unembed.17*5"


@pytest.fixture(scope="module")
def endpoints(library) -> BrowserEndpoints:
    return BrowserEndpoints(RunService(library))


@pytest.fixture
def state(endpoints) -> dict:
    run = PageStateBuilder(endpoints.runs).create_run("rope", "the fox asked the owl")
    return run.as_dict() | Selection(view="directions", query=3, key=1).as_dict()


def collect_contents(endpoints, about, state):
    collected = {}
    for stage in range(endpoints.num_stages(about, state)):
        answer = endpoints.answer(about, state, stage)
        collected |= answer["contents"]
    return collected


def test_direction_is_made_from_two_prompt_lists(endpoints, state):
    state = state | {"view": "directions", "layer": 1}
    spec_text = endpoints.direction_of_lists(state, "one two\n\n  \nthree↵four\n", "five")
    direction_spec = DirectionSpec.parse(spec_text)
    assert direction_spec.numbers == (1,) and [len(prompts) for prompts in direction_spec.lists] == [2, 1]
    lists_content = collect_contents(endpoints, "pick", state | {"direction": spec_text})["directions-lists"]
    assert lists_content == {"lists": ["one two\nthree↵four", "five"], "make": "Take their means after layer 1"}
    other = collect_contents(endpoints, "pick", state | {"direction": "unembed.17"})["directions-lists"]
    assert other["lists"] == ["", ""]


@pytest.mark.parametrize(
    ("towards", "away", "said"),
    [
        ("", "five", "each list of a direction has 1 to 32 prompts"),
        ("same", "same", "points nowhere"),
    ],
)
def test_invalid_prompt_lists_are_refused(endpoints, state, towards, away, said):
    with pytest.raises(UserError, match=said):
        endpoints.direction_of_lists(state, towards, away)


def test_markup_in_prompts_is_text(endpoints, state):
    nasty = "<img src=x onerror=alert(1)>${1+1}"
    spec_text = endpoints.direction_of_lists(state, nasty, "five")
    lists_content = collect_contents(endpoints, "pick", state | {"view": "directions", "direction": spec_text})[
        "directions-lists"
    ]
    assert lists_content["lists"][0] == nasty


@pytest.mark.parametrize("about", ["show", "pick", "tune"])
def test_steered_continuation_follows_panel_settings(endpoints, state, about):
    state = state | {"view": "directions", "edits": STEERED, "direction": "unembed.17"}
    trace = endpoints.runs.trace(PageState.parse(state).run)
    for settings in (GenerationSettings(), GenerationSettings(seed=5, temperature=1.7, top_k=0)):
        text = collect_contents(endpoints, about, state | settings.as_dict())["directions-written"]
        ids = trace.continue_tokens(CONTINUATION_TOKENS, settings)
        assert text.split("\n")[0].endswith(quote_token(trace.join_tokens(ids)))
    assert collect_contents(endpoints, about, state | {"edits": ""})["directions-written"] == ""
    assert "directions-written" not in collect_contents(endpoints, about, state | {"view": "residual"})
