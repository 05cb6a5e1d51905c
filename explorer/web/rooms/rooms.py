"""The rooms of a process: what their teacher does reaches those who wait here, whichever process was told."""

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

import anyio
import anyio.to_thread

from explorer.web.rooms.here import Here
from explorer.web.rooms.kept_rooms import CHANNEL, THERE_LASTS, KeptRooms, Led, new_process
from explorer.web.shared.store import Store, StoreError

LOG = logging.getLogger(__name__)
AT_ONCE = 4  # threads that ask the store
SOON, LOOKING = 0.1, 5.0  # seconds between two readings at least; after which is read what nobody told
LINGERS = 30.0  # seconds for which a room is followed in which nobody waits
AGAIN_AFTER = 2.0  # seconds until a store that is gone is asked again
Result = TypeVar("Result")


class Rooms:
    """Follows each room in which somebody waits here, by one task a room and one thread that listens for all of them.
    Whoever waits costs a connection and no thread. Of one event loop; errors are those of the store.

    Args:
        store: what the processes share.
    """

    def __init__(self, store: Store):
        self.kept, self.name = KeptRooms(store), new_process()
        self._here: dict[str, Here] = {}
        self._limiter: anyio.CapacityLimiter | None = None
        self._listening: threading.Thread | None = None
        self._wanted = threading.Event()  # that somebody listens

    async def asked(self, question: Callable[..., Result], *given: Any) -> Result:
        """What the store answers, on another thread."""
        if self._limiter is None:
            self._limiter = anyio.CapacityLimiter(AT_ONCE)
        return await anyio.to_thread.run_sync(lambda: question(*given), limiter=self._limiter)

    def known(self, code: str) -> Here | None:
        """A room that is followed here."""
        here = self._here.get(code)
        return None if here is None or here.closed else here

    async def here(self, code: str) -> Here | None:
        """The same, and from now on where it was not; None where there is no such room."""
        if here := self.known(code):
            here.left_at = time.monotonic()  # whoever asks is about to wait: it is not given up meanwhile
            return here
        if not await self.asked(self.kept.is_there, code):
            return None
        if here := self.known(code):  # another came meanwhile
            return here
        here = self._here[code] = Here(code)
        self._listen()
        here.task = asyncio.create_task(self._follow(here))
        return here

    async def _follow(self, here: Here):
        try:
            while not here.closed and (here.waiting or time.monotonic() - here.left_at < LINGERS):
                with contextlib.suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(here.to_read.wait(), LOOKING)
                    here.to_read.clear()
                try:
                    await self._read(here)
                except Exception as error:  # whatever it is, nobody is to be told that the class is over
                    LOG.warning("a room could not be read: %s", error, exc_info=not isinstance(error, StoreError))
                    await asyncio.sleep(AGAIN_AFTER)
                    here.to_read.set()
                await asyncio.sleep(SOON)
        finally:
            here.close()
            if self._here.get(here.code) is here:
                del self._here[here.code]

    async def _read(self, here: Here):
        here.forget_gone()
        has_teacher = time.monotonic() - here.teacher_asked_at < LINGERS
        mine, is_due = set(here.staying), time.monotonic() - here.said_at > THERE_LASTS / 3

        def read() -> tuple[Led, set[str], dict[str, int]] | None:
            if not self.kept.is_there(here.code):
                self.kept.forget(here.code)  # what is left of it
                return None
            if mine != here.said or is_due:
                self.kept.say_there(here.code, self.name, mine)
            if mine != here.said:
                self.kept.tell(here.code)
            led = self.kept.led(here.code)
            counts = self.kept.counts(here.code, question_of(led)) if has_teacher and led.lesson else {}
            return led, self.kept.there(here.code), counts

        found = await self.asked(read)
        if found is None:
            return here.close()
        if mine != here.said or is_due:
            here.said, here.said_at = mine, time.monotonic()
        here.led, there, counts = found
        here.told, led = frozenset(there), here.led
        for_students = {"leads": led.leads, "state": led.state, "lesson": led.lesson}
        asked = {"people": len(here.people), "lesson": led.lesson, "step": led.step, "counts": counts}
        return here.show(for_students, asked if has_teacher else None)

    def _listen(self):
        self._wanted.set()
        if self._listening is None or not self._listening.is_alive():
            loop = asyncio.get_running_loop()
            self._listening = threading.Thread(target=self._hear_all, args=(loop,), name="rooms", daemon=True)
            self._listening.start()

    def _hear_all(self, loop: asyncio.AbstractEventLoop):
        while self._wanted.wait() and not loop.is_closed():
            try:
                with self.kept.store.listen(CHANNEL) as messages:
                    loop.call_soon_threadsafe(self._hear_of_all)
                    while self._here and not loop.is_closed():
                        if message := messages.next(1.0):
                            loop.call_soon_threadsafe(self._heard, message.decode())
            except StoreError:
                time.sleep(AGAIN_AFTER)  # meanwhile each room is read every few seconds
            except RuntimeError:  # the loop was closed
                return
            self._wanted.clear()
            if self._here:
                self._wanted.set()

    def _hear_of_all(self):
        """What was told before anybody listened."""
        for here in self._here.values():
            here.to_read.set()

    def _heard(self, code: str):
        if here := self._here.get(code):
            here.to_read.set()


def question_of(led: Led) -> str:
    return f"{led.lesson}:{led.step}"
