"""Jobs that people wait for: fairly, as long as they wait, and each its own."""

import threading
import time
from collections.abc import Callable

import numpy as np
import pytest

from explorer.state.errors import UserError
from explorer.tracing import job_queue, jobs
from explorer.tracing.job_queue import MOST_OF_ONE, JobQueue, Progress
from explorer.tracing.jobs import Job, num_bytes, worked_out
from explorer.tracing.work import go_on


@pytest.fixture(autouse=True)
def kept(monkeypatch):
    results = jobs.LRU(1 << 20, num_bytes)
    monkeypatch.setattr(jobs, "RESULTS", results)
    monkeypatch.setattr(job_queue, "RESULTS", results)
    return results


class Gate:
    """A job whose pieces wait until they are let go on, and which notes what is done."""

    def __init__(self, question="a", units: int = 3, log: list | None = None, open_: bool = False):
        self.log, self.steps = [] if log is None else log, threading.Semaphore(10**6 if open_ else 0)

        def pieces():
            for unit in range(units):
                assert self.steps.acquire(timeout=5)
                go_on()
                self.log.append(question)
                yield unit + 1
            return np.full(4, units)

        self.job = Job(question, pieces, units, 1e6)

    def let(self, pieces: int = 1):
        for _piece in range(pieces):
            self.steps.release()


def until(true: Callable[[], bool], seconds: float = 3.0):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.002)


def test_progress_goes_up_until_the_result_is_kept():
    queue, gate = JobQueue(), Gate(units=3)
    first = queue.begin("ann", gate.job)
    assert (first.state, first.done, first.of) == ("waiting", 0, 3)
    assert first.seconds == pytest.approx(gate.job.seconds)
    seen = []
    for _piece in range(2):
        gate.let()
        until(lambda: queue.progress("ann", gate.job.name).done > len(seen))
        seen.append(queue.progress("ann", gate.job.name))
    assert [(progress.state, progress.done) for progress in seen] == [("working", 1), ("working", 2)]
    assert seen[1].seconds >= 0
    gate.let()
    until(lambda: queue.progress("ann", gate.job.name).state != "working")
    np.testing.assert_array_equal(worked_out(gate.job), 3)


def test_what_is_kept_is_there_at_once():
    queue, gate = JobQueue(), Gate(open_=True)
    queue.begin("ann", gate.job)
    until(lambda: jobs.RESULTS.peek("a") is not None)
    again = Gate()  # whose pieces never go on
    assert queue.begin("bob", again.job) == Progress("done", 3, 3)
    assert again.log == []


def test_who_leaves_ends_the_work_within_a_fifth_of_a_second():
    queue, log = JobQueue(), []

    def pieces():
        for unit in range(1000):
            time.sleep(0.05)
            log.append(unit)
            yield unit + 1
        return np.zeros(1)

    job = Job("slow", pieces, 1000, 1e9)
    queue.begin("ann", job)
    until(lambda: len(log) > 1)
    queue.leave("ann", job.name)
    assert queue.progress("ann", job.name).state == "gone"
    time.sleep(0.2)
    stopped = len(log)
    time.sleep(0.2)
    assert len(log) == stopped and jobs.RESULTS.peek("slow") is None


def test_work_inside_a_piece_ends_too():
    queue, ended = JobQueue(), threading.Event()

    def pieces():
        try:
            while True:
                go_on()
                time.sleep(0.01)
        finally:
            ended.set()
        yield

    job = Job("endless", pieces, 1, 1e9)
    queue.begin("ann", job)
    until(lambda: queue._tasks[job.name].pieces is not None)
    queue.leave("ann", job.name)
    assert ended.wait(0.2)


def test_who_asks_no_more_has_left():
    queue, gate = JobQueue(patience=0.1), Gate(units=1000, open_=False)
    queue.begin("ann", gate.job)
    gate.let()
    until(lambda: gate.log)
    time.sleep(0.15)
    gate.let(3)
    until(lambda: gate.job.name not in queue._tasks)
    assert len(gate.log) <= 2
    assert queue.progress("ann", gate.job.name).state == "gone"


def test_jobs_of_two_visitors_do_not_mix():
    queue, mine, yours = JobQueue(), Gate("mine", units=2), Gate("yours", units=3)
    queue.begin("ann", mine.job)
    queue.begin("bob", yours.job)
    assert queue.progress("ann", yours.job.name).state == queue.progress("bob", mine.job.name).state == "gone"
    queue.leave("bob", mine.job.name)  # which is none of bob's
    assert queue.progress("ann", mine.job.name).state != "gone"
    mine.let(2), yours.let(3)
    until(lambda: jobs.RESULTS.peek("mine") is not None and jobs.RESULTS.peek("yours") is not None)
    assert worked_out(mine.job)[0] == 2 and worked_out(yours.job)[0] == 3


def test_one_job_serves_all_who_wait_for_it_and_ends_with_the_last():
    queue, gate = JobQueue(), Gate(units=100)
    queue.begin("ann", gate.job)
    queue.begin("bob", Gate(units=100).job)
    gate.let()
    until(lambda: queue.progress("bob", gate.job.name).done == 1)
    queue.leave("ann", gate.job.name)
    gate.let()
    until(lambda: queue.progress("bob", gate.job.name).done == 2)
    queue.leave("bob", gate.job.name)
    assert not queue._tasks


def test_pieces_are_done_in_turn():
    log = []
    queue, gates = JobQueue(), [Gate(name, units=50, log=log) for name in "abc"]
    for visitor, gate in zip(("ann", "bob", "cat"), gates, strict=True):
        queue.begin(visitor, gate.job)
    for gate in gates:
        gate.let(50)
    until(lambda: len(log) >= 30)
    assert all(log[:30].count(name) >= 9 for name in "abc")


def test_everybodys_first_job_comes_before_anybodys_second():
    log = []
    queue, block = JobQueue(at_once=2), Gate("block", units=1, log=log)
    queue.begin("zoe", block.job)
    until(lambda: queue._tasks[block.job.name].pieces is not None)
    gates = {name: Gate(name, units=20, log=log, open_=True) for name in ("a1", "a2", "a3", "b1")}
    for name in ("a1", "a2", "a3"):
        queue.begin("ann", gates[name].job)
    queue.begin("bob", gates["b1"].job)
    block.let()
    until(lambda: len(log) == 81)
    assert set(log[1:21]) == {"a1", "b1"}


def test_at_most_so_many_wait():
    queue = JobQueue()
    for number in range(MOST_OF_ONE):
        queue.begin("ann", Gate(number).job)
    with pytest.raises(UserError, match="already"):
        queue.begin("ann", Gate("more").job)
    queue.begin("bob", Gate("more").job)


def test_an_error_is_told_to_who_waits_and_to_nobody_after(kept):
    queue = JobQueue()

    def pieces():
        yield 1
        raise UserError("the prompts are too short")

    job = Job("wrong", pieces, 2, 1e6)
    told = [queue.begin("ann", job)]
    until(lambda: told[-1].state == "failed" or told.append(queue.progress("ann", job.name)))
    assert str(told[-1].error) == "the prompts are too short"
    assert queue.progress("ann", job.name).state == "gone" and kept.peek("wrong") is None
    gate = Gate(open_=True)  # and the others go on
    queue.begin("bob", gate.job)
    until(lambda: kept.peek("a") is not None)


def test_a_job_is_timed_by_what_it_takes_itself(monkeypatch):
    took = []
    monkeypatch.setattr(Job, "took", lambda job, seconds: took.append(seconds))
    queue = JobQueue()

    def pieces():
        for unit in range(3):
            time.sleep(0.02)
            yield unit
        return np.zeros(1)

    queue.begin("ann", Job("timed", pieces, 3, 1e6))
    until(lambda: took)
    assert 0.06 <= took[0] < 0.5
