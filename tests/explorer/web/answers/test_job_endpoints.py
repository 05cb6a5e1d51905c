"""A picture that waits for a long computation: what the browser is told, and what it can ask."""

import threading
import time
from dataclasses import replace

import numpy as np
import pytest

from explorer.explain.point import Point
from explorer.state.errors import UserError
from explorer.state.page_state import PageState
from explorer.tracing import job_queue, jobs
from explorer.tracing.jobs import Job, num_bytes, worked_out
from explorer.tracing.runs import Runs
from explorer.tracing.work import Work
from explorer.views import VIEW_NAMED
from explorer.views import graph_objects as go
from explorer.views.checks import Mark
from explorer.views.style import figure
from explorer.views.view import Panel
from explorer.web.answers import open_view
from explorer.web.answers.inspecting import inspect
from explorer.web.answers.job_endpoints import JobEndpoints
from explorer.web.answers.open_view import open_view_of
from explorer.web.answers.view_contents import view_contents


@pytest.fixture
def gate(monkeypatch) -> threading.Event:
    """Of the tab Experiments the first picture waits for a job, and that for the gate."""
    results, gate = jobs.LRU(1 << 20, num_bytes), threading.Event()
    monkeypatch.setattr(jobs, "RESULTS", results)
    monkeypatch.setattr(job_queue, "RESULTS", results)

    def job(trace) -> Job:
        def pieces():
            yield 1
            assert gate.wait(5)
            return np.array([len(trace), 2.0])

        return Job(("doubled", trace.model, trace.token_ids), pieces, 2, 1e9)

    slow = Panel(
        name="slow",
        title="Slow",
        draw=lambda trace, s: figure(go.Bar(y=worked_out(job(trace))), alt="Two bars."),
        mark=lambda trace, s: Mark("recomputed", f"{worked_out(job(trace))[0]:g}"),
        inspect=lambda trace, s, point: worked_out(job(trace)) and None,
    )
    view = VIEW_NAMED["experiments"]
    changed = replace(view, panels=(slow, *view.panels))
    monkeypatch.setattr(open_view, "VIEW_NAMED", VIEW_NAMED | {"experiments": changed})
    return gate


@pytest.fixture
def asked(asked) -> PageState:
    return replace(asked, selection=replace(asked.selection, view="experiments"))


@pytest.fixture
def shown(library, asked):
    """`shown(part)` is what an answer has of the picture, as an answer is made."""
    runs = Runs(library)

    def shown(part: int = 0):
        with Work(10**6, 10.0).counted():
            contents = view_contents(open_view_of(runs, asked), True, part)
        return contents["experiments-slow" + "-mark" * (part == 2)]

    return shown


@pytest.fixture
def ask(library):
    """`ask("begin_job", …)` as the browser does."""
    endpoints = JobEndpoints(Runs(library))

    def ask(name: str, *given):
        with Work(10**6, 10.0).counted():
            return getattr(endpoints, name)(*given)

    return ask


def test_a_picture_says_what_it_waits_for_until_that_is_there(gate, shown, ask, asked):
    waits = shown()
    assert waits["instead"] == "This takes longer than a click." and waits["job"]["seconds"] > 0
    assert shown(2) is None
    name, state = waits["job"]["name"], asked.run.as_dict() | asked.selection.as_dict()
    begun = ask("begin_job", state, "experiments-slow", "ann")
    assert begun["state"] in ("waiting", "working") and begun["of"] == 2 and begun["error"] == ""
    gate.set()
    end = time.monotonic() + 5
    while (progress := ask("job_progress", "ann", name))["state"] != "done":
        assert time.monotonic() < end and progress["state"] in ("waiting", "working")
        time.sleep(0.005)
    assert isinstance(shown(), list) and shown(2)["words"] == str(len(asked.run.prompt))
    assert ask("begin_job", state, "experiments-slow", "bob")["state"] == "done"


def test_a_click_where_nothing_is_yet_has_no_number(gate, library, asked):
    with Work(10**6, 10.0).counted():
        assert inspect(open_view_of(Runs(library), asked), "slow", Point(x=0, y=0)) == ""


def test_who_leaves_is_told_nothing_more(gate, shown, ask, asked):
    name, state = shown()["job"]["name"], asked.run.as_dict() | asked.selection.as_dict()
    ask("begin_job", state, "experiments-slow", "ann")
    ask("leave_job", "ann", name)
    assert ask("job_progress", "ann", name)["state"] == "gone"
    gate.set()


def test_a_picture_that_waits_for_nothing_is_done(gate, ask, asked):
    state = asked.run.as_dict() | asked.selection.as_dict()
    assert ask("begin_job", state, "experiments-heads", "ann")["state"] == "done"
    assert ask("begin_job", state, "experiments-nothing", "ann")["state"] == "done"


@pytest.mark.parametrize("wrong", [None, 7, "", "x" * 65, ["ann"]], ids=repr)
def test_names_are_short_texts(gate, ask, asked, wrong):
    state = asked.run.as_dict() | asked.selection.as_dict()
    for call in (
        lambda: ask("begin_job", state, wrong, "ann"),
        lambda: ask("begin_job", state, "experiments-slow", wrong),
        lambda: ask("job_progress", wrong, "a"),
        lambda: ask("leave_job", "ann", wrong),
    ):
        with pytest.raises(UserError, match="at most 64"):
            call()
