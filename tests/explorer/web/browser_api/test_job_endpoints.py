"""Endpoints for a figure that waits for a long computation."""

import threading
import time
from dataclasses import replace

import numpy as np
import pytest

from explorer.errors import UserError
from explorer.explain.derivation import ClickedPoint
from explorer.state.page_state import PageState
from explorer.tracing import jobs
from explorer.tracing.jobs import Job, RequestBudget, get_or_run, result_num_bytes
from explorer.tracing.run_service import RunService
from explorer.views import VIEW_BY_NAME
from explorer.views import graph_objects as go
from explorer.views.style import figure
from explorer.views.verification import Verification
from explorer.views.view import Panel
from explorer.web.browser_api import open_view
from explorer.web.browser_api.endpoints import JobEndpoints
from explorer.web.browser_api.open_view import make_open_view, point_derivation_text
from explorer.web.browser_api.page_contents import view_contents
from explorer.web.request_validation import argument_types


@pytest.fixture
def gate(monkeypatch) -> threading.Event:
    """Event that the job of the first figure of the Experiments tab waits for."""
    results, gate = jobs.LRUCache(1 << 20, result_num_bytes), threading.Event()
    monkeypatch.setattr(jobs, "RESULTS", results)
    monkeypatch.setattr(jobs, "RESULTS", results)

    def job(trace) -> Job:
        def pieces():
            yield 1
            assert gate.wait(5)
            return np.array([len(trace), 2.0])

        return Job(("doubled", trace.model, trace.token_ids), pieces, 2, 1e9)

    slow = Panel(
        name="slow",
        title="Slow",
        draw=lambda trace, s: figure(go.Bar(y=get_or_run(job(trace))), alt="Two bars."),
        verify=lambda trace, s: Verification("recomputed", f"{get_or_run(job(trace))[0]:g}"),
        inspect=lambda trace, s, point: get_or_run(job(trace)) and None,
    )
    view = VIEW_BY_NAME["experiments"]
    changed = replace(view, panels=(slow, *view.panels))
    monkeypatch.setattr(open_view, "VIEW_BY_NAME", VIEW_BY_NAME | {"experiments": changed})
    return gate


@pytest.fixture
def page_state(page_state) -> PageState:
    return replace(page_state, selection=replace(page_state.selection, view="experiments"))


@pytest.fixture
def slow_content(library, page_state):
    """Function that returns an answer's content for the slow figure: `slow_content(stage)`."""
    runs = RunService(library)

    def slow_panel_content(stage: int = 0):
        with RequestBudget(10**6, 10.0).activate():
            contents = view_contents(make_open_view(runs, page_state), True, stage)
        return contents["experiments-slow" + "-mark" * (stage == 2)]

    return slow_panel_content


@pytest.fixture
def ask(library):
    """Function that calls an endpoint by name, as the browser does: `ask("begin_job", …)`."""
    endpoints = JobEndpoints(RunService(library))

    def call_endpoint(name: str, *args):
        function = getattr(endpoints, name)
        argument_types(function).check(list(args))
        with RequestBudget(10**6, 10.0).activate():
            return function(*args)

    return call_endpoint


def test_figure_shows_job_until_it_is_done(gate, slow_content, ask, page_state):
    waits = slow_content()
    assert waits["instead"] == "This takes longer than a click." and waits["job"]["seconds"] > 0
    assert slow_content(2) is None
    name, state = waits["job"]["name"], page_state.run.as_dict() | page_state.selection.as_dict()
    begun = ask("begin_job", state, "experiments-slow", "ann")
    assert begun["state"] in ("waiting", "working") and begun["of"] == 2 and begun["error"] == ""
    gate.set()
    end = time.monotonic() + 5
    while (progress := ask("job_progress", "ann", name))["state"] != "done":
        assert time.monotonic() < end and progress["state"] in ("waiting", "working")
        time.sleep(0.005)
    assert isinstance(slow_content(), list) and slow_content(2)["words"] == str(len(page_state.run.prompt))
    assert ask("begin_job", state, "experiments-slow", "bob")["state"] == "done"


def test_click_on_pending_figure_has_no_derivation(gate, library, page_state):
    with RequestBudget(10**6, 10.0).activate():
        assert (
            point_derivation_text(make_open_view(RunService(library), page_state), "slow", ClickedPoint(x=0, y=0)) == ""
        )


def test_client_that_left_gets_no_progress(gate, slow_content, ask, page_state):
    name, state = slow_content()["job"]["name"], page_state.run.as_dict() | page_state.selection.as_dict()
    ask("begin_job", state, "experiments-slow", "ann")
    ask("leave_job", "ann", name)
    assert ask("job_progress", "ann", name)["state"] == "gone"
    gate.set()


def test_figure_without_job_is_done(gate, ask, page_state):
    state = page_state.run.as_dict() | page_state.selection.as_dict()
    assert ask("begin_job", state, "experiments-heads", "ann")["state"] == "done"
    assert ask("begin_job", state, "experiments-nothing", "ann")["state"] == "done"


@pytest.mark.parametrize("wrong", [None, 7, "", "x" * 65, ["ann"]], ids=repr)
def test_long_or_invalid_job_names_are_refused(gate, ask, page_state, wrong):
    state = page_state.run.as_dict() | page_state.selection.as_dict()
    for call in (
        lambda: ask("begin_job", state, wrong, "ann"),
        lambda: ask("begin_job", state, "experiments-slow", wrong),
        lambda: ask("job_progress", wrong, "a"),
        lambda: ask("leave_job", "ann", wrong),
    ):
        with pytest.raises(UserError, match="must be text"):
            call()
