"""Results that are kept by trace."""

import gc
from dataclasses import replace

import pytest

from explorer.analysis import kept
from explorer.analysis.kept import kept_by_trace


@pytest.fixture
def asked():
    return []


@pytest.fixture
def lengths(asked):
    @kept_by_trace
    def lengths(trace, position, token_id=None):
        asked.append((position, token_id))
        return len(trace) + position

    return lengths


def test_the_same_question_is_computed_once(trace, lengths, asked):
    assert lengths(trace, 2) == lengths(trace, 2) == len(trace) + 2
    assert asked == [(2, None)]


def test_another_question_and_another_trace_are_not(trace, lengths, asked):
    for run in (trace, replace(trace)):
        lengths(run, 1), lengths(run, 2), lengths(run, 1, token_id=3)
    assert len(asked) == 6


def test_few_of_a_trace_are_kept_those_asked_for_last(trace, lengths, asked, monkeypatch):
    monkeypatch.setattr(kept, "MOST_OF_A_TRACE", 2)
    for position in (1, 2, 1, 3, 1, 2):
        lengths(trace, position)
    assert [position for position, _token in asked] == [1, 2, 3, 2]


def test_a_trace_that_is_gone_leaves_nothing(trace):
    alive = []

    class Result:
        def __init__(self):
            alive.append(self)

        def __del__(self):
            alive.append("gone")

    @kept_by_trace
    def result(trace):
        return Result()

    own = replace(trace)
    result(own)
    alive.clear()
    assert not alive
    del own
    gc.collect()
    assert alive == ["gone"]
