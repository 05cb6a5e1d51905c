"""Long computations: results are cached, and page requests do not wait for them."""

import numpy as np
import pytest

from explorer.tracing import jobs
from explorer.tracing.jobs import (
    Job,
    RequestBudget,
    ResultNotReadyError,
    get_or_run,
    is_time_limited,
    result_num_bytes,
    run_to_completion,
)


@pytest.fixture(autouse=True)
def empty_results(monkeypatch):
    monkeypatch.setattr(jobs, "RESULTS", jobs.LRUCache(1 << 20, result_num_bytes))


def counting_job(question, units: int = 3, computed=None) -> Job:
    def pieces():
        for unit in range(units):
            yield unit + 1
        if computed is not None:
            computed.append(question)
        return np.arange(units)

    return Job(question, pieces, units, 1e6)


def test_result_is_computed_once_per_question():
    computed = []
    first = get_or_run(counting_job("a", computed=computed))
    assert get_or_run(counting_job("a", computed=computed)) is first and computed == ["a"]
    get_or_run(counting_job("b", computed=computed))
    assert computed == ["a", "b"]


def test_request_uses_only_cached_results():
    job, answer = counting_job("a"), RequestBudget(10**6, 10.0)
    assert not is_time_limited()
    with answer.activate():
        assert is_time_limited()
        with pytest.raises(ResultNotReadyError) as not_yet:
            get_or_run(job)
    assert not_yet.value.job is job
    expected = get_or_run(job)
    with answer.activate():
        assert get_or_run(counting_job("a")) is expected


def test_job_may_run_another_job():
    with RequestBudget(10**6, float("inf")).activate():
        np.testing.assert_array_equal(get_or_run(counting_job("a")), [0, 1, 2])


def test_progress_is_reported_after_each_piece():
    counts = []
    run_to_completion(counting_job("a").steps(), counts.append)
    assert counts == [1, 2, 3]


def test_cached_results_are_limited(monkeypatch):
    monkeypatch.setattr(jobs, "RESULTS", jobs.LRUCache(100, result_num_bytes))
    computed = []
    for question in "abca":
        get_or_run(counting_job(question, units=8, computed=computed))  # 64 bytes each
    assert computed == list("abca")
    assert result_num_bytes({"a": np.zeros(3), "b": {"c": np.zeros(2)}}) == 40


def test_different_questions_have_different_names():
    names = {counting_job(question).name for question in ("a", "b", ("a", 1), ("a", 2))}
    assert len(names) == 4 and counting_job("a").name in names


def test_estimated_time_uses_last_job(monkeypatch):
    monkeypatch.setattr(jobs, "_speed", 1e6)
    job = Job("a", lambda: iter(()), 1, 4e6)
    assert job.seconds == 4
    job.record_duration(2.0)
    assert job.seconds == 2
