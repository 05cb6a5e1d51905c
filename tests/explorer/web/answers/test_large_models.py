"""What an answer says of a model that is too large to be run many times within a click."""

from dataclasses import replace
from importlib import import_module

import pytest

from explorer.tracing import jobs
from explorer.tracing.runs import Runs
from explorer.tracing.work import Work
from explorer.web.answers.endpoints import Endpoints
from explorer.web.answers.open_view import open_view_of
from explorer.web.answers.view_contents import view_contents


@pytest.fixture
def large(monkeypatch):
    """All models are taken to be large, and nothing is kept of them."""
    monkeypatch.setattr(jobs, "RESULTS", jobs.LRU(1 << 20, jobs.num_bytes))
    monkeypatch.setattr(import_module("explorer.tracing.capture"), "products_of", lambda lm, num_tokens: 1e12)


@pytest.fixture
def answer(library, asked):
    """`answer(part)` is what an answer has of the tab Experiments."""
    runs, state = Runs(library), replace(asked, selection=replace(asked.selection, view="experiments", why="open"))

    def answer(part: int):
        with Work(10**6, 10.0).counted():
            open_view = open_view_of(runs, state)
            return view_contents(open_view, True, part), open_view

    answer.endpoints, answer.state = Endpoints(runs), state.as_dict()
    return answer


def test_silenced_parts_wait_for_a_button_and_what_is_told_of_them_too(large, answer):
    contents, open_view = answer(0)
    waiting = {name: shown for name, shown in contents.items() if isinstance(shown, dict) and "job" in shown}
    assert set(waiting) == {"experiments-heads", "experiments-sublayers"}
    assert len({shown["job"]["name"] for shown in waiting.values()}) == 1
    assert contents["experiments-formula"] == ""
    assert answer(2)[0]["experiments-heads-mark"] is None
    with Work(10**6, 10.0).counted():
        assert answer.endpoints.define(answer.state, "ablation").endswith("the prediction.")
    with Work(10**6, 10.0).counted():
        job = open_view.job_of("heads")
    jobs.worked_out(job)
    contents, _open_view = answer(0)
    assert isinstance(contents["experiments-heads"], list) and "without head" in contents["experiments-formula"]
    assert answer(2)[0]["experiments-heads-mark"]["state"] == "recomputed"
    with Work(10**6, 10.0).counted():
        assert "changes by" in answer.endpoints.define(answer.state, "ablation")


def test_whoever_asks_why_waits(large, answer):
    with Work(10**6, 10.0).counted():
        shown = answer.endpoints.answer("pick", answer.state, 1)["contents"]
    assert shown["why-token"]
