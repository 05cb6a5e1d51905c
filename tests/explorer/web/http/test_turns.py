"""The order in which waiting requests compute."""

import asyncio
import threading
import time
from types import SimpleNamespace

import anyio.to_thread
import pytest

from explorer.tracing.request_budget import RequestBudget, check_budget
from explorer.web.http import turns
from explorer.web.http.turns import (
    BELOW_DELAY_S,
    NO_DELAY_S,
    SHOW_QUEUE_AFTER_S,
    VERIFICATION_DELAY_S,
    FairScheduler,
    current_client,
    priority_delay_s,
    time_sliced,
)


async def acquire_slot(scheduler: FairScheduler, name: str, priority: float, served: list[str], gate: asyncio.Event):
    priority_delay_s.set(priority)
    async with scheduler:
        served.append(name)
        await gate.wait()


def serving_order(*comers: tuple[str, float]) -> list[str]:
    """Return the order in which the comers get the only slot, after a first one that already holds it."""

    async def all_of_them() -> list[str]:
        scheduler, served, gate = FairScheduler(1), [], asyncio.Event()
        tasks = []
        for comer in (("first", NO_DELAY_S), *comers):
            tasks.append(asyncio.create_task(acquire_slot(scheduler, *comer, served, gate)))
            await asyncio.sleep(0.001)
        assert served == ["first"] and scheduler.waiting == len(comers)
        gate.set()
        await asyncio.gather(*tasks)
        assert scheduler.num_free == 1 and scheduler.waiting == 0
        return served[1:]

    return asyncio.run(all_of_them())


def test_what_is_seen_at_once_goes_before_what_is_below_and_marks_last():
    assert serving_order(("mark", VERIFICATION_DELAY_S), ("below", BELOW_DELAY_S), ("seen", NO_DELAY_S)) == [
        "seen",
        "below",
        "mark",
    ]


def test_who_came_first_goes_first():
    assert serving_order(*((str(i), NO_DELAY_S) for i in range(5))) == list("01234")


def test_nobody_is_starved(monkeypatch):
    """A low-priority request that has waited for its priority's time goes before later ones."""
    now = iter((0.0, VERIFICATION_DELAY_S - 0.1, VERIFICATION_DELAY_S + 0.1))
    monkeypatch.setattr(turns, "time", SimpleNamespace(monotonic=lambda: next(now)))
    assert serving_order(("mark", VERIFICATION_DELAY_S), ("seen", NO_DELAY_S), ("later", NO_DELAY_S)) == [
        "seen",
        "mark",
        "later",
    ]


def test_as_many_compute_as_there_are_places():
    async def max_concurrent() -> int:
        scheduler, inside, counts = FairScheduler(3), 0, []

        async def compute():
            nonlocal inside
            async with scheduler:
                inside += 1
                counts.append(inside)
                await asyncio.sleep(0.002)
                inside -= 1

        await asyncio.gather(*(compute() for _ in range(12)))
        assert scheduler.num_free == 3
        return max(counts)

    assert asyncio.run(max_concurrent()) == 3


@pytest.mark.parametrize("given", [False, True])
def test_who_leaves_while_waiting_keeps_no_place(given):
    async def leave():
        scheduler, served, gate = FairScheduler(1), [], asyncio.Event()
        holder = asyncio.create_task(acquire_slot(scheduler, "holder", NO_DELAY_S, served, gate))
        await asyncio.sleep(0)
        leaver = asyncio.create_task(acquire_slot(scheduler, "leaver", NO_DELAY_S, served, gate))
        other = asyncio.create_task(acquire_slot(scheduler, "other", NO_DELAY_S, served, gate))
        await asyncio.sleep(0)
        gate.set()
        while given and len(scheduler._heap) == 2:  # until the leaver has the slot but has not resumed
            await asyncio.sleep(0)
        leaver.cancel()
        await asyncio.gather(holder, leaver, other, return_exceptions=True)
        assert served == ["holder", "other"]
        return scheduler.num_free

    assert asyncio.run(leave()) == 1


def test_a_long_answer_lets_others_in_between_its_pieces(monkeypatch):
    monkeypatch.setattr(turns, "TIME_SLICE_S", 0.0)
    done, began = [], threading.Event()

    def compute_long_answer():
        with time_sliced(RequestBudget(100, 10.0)):
            for piece in range(3):
                done.append(f"piece {piece}")
                began.set()
                time.sleep(0.05)
                check_budget()

    async def both():
        scheduler = FairScheduler(1)
        task = asyncio.create_task(anyio.to_thread.run_sync(compute_long_answer, limiter=scheduler))
        while not began.is_set():
            await asyncio.sleep(0.001)
        await anyio.to_thread.run_sync(lambda: done.append("short"), limiter=scheduler)
        await task
        assert scheduler.num_free == 1

    asyncio.run(both())
    assert done.index("short") < done.index("piece 2") and len(done) == 4


def test_a_stretch_is_not_cut_shorter(monkeypatch):
    monkeypatch.setattr(turns, "TIME_SLICE_S", 60.0)
    ways = []
    monkeypatch.setattr(FairScheduler, "yield_slot", lambda self: ways.append(self))

    def compute_short_answer():
        with time_sliced(RequestBudget(100, 10.0)):
            check_budget()

    async def run():
        await anyio.to_thread.run_sync(compute_short_answer, limiter=FairScheduler(1))

    asyncio.run(run())
    assert ways == []


def test_who_asks_for_much_at_once_waits_for_those_who_ask_for_little():
    async def order() -> list[str]:
        scheduler, served, gate, tasks = FairScheduler(1), [], asyncio.Event(), []
        for name in ("first", "greedy", "greedy", "greedy", "modest", "unknown", "unknown"):
            current_client.set("" if name == "unknown" else name)
            tasks.append(asyncio.create_task(acquire_slot(scheduler, name, NO_DELAY_S, served, gate)))
            await asyncio.sleep(0.001)
        gate.set()
        await asyncio.gather(*tasks)
        return served[1:]

    assert asyncio.run(order()) == ["greedy", "modest", "unknown", "unknown", "greedy", "greedy"]


def test_those_before_are_counted_once_each(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(turns, "time", SimpleNamespace(monotonic=lambda: now[0]))

    async def queue_positions() -> list[int | None]:
        scheduler, gate, tasks = FairScheduler(1), asyncio.Event(), []
        for name in ("first", "a", "a", "b", "", "c"):
            current_client.set(name)
            priority = VERIFICATION_DELAY_S if name == "c" else NO_DELAY_S
            tasks.append(asyncio.create_task(acquire_slot(scheduler, name, priority, [], gate)))
            await asyncio.sleep(0)
            now[0] += 0.001
        soon = scheduler.queue_position("c")
        now[0] += SHOW_QUEUE_AFTER_S
        positions = [soon, *map(scheduler.queue_position, ("first", "a", "b", "c", "nobody"))]
        gate.set()
        await asyncio.gather(*tasks)
        return [*positions, scheduler.queue_position("c")]

    # Before c, which has low priority, are a (counted once for two requests), b, and an unknown client.
    assert asyncio.run(queue_positions()) == [None, None, 0, 1, 3, None, None]


def test_all_that_is_done_in_one_turn_takes_one_place():
    async def one_after_another() -> list[str]:
        scheduler, done = FairScheduler(1), []

        async def event(name: str):
            async with scheduler.slot():
                for step in range(3):
                    await anyio.to_thread.run_sync(done.append, f"{name} {step}", limiter=scheduler)

        await asyncio.gather(event("a"), event("b"))
        assert scheduler.num_free == 1
        return done

    assert asyncio.run(one_after_another()) == ["a 0", "a 1", "a 2", "b 0", "b 1", "b 2"]
