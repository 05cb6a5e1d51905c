"""Long computations: their results are kept, and an answer does not wait for them."""

import numpy as np
import pytest

from explorer.tracing import jobs
from explorer.tracing.jobs import Job, NotYet, finished, num_bytes, worked_out
from explorer.tracing.work import Work, is_answering


@pytest.fixture(autouse=True)
def nothing_kept(monkeypatch):
    monkeypatch.setattr(jobs, "RESULTS", jobs.LRU(1 << 20, num_bytes))


def counting(question, units: int = 3, computed=None) -> Job:
    def pieces():
        for unit in range(units):
            yield unit + 1
        if computed is not None:
            computed.append(question)
        return np.arange(units)

    return Job(question, pieces, units, 1e6)


def test_a_result_is_worked_out_once_a_question():
    computed = []
    first = worked_out(counting("a", computed=computed))
    assert worked_out(counting("a", computed=computed)) is first and computed == ["a"]
    worked_out(counting("b", computed=computed))
    assert computed == ["a", "b"]


def test_an_answer_does_not_wait_but_takes_what_is_there():
    job, answer = counting("a"), Work(10**6, 10.0)
    assert not is_answering()
    with answer.counted():
        assert is_answering()
        with pytest.raises(NotYet) as not_yet:
            worked_out(job)
    assert not_yet.value.job is job
    expected = worked_out(job)
    with answer.counted():
        assert worked_out(counting("a")) is expected


def test_a_long_work_may_ask_for_another():
    with Work(10**6, float("inf")).counted():
        np.testing.assert_array_equal(worked_out(counting("a")), [0, 1, 2])


def test_progress_is_told_after_each_piece():
    told = []
    finished(counting("a").pieces(), told.append)
    assert told == [1, 2, 3]


def test_results_are_kept_within_bounds(monkeypatch):
    monkeypatch.setattr(jobs, "RESULTS", jobs.LRU(100, num_bytes))
    computed = []
    for question in "abca":
        worked_out(counting(question, units=8, computed=computed))  # 64 bytes each
    assert computed == list("abca")
    assert num_bytes({"a": np.zeros(3), "b": {"c": np.zeros(2)}}) == 40


def test_a_name_tells_questions_apart():
    names = {counting(question).name for question in ("a", "b", ("a", 1), ("a", 2))}
    assert len(names) == 4 and counting("a").name in names


def test_the_time_is_told_by_the_last_job(monkeypatch):
    monkeypatch.setattr(jobs, "_speed", 1e6)
    job = Job("a", lambda: iter(()), 1, 4e6)
    assert job.seconds == 4
    job.took(2.0)
    assert job.seconds == 2
