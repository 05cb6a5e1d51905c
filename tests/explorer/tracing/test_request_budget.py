"""Budgets of page requests."""

import time

import pytest

from explorer.tracing.jobs import (
    BudgetExceededError,
    RequestBudget,
    RequestCancelledError,
    check_budget,
    chunk_tokens,
)
from explorer.tracing.run_service import RunService
from explorer.web.actions.page_state_builder import PageStateBuilder
from explorer.web.browser_api.endpoints import BrowserEndpoints
from model.config import ModelConfig


def test_work_outside_requests_is_unlimited():
    check_budget(tokens=10**9)


def test_tokens_per_request_are_limited():
    work = RequestBudget(max_tokens=100, max_seconds=60)
    with work.activate():
        check_budget(tokens=60)
        check_budget(tokens=40)
        with pytest.raises(BudgetExceededError, match="limit of 100 tokens per request"):
            check_budget(tokens=1)
    check_budget(tokens=1000)


def test_computing_time_per_request_is_limited():
    with RequestBudget(max_tokens=1, max_seconds=0.2).activate():
        time.sleep(0.3)
        check_budget()
        end = time.thread_time() + 0.2
        while time.thread_time() < end:
            pass
        with pytest.raises(BudgetExceededError, match="limit of 0.2 seconds of computing per request"):
            check_budget()


def test_cancelled_request_stops_computing(library):
    endpoints = BrowserEndpoints(RunService(library))
    state = PageStateBuilder(endpoints.runs).create_run("rope", "an owl that nobody asked").as_dict()
    work = RequestBudget(max_tokens=10**6, max_seconds=60, is_cancelled=True)
    with work.activate(), pytest.raises(RequestCancelledError):
        endpoints.answer("show", state)
    assert work.tokens == len(state["prompt"])


def test_too_large_tree_is_reported_beside_figures(library):
    endpoints = BrowserEndpoints(RunService(library))
    state = PageStateBuilder(endpoints.runs).create_run("rope", "a tree of many branches").as_dict() | {
        "view": "attention",
        "unfolded": "all",
    }
    state["branches"] = "~".join(f"{first}.{second}" for first in range(5, 9) for second in range(5, 9))
    length = len(state["prompt"]) + 2
    with RequestBudget(max_tokens=4 * length, max_seconds=60).activate():
        endpoints.answer("show", state)
    problems = []
    for _ in range(6):  # results are cached, so each request gets further
        with RequestBudget(max_tokens=4 * length, max_seconds=60).activate():
            contents = endpoints.answer("show", state, 1)["contents"]
        problems.append(contents.get("problem"))
        assert any(name.startswith("attention-") for name in contents)
    assert "tokens per request" in problems[0] and problems[-1] is None and contents["branches"]


@pytest.mark.parametrize(
    ("d_model", "times", "least", "most"), [(192, 1, 512, 512), (192, 3, 170, 170), (2048, 1, 19, 19)]
)
def test_chunk_tokens_depend_on_model_size(d_model, times, least, most):
    config = ModelConfig(
        vocab_size=4096, context_length=256, d_model=d_model, num_layers=6, num_heads=8, d_ff=4 * d_model
    )
    assert least <= chunk_tokens(config, times) <= most
    assert chunk_tokens(config, 10**6) == 1
