"""Fair scheduling of requests when there are more than cores."""

import asyncio
import heapq
import itertools
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

import anyio.from_thread

from explorer.tracing.request_budget import RequestBudget
from explorer.tracing.threads import CORES

# More only wait for each other: for cores, and for Python's lock, which a stream wants back at each of its tokens.
NUM_SLOTS = max(2, min(CORES, 4))
TIME_SLICE_S = 0.05  # time slice after which a long computation yields
# Seconds that something may wait while others that came after it are served: what is seen at once, what is below it,
# and what vouches for it. However many come, nobody is starved.
NO_DELAY_S, BELOW_DELAY_S, VERIFICATION_DELAY_S = 0.0, 1.0, 3.0
priority_delay_s: ContextVar[float] = ContextVar("patience", default=NO_DELAY_S)
# Who asks for several things at a time has each of them wait a second longer than the one before, up to so many.
DELAY_PER_REQUEST_S, MAX_DELAYED_REQUESTS = 1.0, 10
current_client: ContextVar[str] = ContextVar("visitor", default="")  # "" for somebody who is not known
SHOW_QUEUE_AFTER_S = 1.0  # seconds of waiting after which the queue position is shown


@dataclass(frozen=True)
class Waiter:
    """A waiting request, and its arrival time."""

    client: str
    since: float
    slot: asyncio.Future


class FairScheduler:
    """Slots to compute in, for `anyio.to_thread.run_sync` in place of a `CapacityLimiter`.

    A free slot goes to the request whose priority delay ends first, and in order of arrival among equals. Generation
    takes a slot for each time slice, and waits for the next one behind all others. Belongs to one event loop.

    Args:
        num_slots: number of requests that compute at a time.
    """

    def __init__(self, num_slots: int = NUM_SLOTS):
        self.num_slots = self.num_free = num_slots
        self._heap: list[tuple[float, int, Waiter]] = []
        self._arrivals = itertools.count()

    @property
    def waiting(self) -> int:
        """Number of waiting requests."""
        return len(self._in_order())

    def queue_position(self, name: str) -> int | None:
        """Return how many other clients are served before this one; None if it is not waiting, or not for long."""
        order, now = self._in_order(), time.monotonic()
        own_indices = [index for index, waiter in enumerate(order) if waiter.client == name]
        if not own_indices or now - min(order[index].since for index in own_indices) < SHOW_QUEUE_AFTER_S:
            return None
        return len({waiter.client or waiter.slot for waiter in order[: own_indices[0]]})

    def _in_order(self) -> list[Waiter]:
        return [waiter for _end, _arrival, waiter in sorted(self._heap) if not waiter.slot.done()]

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Hold one slot during the block, which requests no other."""
        await self._acquire()
        before = _has_slot.set(True)
        try:
            yield
        finally:
            _has_slot.reset(before)
            self._release()

    async def __aenter__(self):
        _scheduler.set(self)
        if not _has_slot.get():
            await self._acquire()

    async def __aexit__(self, *error: object):
        if not _has_slot.get():
            self._release()

    async def _acquire(self):
        if self.num_free:
            self.num_free -= 1
            return
        name, now, slot = current_client.get(), time.monotonic(), asyncio.get_running_loop().create_future()
        num_waiting = sum(waiter.client == name for waiter in self._in_order()) if name else 0
        end = now + priority_delay_s.get() + DELAY_PER_REQUEST_S * min(num_waiting, MAX_DELAYED_REQUESTS)
        heapq.heappush(self._heap, (end, next(self._arrivals), Waiter(name, now, slot)))
        try:
            await slot
        except asyncio.CancelledError:
            if slot.done() and not slot.cancelled():  # it had been given to this one
                self._release()
            raise

    def _release(self):
        while self._heap:
            _end, _arrival, waiter = heapq.heappop(self._heap)
            if not waiter.slot.done():
                waiter.slot.set_result(None)
                return
        self.num_free += 1

    async def _reacquire(self):
        self._release()
        await self._acquire()

    def yield_slot(self):
        """Release the calling thread's slot if others wait, and return once it has one again."""
        if self._heap:
            anyio.from_thread.run(self._reacquire)


_scheduler: ContextVar[FairScheduler] = ContextVar("turns")
_has_slot: ContextVar[bool] = ContextVar("has_place", default=False)


@contextmanager
def time_sliced(budget: RequestBudget) -> Iterator[None]:
    """Activate a request's budget during the block, and yield the slot after each `TIME_SLICE_S`."""
    scheduler, start_time = _scheduler.get(None), time.monotonic()

    def give_way():
        nonlocal start_time
        if time.monotonic() - start_time > TIME_SLICE_S:
            scheduler.yield_slot()
            start_time = time.monotonic()

    if scheduler:
        budget.yield_slot = give_way
    with budget.activate():
        yield
