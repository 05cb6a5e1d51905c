"""What the browser gets when it asks."""

import json

import pytest

from explorer.answers import SEEN_AT_ONCE, Answers
from explorer.presenter import Presenter
from explorer.run import Run
from explorer.selection import Selection
from explorer.views import VIEWS

every_view = pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.name)


@pytest.fixture(scope="module")
def answers(library) -> Answers:
    return Answers(Presenter(library))


@pytest.fixture
def state(answers) -> dict:
    run = answers.presenter.run_of("rope", "the fox asked the owl")
    return run.as_dict() | Selection(query=3, key=1).as_dict() | {"temperature": 1.0, "top_k": 0}


@pytest.fixture
def asked(answers):
    """All parts of an answer, as the browser puts them together."""

    def asked(about: str, state: dict) -> dict:
        contents, part, more = {}, 0, True
        while more:
            answer = answers.answer(about, state, part)
            assert json.loads(json.dumps(answer, allow_nan=False)) == answer
            assert not contents.keys() & answer["contents"].keys()
            contents, part, more = contents | answer["contents"], part + 1, answer["more"]
        return contents

    return asked


@every_view
@pytest.mark.parametrize("about", ["show", "pick"])
def test_the_open_view_and_the_prediction_are_drawn(answers, asked, state, view, about):
    """On a pick, all but the pictures that are the same whatever is selected."""
    contents = asked(about, state | {"view": view.name})
    texts = {f"{view.name}-{part}" for part in ("words", "formula", "choosers")}
    texts |= {"next-token", "next-token-words", "problem"}
    drawn = {f"{view.name}-{panel.name}": panel for panel in view.panels if about == "show" or not panel.once}
    assert set(contents) == texts | set(drawn)
    trace = answers.presenter.trace(Run.parse(state))
    assert all((contents[name] is not None) is panel.applies_to(trace) for name, panel in drawn.items())
    assert contents[f"{view.name}-formula"] and contents["next-token"] and contents["problem"] == ""


@every_view
def test_a_screenful_is_answered_before_the_rest_is_drawn(answers, state, view):
    first = answers.answer("show", state | {"view": view.name})
    names = [f"{view.name}-{panel.name}" for panel in view.panels]
    assert [name for name in names if name in first["contents"]] == names[:SEEN_AT_ONCE]
    assert first["more"] is (len(names) > SEEN_AT_ONCE)


def test_a_view_that_does_not_apply_loses_its_pictures(answers, asked, state, library):
    contents = asked("show", state | {"checkpoint": "none", "view": "rope"})
    rope = next(view for view in VIEWS if view.name == "rope")
    assert contents["rope-words"] == rope.otherwise(library.model("none")[0].config)
    assert all(contents[f"rope-{panel.name}"] is None for panel in rope.panels)


def test_a_slider_changes_the_prediction_and_nothing_else(asked, state):
    cold, hot = (asked("tune", state | {"temperature": temperature}) for temperature in (0, 2))
    assert set(cold) == set(hot) == {"next-token", "next-token-words"}
    assert "1 of 300 tokens can be drawn" in cold["next-token-words"]
    assert "300 of 300" in hot["next-token-words"]
    alone = [
        [trace["x"] for trace in json.loads(content["next-token"][0]) if trace["type"] == "scatter"][0]
        for content in (cold, hot)
    ]
    assert alone[0] == alone[1]  # what the model alone would say stays


@pytest.mark.parametrize("about", ["show", "pick", "tune"])
@pytest.mark.parametrize(
    "broken",
    [{}, {"checkpoint": 1}, {"checkpoint": "<b>", "prompt": [1]}, {"checkpoint": "rope", "prompt": [10**6]}],
    ids=str,
)
def test_a_state_that_makes_no_sense_is_told_and_leaves_the_page_as_it_is(asked, about, broken):
    contents = asked(about, broken)
    assert list(contents) == ["problem"]
    assert len(contents["problem"]) > 10


def test_the_browser_s_one_list_is_taken_apart(answers, state):
    (answer,) = answers.functions
    assert answer(["tune", state, 0]) == answers.answer("tune", state)
