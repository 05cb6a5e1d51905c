"""Who computes next."""

import asyncio
import threading
import time
from types import SimpleNamespace

import anyio.to_thread
import pytest

from explorer.tracing.work import Work, go_on
from explorer.web.http import turns
from explorer.web.http.turns import AT_ONCE, BELOW, BESIDES, TOLD_AFTER, Turns, in_turn, patience, visitor


async def come(places: Turns, name: str, how_patient: float, served: list[str], gate: asyncio.Event):
    patience.set(how_patient)
    async with places:
        served.append(name)
        await gate.wait()


def served_in_order(*comers: tuple[str, float]) -> list[str]:
    """Who gets the only place when, after somebody who had it before they came."""

    async def all_of_them() -> list[str]:
        places, served, gate = Turns(1), [], asyncio.Event()
        tasks = []
        for comer in (("first", AT_ONCE), *comers):
            tasks.append(asyncio.create_task(come(places, *comer, served, gate)))
            await asyncio.sleep(0.001)
        assert served == ["first"] and places.waiting == len(comers)
        gate.set()
        await asyncio.gather(*tasks)
        assert places.free == 1 and places.waiting == 0
        return served[1:]

    return asyncio.run(all_of_them())


def test_what_is_seen_at_once_goes_before_what_is_below_and_marks_last():
    assert served_in_order(("mark", BESIDES), ("below", BELOW), ("seen", AT_ONCE)) == ["seen", "below", "mark"]


def test_who_came_first_goes_first():
    assert served_in_order(*((str(i), AT_ONCE) for i in range(5))) == list("01234")


def test_nobody_is_starved(monkeypatch):
    """A mark that has waited for as long as it has patience goes before what comes then."""
    now = iter((0.0, BESIDES - 0.1, BESIDES + 0.1))
    monkeypatch.setattr(turns, "time", SimpleNamespace(monotonic=lambda: next(now)))
    assert served_in_order(("mark", BESIDES), ("seen", AT_ONCE), ("later", AT_ONCE)) == ["seen", "mark", "later"]


def test_as_many_compute_as_there_are_places():
    async def most() -> int:
        places, inside, seen = Turns(3), 0, []

        async def compute():
            nonlocal inside
            async with places:
                inside += 1
                seen.append(inside)
                await asyncio.sleep(0.002)
                inside -= 1

        await asyncio.gather(*(compute() for _ in range(12)))
        assert places.free == 3
        return max(seen)

    assert asyncio.run(most()) == 3


@pytest.mark.parametrize("given", [False, True])
def test_who_leaves_while_waiting_keeps_no_place(given):
    async def leave():
        places, served, gate = Turns(1), [], asyncio.Event()
        holder = asyncio.create_task(come(places, "holder", AT_ONCE, served, gate))
        await asyncio.sleep(0)
        leaver = asyncio.create_task(come(places, "leaver", AT_ONCE, served, gate))
        other = asyncio.create_task(come(places, "other", AT_ONCE, served, gate))
        await asyncio.sleep(0)
        gate.set()
        while given and len(places._heap) == 2:  # until the place is the leaver's, who has not been told yet
            await asyncio.sleep(0)
        leaver.cancel()
        await asyncio.gather(holder, leaver, other, return_exceptions=True)
        assert served == ["holder", "other"]
        return places.free

    assert asyncio.run(leave()) == 1


def test_a_long_answer_lets_others_in_between_its_pieces(monkeypatch):
    monkeypatch.setattr(turns, "STRETCH", 0.0)
    done, began = [], threading.Event()

    def long():
        with in_turn(Work(100, 10.0)):
            for piece in range(3):
                done.append(f"piece {piece}")
                began.set()
                time.sleep(0.05)
                go_on()

    async def both():
        places = Turns(1)
        task = asyncio.create_task(anyio.to_thread.run_sync(long, limiter=places))
        while not began.is_set():
            await asyncio.sleep(0.001)
        await anyio.to_thread.run_sync(lambda: done.append("short"), limiter=places)
        await task
        assert places.free == 1

    asyncio.run(both())
    assert done.index("short") < done.index("piece 2") and len(done) == 4


def test_a_stretch_is_not_cut_shorter(monkeypatch):
    monkeypatch.setattr(turns, "STRETCH", 60.0)
    ways = []
    monkeypatch.setattr(Turns, "give_way", lambda self: ways.append(self))

    def short():
        with in_turn(Work(100, 10.0)):
            go_on()

    async def run():
        await anyio.to_thread.run_sync(short, limiter=Turns(1))

    asyncio.run(run())
    assert ways == []


def test_who_asks_for_much_at_once_waits_for_those_who_ask_for_little():
    async def order() -> list[str]:
        places, served, gate, tasks = Turns(1), [], asyncio.Event(), []
        for name in ("first", "greedy", "greedy", "greedy", "modest", "unknown", "unknown"):
            visitor.set("" if name == "unknown" else name)
            tasks.append(asyncio.create_task(come(places, name, AT_ONCE, served, gate)))
            await asyncio.sleep(0.001)
        gate.set()
        await asyncio.gather(*tasks)
        return served[1:]

    assert asyncio.run(order()) == ["greedy", "modest", "unknown", "unknown", "greedy", "greedy"]


def test_those_before_are_counted_once_each(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(turns, "time", SimpleNamespace(monotonic=lambda: now[0]))

    async def told() -> list[int | None]:
        places, gate, tasks = Turns(1), asyncio.Event(), []
        for name in ("first", "a", "a", "b", "", "c"):
            visitor.set(name)
            how_patient = BESIDES if name == "c" else AT_ONCE
            tasks.append(asyncio.create_task(come(places, name, how_patient, [], gate)))
            await asyncio.sleep(0)
            now[0] += 0.001
        soon = places.before("c")
        now[0] += TOLD_AFTER
        told = [soon, *map(places.before, ("first", "a", "b", "c", "nobody"))]
        gate.set()
        await asyncio.gather(*tasks)
        return [*told, places.before("c")]

    # Of c, which is patient: a, with both of what it asks for, b, and somebody unknown.
    assert asyncio.run(told()) == [None, None, 0, 1, 3, None, None]


def test_all_that_is_done_in_one_turn_takes_one_place():
    async def one_after_another() -> list[str]:
        places, done = Turns(1), []

        async def event(name: str):
            async with places.held():
                for step in range(3):
                    await anyio.to_thread.run_sync(done.append, f"{name} {step}", limiter=places)

        await asyncio.gather(event("a"), event("b"))
        assert places.free == 1
        return done

    assert asyncio.run(one_after_another()) == ["a 0", "a 1", "a 2", "b 0", "b 1", "b 2"]
