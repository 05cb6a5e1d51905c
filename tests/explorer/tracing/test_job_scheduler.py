"""Job queue: fair scheduling, cancellation of abandoned jobs, separate clients."""

import threading
import time
from collections.abc import Callable

import numpy as np
import pytest

from explorer.errors import UserError
from explorer.tracing import jobs
from explorer.tracing.jobs import (
    MAX_JOBS_PER_CLIENT,
    Job,
    JobProgress,
    JobScheduler,
    check_budget,
    get_or_run,
    result_num_bytes,
)


@pytest.fixture(autouse=True)
def job_results(monkeypatch):
    results = jobs.LRUCache(1 << 20, result_num_bytes)
    monkeypatch.setattr(jobs, "RESULTS", results)
    monkeypatch.setattr(jobs, "RESULTS", results)
    return results


class Gate:
    """Job that waits for `release` before each piece, and logs finished units."""

    def __init__(self, question="a", units: int = 3, log: list | None = None, open_: bool = False):
        self.log, self.steps = [] if log is None else log, threading.Semaphore(10**6 if open_ else 0)

        def pieces():
            for unit in range(units):
                assert self.steps.acquire(timeout=5)
                check_budget()
                self.log.append(question)
                yield unit + 1
            return np.full(4, units)

        self.job = Job(question, pieces, units, 1e6)

    def release(self, pieces: int = 1):
        for _piece in range(pieces):
            self.steps.release()


def wait_until_true(condition: Callable[[], bool], seconds: float = 3.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.002)


def test_progress_rises_until_result_is_cached():
    queue, gate = JobScheduler(), Gate(units=3)
    first = queue.begin("ann", gate.job)
    assert (first.state, first.done, first.total) == ("waiting", 0, 3)
    assert first.seconds == pytest.approx(gate.job.seconds)
    statuses = []
    for _piece in range(2):
        gate.release()
        wait_until_true(lambda: queue.progress("ann", gate.job.name).done > len(statuses))
        statuses.append(queue.progress("ann", gate.job.name))
    assert [(progress.state, progress.done) for progress in statuses] == [("working", 1), ("working", 2)]
    assert statuses[1].seconds >= 0
    gate.release()
    wait_until_true(lambda: queue.progress("ann", gate.job.name).state != "working")
    np.testing.assert_array_equal(get_or_run(gate.job), 3)


def test_cached_result_is_immediate():
    queue, gate = JobScheduler(), Gate(open_=True)
    queue.begin("ann", gate.job)
    wait_until_true(lambda: jobs.RESULTS.peek("a") is not None)
    second_status = Gate()  # its pieces never finish
    assert queue.begin("bob", second_status.job) == JobProgress("done", 3, 3)
    assert second_status.log == []


def test_leaving_cancels_job_within_200_ms():
    queue, log = JobScheduler(), []

    def pieces():
        for unit in range(1000):
            time.sleep(0.05)
            log.append(unit)
            yield unit + 1
        return np.zeros(1)

    job = Job("slow", pieces, 1000, 1e9)
    queue.begin("ann", job)
    wait_until_true(lambda: len(log) > 1)
    queue.leave("ann", job.name)
    assert queue.progress("ann", job.name).state == "gone"
    time.sleep(0.2)
    stopped = len(log)
    time.sleep(0.2)
    assert len(log) == stopped and jobs.RESULTS.peek("slow") is None


def test_leaving_cancels_inside_a_piece():
    queue, ended = JobScheduler(), threading.Event()

    def pieces():
        try:
            while True:
                check_budget()
                time.sleep(0.01)
        finally:
            ended.set()
        yield

    job = Job("endless", pieces, 1, 1e9)
    queue.begin("ann", job)
    wait_until_true(lambda: queue._tasks[job.name].steps is not None)
    queue.leave("ann", job.name)
    assert ended.wait(0.2)


def test_client_without_requests_times_out():
    queue, gate = JobScheduler(timeout_s=0.1), Gate(units=1000, open_=False)
    queue.begin("ann", gate.job)
    gate.release()
    wait_until_true(lambda: gate.log)
    time.sleep(0.15)
    gate.release(3)
    wait_until_true(lambda: gate.job.name not in queue._tasks)
    assert len(gate.log) <= 2
    assert queue.progress("ann", gate.job.name).state == "gone"


def test_jobs_of_two_clients_do_not_mix():
    queue, first_gate, second_gate = JobScheduler(), Gate("mine", units=2), Gate("yours", units=3)
    queue.begin("ann", first_gate.job)
    queue.begin("bob", second_gate.job)
    assert (
        queue.progress("ann", second_gate.job.name).state == queue.progress("bob", first_gate.job.name).state == "gone"
    )
    queue.leave("bob", first_gate.job.name)  # not one of bob's jobs
    assert queue.progress("ann", first_gate.job.name).state != "gone"
    first_gate.release(2), second_gate.release(3)
    wait_until_true(lambda: jobs.RESULTS.peek("mine") is not None and jobs.RESULTS.peek("yours") is not None)
    assert get_or_run(first_gate.job)[0] == 2 and get_or_run(second_gate.job)[0] == 3


def test_shared_job_ends_with_its_last_client():
    queue, gate = JobScheduler(), Gate(units=100)
    queue.begin("ann", gate.job)
    queue.begin("bob", Gate(units=100).job)
    gate.release()
    wait_until_true(lambda: queue.progress("bob", gate.job.name).done == 1)
    queue.leave("ann", gate.job.name)
    gate.release()
    wait_until_true(lambda: queue.progress("bob", gate.job.name).done == 2)
    queue.leave("bob", gate.job.name)
    assert not queue._tasks


def test_pieces_of_jobs_alternate():
    log = []
    queue, gates = JobScheduler(), [Gate(name, units=50, log=log) for name in "abc"]
    for visitor, gate in zip(("ann", "bob", "cat"), gates, strict=True):
        queue.begin(visitor, gate.job)
    for gate in gates:
        gate.release(50)
    wait_until_true(lambda: len(log) >= 30)
    assert all(log[:30].count(name) >= 9 for name in "abc")


def test_each_client_runs_one_job_before_second_jobs():
    log = []
    queue, block = JobScheduler(max_concurrent=2), Gate("block", units=1, log=log)
    queue.begin("zoe", block.job)
    wait_until_true(lambda: queue._tasks[block.job.name].steps is not None)
    gates = {name: Gate(name, units=20, log=log, open_=True) for name in ("a1", "a2", "a3", "b1")}
    for name in ("a1", "a2", "a3"):
        queue.begin("ann", gates[name].job)
    queue.begin("bob", gates["b1"].job)
    block.release()
    wait_until_true(lambda: len(log) == 81)
    assert set(log[1:21]) == {"a1", "b1"}


def test_jobs_per_client_are_limited():
    queue = JobScheduler()
    for number in range(MAX_JOBS_PER_CLIENT):
        queue.begin("ann", Gate(number).job)
    with pytest.raises(UserError, match="already"):
        queue.begin("ann", Gate("more").job)
    queue.begin("bob", Gate("more").job)


def test_error_is_reported_once(job_results):
    queue = JobScheduler()

    def pieces():
        yield 1
        raise UserError("the prompts are too short")

    job = Job("wrong", pieces, 2, 1e6)
    statuses = [queue.begin("ann", job)]
    wait_until_true(lambda: statuses[-1].state == "failed" or statuses.append(queue.progress("ann", job.name)))
    assert str(statuses[-1].error) == "the prompts are too short"
    assert queue.progress("ann", job.name).state == "gone" and job_results.peek("wrong") is None
    gate = Gate(open_=True)  # other jobs continue
    queue.begin("bob", gate.job)
    wait_until_true(lambda: job_results.peek("a") is not None)


def test_job_duration_is_recorded(monkeypatch):
    took = []
    monkeypatch.setattr(Job, "record_duration", lambda job, seconds: took.append(seconds))
    queue = JobScheduler()

    def pieces():
        for unit in range(3):
            time.sleep(0.02)
            yield unit
        return np.zeros(1)

    queue.begin("ann", Job("timed", pieces, 3, 1e6))
    wait_until_true(lambda: took)
    assert 0.06 <= took[0] < 0.5
