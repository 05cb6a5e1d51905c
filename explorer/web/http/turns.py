"""Who is computed for next, where more ask than there are cores."""

import asyncio
import heapq
import itertools
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

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


class Turns:
    """Places to compute in, for `anyio.to_thread.run_sync` in place of a `CapacityLimiter`: the next that is free goes
    to whoever's patience ends first, and of those with the same patience to who came first. Of one event loop.

    A stream takes a place for each stretch of what it writes, and waits for the next behind all others.

    Args:
        places: how many compute at a time.
    """

    def __init__(self, places: int = PLACES):
        self.places = self.free = places
        self._waiting: list[tuple[float, int, asyncio.Future]] = []
        self._came = itertools.count()

    @property
    def waiting(self) -> int:
        """How many wait for a place."""
        return sum(not place.done() for _end, _came, place in self._waiting)

    async def __aenter__(self):
        _turns.set(self)
        if self.free:
            self.free -= 1
            return
        place = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (time.monotonic() + patience.get(), next(self._came), place))
        try:
            await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():  # it had been given to this one
                self._leave()
            raise

    async def __aexit__(self, *error: object):
        self._leave()

    def _leave(self):
        while self._waiting:
            _end, _came, place = heapq.heappop(self._waiting)
            if not place.done():
                place.set_result(None)
                return
        self.free += 1

    async def _again(self):
        self._leave()
        await self.__aenter__()

    def give_way(self):
        """By a thread that has a place: let go of it if somebody waits, and return once it has one again."""
        if self._waiting:
            anyio.from_thread.run(self._again)


_turns: ContextVar[Turns] = ContextVar("turns")


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
