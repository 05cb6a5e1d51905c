"""Cache of results per trace."""

import gc
from dataclasses import replace

import pytest

from explorer.tracing import trace as trace_module
from explorer.tracing.trace import cache_per_trace


@pytest.fixture
def calls():
    return []


@pytest.fixture
def lengths(calls):
    @cache_per_trace
    def lengths(trace, position, token_id=None):
        calls.append((position, token_id))
        return len(trace) + position

    return lengths


def test_the_same_question_is_computed_once(trace, lengths, calls):
    assert lengths(trace, 2) == lengths(trace, 2) == len(trace) + 2
    assert calls == [(2, None)]


def test_another_question_and_another_trace_are_not(trace, lengths, calls):
    for run in (trace, replace(trace)):
        lengths(run, 1), lengths(run, 2), lengths(run, 1, token_id=3)
    assert len(calls) == 6


def test_few_of_a_trace_are_kept_those_asked_for_last(trace, lengths, calls, monkeypatch):
    monkeypatch.setattr(trace_module, "MAX_RESULTS_PER_TRACE", 2)
    for position in (1, 2, 1, 3, 1, 2):
        lengths(trace, position)
    assert [position for position, _token in calls] == [1, 2, 3, 2]


def test_a_trace_that_is_gone_leaves_nothing(trace):
    alive = []

    class Result:
        def __init__(self):
            alive.append(self)

        def __del__(self):
            alive.append("gone")

    @cache_per_trace
    def result(trace):
        return Result()

    own = replace(trace)
    result(own)
    alive.clear()
    assert not alive
    del own
    gc.collect()
    assert alive == ["gone"]
