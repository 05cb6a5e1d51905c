"""The rooms of a process: passes each change to the clients that wait here, whichever process received it."""

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

import anyio
import anyio.to_thread

from explorer.web.rooms.local_room import LocalRoom
from explorer.web.rooms.room_store import CHANNEL, PRESENCE_TTL_S, RoomStore, TeacherState, new_process_name
from explorer.web.stores import Store, StoreError

LOG = logging.getLogger(__name__)
MAX_THREADS = 4  # threads that ask the store
MIN_READ_INTERVAL_S, POLL_INTERVAL_S = (
    0.1,
    5.0,
)  # minimum interval between reads; maximum without a notification
LINGER_S = 30.0  # seconds for which a room without waiting clients is followed
RETRY_AFTER_S = 2.0  # seconds until a store that is gone is asked again
Result = TypeVar("Result")


class RoomHub:
    """Follows each room with waiting clients by one task per room, and one listener thread for all of them.

    A waiting client takes a connection and no thread. Belongs to one event loop; errors are those of the store.

    Args:
        store: shared by the processes.
    """

    def __init__(self, store: Store):
        self.room_store, self.name = RoomStore(store), new_process_name()
        self._rooms: dict[str, LocalRoom] = {}
        self._limiter: anyio.CapacityLimiter | None = None
        self._listener: threading.Thread | None = None
        self._wanted = threading.Event()  # that somebody listens

    async def run_store_call(self, function: Callable[..., Result], *args: Any) -> Result:
        """Call a function of the store on another thread, and return its result."""
        if self._limiter is None:
            self._limiter = anyio.CapacityLimiter(MAX_THREADS)
        return await anyio.to_thread.run_sync(lambda: function(*args), limiter=self._limiter)

    def get_local(self, code: str) -> LocalRoom | None:
        """Return a room that this process follows; None if it does not, or the room is closed."""
        room = self._rooms.get(code)
        return None if room is None or room.closed else room

    async def get_or_follow(self, code: str) -> LocalRoom | None:
        """Return a room, and follow it from now on; None if there is no such room."""
        if room := self.get_local(code):
            room.left_at = time.monotonic()  # whoever asks is about to wait: it is not given up meanwhile
            return room
        if not await self.run_store_call(self.room_store.exists, code):
            return None
        if room := self.get_local(code):  # another came meanwhile
            return room
        room = self._rooms[code] = LocalRoom(code)
        self._listen()
        room.task = asyncio.create_task(self._follow(room))
        return room

    async def _follow(self, room: LocalRoom):
        try:
            while not room.closed and (room.waiting or time.monotonic() - room.left_at < LINGER_S):
                with contextlib.suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(room.to_read.wait(), POLL_INTERVAL_S)
                    room.to_read.clear()
                try:
                    await self._read(room)
                except Exception as error:  # whatever it is, nobody is to be told that the class is over
                    LOG.warning("a room could not be read: %s", error, exc_info=not isinstance(error, StoreError))
                    await asyncio.sleep(RETRY_AFTER_S)
                    room.to_read.set()
                await asyncio.sleep(MIN_READ_INTERVAL_S)
        finally:
            room.close()
            if self._rooms.get(room.code) is room:
                del self._rooms[room.code]

    async def _read(self, room: LocalRoom):
        room.drop_absent()
        has_teacher = time.monotonic() - room.teacher_asked_at < LINGER_S
        present_here, is_due = set(room.present_until), time.monotonic() - room.reported_at > PRESENCE_TTL_S / 3

        def read() -> tuple[TeacherState, set[str], dict[str, int]] | None:
            if not self.room_store.exists(room.code):
                self.room_store.forget(room.code)  # what is left of it
                return None
            if present_here != room.reported_students or is_due:
                self.room_store.report_present(room.code, self.name, present_here)
            if present_here != room.reported_students:
                self.room_store.publish_change(room.code)
            teacher_state = self.room_store.get_teacher_state(room.code)
            counts = (
                self.room_store.counts(room.code, question_key(teacher_state))
                if has_teacher and teacher_state.lesson
                else {}
            )
            return teacher_state, self.room_store.present_students(room.code), counts

        reading = await self.run_store_call(read)
        if reading is None:
            return room.close()
        if present_here != room.reported_students or is_due:
            room.reported_students, room.reported_at = present_here, time.monotonic()
        room.teacher_state, present_students, counts = reading
        room.students_everywhere, teacher_state = frozenset(present_students), room.teacher_state
        for_students = {"leads": teacher_state.leads, "state": teacher_state.state, "lesson": teacher_state.lesson}
        for_teacher = {
            "people": len(room.people),
            "lesson": teacher_state.lesson,
            "step": teacher_state.step,
            "counts": counts,
        }
        return room.set_answers(for_students, for_teacher if has_teacher else None)

    def _listen(self):
        self._wanted.set()
        if self._listener is None or not self._listener.is_alive():
            loop = asyncio.get_running_loop()
            self._listener = threading.Thread(target=self._refresh_all, args=(loop,), name="rooms", daemon=True)
            self._listener.start()

    def _refresh_all(self, loop: asyncio.AbstractEventLoop):
        while self._wanted.wait() and not loop.is_closed():
            try:
                with self.room_store.store.listen(CHANNEL) as next_message:
                    loop.call_soon_threadsafe(self._request_all_reads)
                    while self._rooms and not loop.is_closed():
                        if message := next_message(1.0):
                            loop.call_soon_threadsafe(self._on_change, message.decode())
            except StoreError:
                time.sleep(RETRY_AFTER_S)  # meanwhile each room is read every few seconds
            except RuntimeError:  # the loop was closed
                return
            self._wanted.clear()
            if self._rooms:
                self._wanted.set()

    def _request_all_reads(self):
        """Request a read of all rooms, for changes before the listener was subscribed."""
        for room in self._rooms.values():
            room.to_read.set()

    def _on_change(self, code: str):
        if room := self._rooms.get(code):
            room.to_read.set()


def question_key(teacher_state: TeacherState) -> str:
    """Return the key of the question at the teacher's step."""
    return f"{teacher_state.lesson}:{teacher_state.step}"
