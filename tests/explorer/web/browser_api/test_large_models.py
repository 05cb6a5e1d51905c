"""Answers for a model that is too large to be run many times within a click."""

from dataclasses import replace

import pytest

from explorer.tracing import jobs
from explorer.tracing.jobs import RequestBudget
from explorer.tracing.run_service import RunService
from explorer.web.browser_api.endpoints import BrowserEndpoints
from explorer.web.browser_api.open_view import make_open_view
from explorer.web.browser_api.page_contents import view_contents


@pytest.fixture
def large_models(monkeypatch):
    """Treat all models as large, and start with an empty result cache."""
    monkeypatch.setattr(jobs, "RESULTS", jobs.LRUCache(1 << 20, jobs.result_num_bytes))
    monkeypatch.setattr("explorer.tracing.trace.estimate_macs", lambda lm, num_tokens: 1e12)


@pytest.fixture
def answer(library, page_state):
    """Function that returns an answer's contents for the Experiments tab, and the open view: `answer(stage)`."""
    runs, state = (
        RunService(library),
        replace(page_state, selection=replace(page_state.selection, view="experiments", why="open")),
    )

    def experiments_contents(stage: int):
        with RequestBudget(10**6, 10.0).activate():
            open_view = make_open_view(runs, state)
            return view_contents(open_view, True, stage), open_view

    experiments_contents.endpoints, experiments_contents.state = BrowserEndpoints(runs), state.as_dict()
    return experiments_contents


def test_ablation_figures_and_definition_wait_for_job(large_models, answer):
    contents, open_view = answer(0)
    waiting = {name: content for name, content in contents.items() if isinstance(content, dict) and "job" in content}
    assert set(waiting) == {"experiments-heads", "experiments-sublayers"}
    assert len({content["job"]["name"] for content in waiting.values()}) == 1
    assert contents["experiments-formula"] == ""
    assert answer(2)[0]["experiments-heads-mark"] is None
    with RequestBudget(10**6, 10.0).activate():
        assert answer.endpoints.define(answer.state, "ablation").endswith("the prediction.")
    with RequestBudget(10**6, 10.0).activate():
        job = open_view.pending_job("heads")
    jobs.get_or_run(job)
    contents, _open_view = answer(0)
    assert isinstance(contents["experiments-heads"], list) and "without layer" in contents["experiments-formula"]
    assert answer(2)[0]["experiments-heads-mark"]["state"] == "recomputed"
    with RequestBudget(10**6, 10.0).activate():
        assert "changes by" in answer.endpoints.define(answer.state, "ablation")


def test_explanation_request_waits_for_its_computation(large_models, answer):
    with RequestBudget(10**6, 10.0).activate():
        contents = answer.endpoints.answer("pick", answer.state, 1)["contents"]
    assert contents["why-token"]
