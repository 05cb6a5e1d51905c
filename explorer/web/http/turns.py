"""Who is computed for next, where more ask than there are cores."""

import asyncio
import heapq
import itertools
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

import anyio.from_thread

from explorer.tracing.cores import CORES
from explorer.tracing.work import Work

# More only wait for each other: for cores, and for Python's lock, which a stream wants back at each of its tokens.
PLACES = max(2, min(CORES, 4))
STRETCH = 0.05  # seconds after which what takes longer lets others in between
# Seconds that something may wait while others that came after it are served: what is seen at once, what is below it,
# and what vouches for it. However many come, nobody is starved.
AT_ONCE, BELOW, BESIDES = 0.0, 1.0, 3.0
patience: ContextVar[float] = ContextVar("patience", default=AT_ONCE)
# Who asks for several things at a time has each of them wait a second longer than the one before, up to so many.
EACH_MORE, MOST_MORE = 1.0, 10
visitor: ContextVar[str] = ContextVar("visitor", default="")  # "" for somebody who is not known
TOLD_AFTER = 1.0  # seconds of waiting from which on somebody is told of those before


@dataclass(frozen=True)
class Waiting:
    """Somebody who waits for a place, and since when."""

    visitor: str
    since: float
    place: asyncio.Future


class Turns:
    """Places to compute in, for `anyio.to_thread.run_sync` in place of a `CapacityLimiter`: the next that is free goes
    to whoever's patience ends first, and of those with the same patience to who came first. Of one event loop.

    A stream takes a place for each stretch of what it writes, and waits for the next behind all others.

    Args:
        places: how many compute at a time.
    """

    def __init__(self, places: int = PLACES):
        self.places = self.free = places
        self._heap: list[tuple[float, int, Waiting]] = []
        self._came = itertools.count()

    @property
    def waiting(self) -> int:
        """How many wait for a place."""
        return len(self._in_order())

    def before(self, name: str) -> int | None:
        """How many other visitors are served before one who has waited for a while; None for one who has not."""
        order, now = self._in_order(), time.monotonic()
        mine = [place for place, each in enumerate(order) if each.visitor == name]
        if not mine or now - min(order[place].since for place in mine) < TOLD_AFTER:
            return None
        return len({each.visitor or each.place for each in order[: mine[0]]})

    def _in_order(self) -> list[Waiting]:
        return [waiting for _end, _came, waiting in sorted(self._heap) if not waiting.place.done()]

    @asynccontextmanager
    async def held(self) -> AsyncIterator[None]:
        """One place for all that is done in the block, which asks for no other."""
        await self._come()
        before = _has_place.set(True)
        try:
            yield
        finally:
            _has_place.reset(before)
            self._leave()

    async def __aenter__(self):
        _turns.set(self)
        if not _has_place.get():
            await self._come()

    async def __aexit__(self, *error: object):
        if not _has_place.get():
            self._leave()

    async def _come(self):
        if self.free:
            self.free -= 1
            return
        name, now, place = visitor.get(), time.monotonic(), asyncio.get_running_loop().create_future()
        others = sum(each.visitor == name for each in self._in_order()) if name else 0
        end = now + patience.get() + EACH_MORE * min(others, MOST_MORE)
        heapq.heappush(self._heap, (end, next(self._came), Waiting(name, now, place)))
        try:
            await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():  # it had been given to this one
                self._leave()
            raise

    def _leave(self):
        while self._heap:
            _end, _came, waiting = heapq.heappop(self._heap)
            if not waiting.place.done():
                waiting.place.set_result(None)
                return
        self.free += 1

    async def _again(self):
        self._leave()
        await self._come()

    def give_way(self):
        """By a thread that has a place: let go of it if somebody waits, and return once it has one again."""
        if self._heap:
            anyio.from_thread.run(self._again)


_turns: ContextVar[Turns] = ContextVar("turns")
_has_place: ContextVar[bool] = ContextVar("has_place", default=False)


@contextmanager
def in_turn(work: Work) -> Iterator[None]:
    """While the block runs, what this thread does is done for an answer, for a `STRETCH` at a time: between two of its
    pieces others go first who wait by then."""
    turns, began = _turns.get(None), time.monotonic()

    def give_way():
        nonlocal began
        if time.monotonic() - began > STRETCH:
            turns.give_way()
            began = time.monotonic()

    if turns:
        work.give_way = give_way
    with work.counted():
        yield
