"""Who computes next."""

import asyncio
import threading
import time
from types import SimpleNamespace

import anyio.to_thread
import pytest

from explorer.tracing.work import Work, go_on
from explorer.web.http import turns
from explorer.web.http.turns import AT_ONCE, BELOW, BESIDES, Turns, in_turn, patience


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
        while given and len(places._waiting) == 2:  # until the place is the leaver's, who has not been told yet
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
