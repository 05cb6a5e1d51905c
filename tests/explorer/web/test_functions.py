"""Functions that the page calls over HTTP, and their statuses."""

import re

import pytest

from explorer.tracing.run_service import RunService
from tests.subtest_loops import subtest_each


@pytest.fixture
def state(state) -> dict:
    return state | {"view": "attention", "query": 3, "key": 1}


NOTHING = [None, 7, "show", {}, [], ["show"], ["show", {}, 0, 1]]
STATES = [None, 7, [1], "state", {}, {"checkpoint": "<b>"}, {"checkpoint": "rope", "prompt": [10**6]}]


@subtest_each("given", [*NOTHING, *[[state, "attention-pattern", {"x": 0, "y": 0}] for state in STATES]], ids=str)
def test_invalid_arguments_are_refused_with_explanation(post, caplog, given):
    response = post("inspect", given)
    assert response.status_code == 422 and re.match(r"\w.* .* .*", response.json()["detail"])
    assert caplog.text == ""


@pytest.mark.parametrize("part", [{"layer": 2}, {"head": 99}, {"x": 0.5}, {"y": -1}, {"x": True}], ids=str)
def test_point_outside_model_is_refused(post, state, part):
    for figure in ("attention-heads", "attention-pattern"):
        point = {"x": 0, "y": 0, "layer": 0, "head": 0} | part
        assert post("inspect", [state, figure, point]).status_code == 422


def test_function_answers_with_json(post, state):
    response = post("inspect", [state, "attention-pattern", {"x": 1, "y": 3}])
    assert response.status_code == 200 and "recomputed" in response.json()
    assert response.headers["content-type"] == "application/json"


def test_internal_error_in_function_is_logged(post, state, monkeypatch, caplog):
    def slip(self, run):
        raise KeyError("blocks.99")

    monkeypatch.setattr(RunService, "trace", slip)
    response = post("inspect", [state, "attention-pattern", {"x": 1, "y": 3}])
    assert response.status_code == 500 and "It was logged as" in response.json()["detail"]
    assert "blocks.99" in caplog.text and "blocks.99" not in response.text


@pytest.mark.parametrize("name", ["answers", "functions", "cached_answer", "__init__", "x" * 200])
def test_unknown_function_is_not_found(post, name):
    response = post(name, [])
    assert response.status_code == 404 and "There is no function" in response.json()["detail"]


def test_functions_accept_post_only(client):
    assert [client.get(f"explorer/{name}").status_code for name in ("answer", "inspect")] == [405, 405]
