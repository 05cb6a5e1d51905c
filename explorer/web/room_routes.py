"""HTTP routes of rooms: POST to `/rooms/ACTION` with a JSON object; checks of their bodies and limits."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from explorer.lessons.lesson import LessonLibrary
from explorer.state.generation_settings import UserLimits
from explorer.state.selection import MAX_REPLY_CHARS
from explorer.translations import _, use_locale
from explorer.web.key_value_stores import MemoryRooms, RedisStore, StoreError
from explorer.web.rate_limits import CLIENTS_PER_ADDRESS, Client, SlidingWindowLimiter
from explorer.web.request_validation import (
    Index,
    State,
    argument_types,
    check_content_type,
    parse_json,
    to_json_bytes,
    too_large_error,
)
from explorer.web.rooms import (
    ClassQuestion,
    LocalRoomCopy,
    RoomWatcher,
    TeacherState,
    is_valid_question,
    is_valid_student_name,
    matches_key_hash,
    own_question_key,
    own_question_tally_key,
    parse_room_code,
)
from explorer.web.user_messages import errors_as_responses, locale_from_state


def room_not_found_error() -> HTTPException:
    """Return the error for an unknown room."""
    return HTTPException(404, _("There is no room with this code: it was closed, or the code is wrong."))


def room_full_error() -> HTTPException:
    """Return the error for a full room."""
    return HTTPException(403, _("This room is full."))


HOUR_S, MINUTE_S = 3600.0, 60.0
MAX_MISSES_PER_MINUTE = 30  # rooms that are not there, of an address in a minute: as many as a class mistypes


class RoomRateLimits:
    """Limits on opening rooms and on looking them up, counted in this process.

    Args:
        limits: of each user.
    """

    def __init__(self, limits: UserLimits):
        self.rooms, self.people = limits.rooms, limits.people
        self._opened, self._missed = SlidingWindowLimiter(HOUR_S), SlidingWindowLimiter(MINUTE_S)

    def check_open(self, client: Client):
        """Raise HTTPException if the client has opened too many rooms in the last hour, else count one more."""
        limits = {("visitor", client.name): self.rooms, ("address", client.address): self.rooms * CLIENTS_PER_ADDRESS}
        if seconds := self._opened.acquire(limits):
            raise HTTPException(
                429,
                _(
                    "Limit reached ({most:g} rooms per hour). Open the next room in {minutes} min.",
                    most=self.rooms,
                    minutes=-(-seconds // 60),
                ),
            )

    def check_lookup(self, address: str):
        """Raise HTTPException if the address has requested too many rooms that do not exist."""
        if seconds := self._missed.seconds_until_free({address: MAX_MISSES_PER_MINUTE}):
            raise HTTPException(
                429,
                _("Too many requests for rooms that do not exist. Try again in {seconds} s.", seconds=seconds),
            )

    def count_miss(self, address: str):
        """Count an attempt with a wrong code from an address."""
        self._missed.acquire({address: MAX_MISSES_PER_MINUTE})


async def await_until_disconnect(request: Request, answer: Awaitable[bytes | None]) -> bytes | None:
    """Return an answer; None as soon as the client disconnects."""
    answering, leaving = asyncio.ensure_future(answer), asyncio.ensure_future(request.receive())
    try:
        await asyncio.wait((answering, leaving), return_when=asyncio.FIRST_COMPLETED)
        return answering.result() if answering.done() else None
    finally:
        answering.cancel()
        leaving.cancel()


# What stays each student's own: in which language they read, what they reply and guess.
STUDENT_FIELDS = ("lang", "turn", "version", "move", "own", "reply", "guess")


LONG_POLL_S = 20.0  # maximum wait of a long poll: proxies close idle connections
MIN_RENEW_INTERVAL_S = 60.0  # seconds between two of the teacher's signs that are kept
MAX_STATE_BYTES, MAX_BODY_BYTES = 200_000, 2000  # bytes of what a teacher shows, and of all else


class RoomRoutes:
    """Routes below `/rooms/`.

    Args:
        store: where the rooms are.
        lesson_library: lessons, whose questions students reply to.
        limits: of each user.
    """

    def __init__(self, store: MemoryRooms | RedisStore, lesson_library: LessonLibrary, limits: UserLimits):
        self.watcher, self.lesson_library, self.limits = RoomWatcher(store), lesson_library, RoomRateLimits(limits)
        self.handlers: dict[str, Callable[..., Awaitable[Any]]] = {
            "open": self.open,
            "next": self.next,
            "lead": self.set_teacher_state,
            "reply": self.reply,
            "leave": self.leave,
            "close": self.close,
        }
        self.routes = [Route("/rooms/{name}", self.call, methods=["POST"])]

    async def call(self, request: Request) -> Response:
        """Call a handler with the JSON object in the request's body: its arguments, and maybe the page's `lang`."""
        name = request.path_params["name"]
        if (handler := self.handlers.get(name)) is None:
            raise HTTPException(404, _("Not found."))
        check_content_type(request.headers)
        body, max_bytes = await request.body(), MAX_STATE_BYTES if name == "lead" else MAX_BODY_BYTES
        if len(body) > max_bytes:
            raise too_large_error(max_bytes)
        with errors_as_responses():
            arguments = parse_json(body)
        with use_locale(locale_from_state([arguments])), errors_as_responses():
            if isinstance(arguments, dict):
                arguments.pop("lang", None)
            argument_types(handler).check_named(arguments)
            try:
                answer = await handler(request, **arguments)
            except StoreError:
                sentence = _("The rooms cannot be reached just now: try again in a while.")
                raise HTTPException(503, sentence) from None
        body = answer if isinstance(answer, bytes) else to_json_bytes(answer)
        return Response(body, media_type="application/json", headers={"Cache-Control": "no-store"})

    async def open(self, request: Request) -> dict[str, str]:
        """Open a room, and return its `code` and its teacher's `key`."""
        self.limits.check_open(Client.from_request(request))
        code_and_key = await self.watcher.run_store_call(self.watcher.room_store.open)
        if code_and_key is None:
            raise HTTPException(429, _("Too many rooms are open. Try again later."))
        return dict(zip(("code", "key"), code_and_key, strict=True))

    async def next(
        self, request: Request, code: str, student: str | None = None, key: str | None = None, seen: str = ""
    ) -> bytes | dict[str, str]:
        """Return the room's next response to a student or its teacher, once its tag differs from `seen`."""
        is_teacher = key is not None
        if is_teacher:
            room = await self._require_teacher(request, code, key)
            await self._renew(room)
        else:
            room = await self._require_student(request, code, student)
            room.join(student)
        room.waiting += 1
        try:
            answer = await await_until_disconnect(request, room.wait_for_change(is_teacher, seen, LONG_POLL_S))
        finally:
            room.waiting, room.left_at = room.waiting - 1, time.monotonic()
            if not is_teacher:
                room.leave(student)
        return {"tag": seen} if answer is None else answer

    async def set_teacher_state(
        self,
        request: Request,
        code: str,
        key: str,
        leads: bool = False,
        state: State | None = None,
        lesson: str | None = None,
        step: Index | None = None,
        held_from: Index = 0,
        question: ClassQuestion | None = None,
    ) -> dict[str, Any]:
        """Set the teacher's state: what the class follows, the counted lesson and step, and the teacher's question."""
        room = await self._require_teacher(request, code, key)
        if leads and not (state and state.get("checkpoint")):
            raise HTTPException(422, _("“state” must be the state of the page."))
        followed_state = {name: value for name, value in state.items() if name not in STUDENT_FIELDS} if leads else None
        is_known_lesson = lesson is not None and lesson in await self._lessons()
        if question and not is_valid_question(question):
            raise HTTPException(422, _("A question has text, and two to four different answers or none."))
        lesson_place = (lesson, step or 0, held_from) if is_known_lesson else ("", 0, 0)
        teacher_state = TeacherState(leads, followed_state, *lesson_place, question)
        await self.watcher.run_store_call(self.watcher.room_store.set_teacher_state, room.code, teacher_state)
        room.to_read.set()
        await self._renew(room)
        return {}

    async def reply(
        self, request: Request, code: str, student: str, lesson: str, step: Index, reply: str | None
    ) -> dict[str, Any]:
        """Store a student's reply to the question of a step of the room's lesson; null withdraws it.

        Without a lesson ("") it is the teacher's own question, and `step` its number.
        """
        room = await self._require_student(request, code, student)
        if student not in room.present_until:
            raise HTTPException(403, _("Join the room first."))
        question_name, tally_key = await self._question(room, lesson, step)
        counted_reply = tally_key(reply) if reply is not None and len(reply) <= MAX_REPLY_CHARS else None
        if counted_reply is None and reply is not None:
            raise HTTPException(422, _("This reply does not fit the question."))
        room_store = self.watcher.room_store

        def put() -> bool:
            if reply is not None and not room_store.has_space(room.code, question_name, student, self.limits.people):
                return False
            room_store.reply(room.code, question_name, student, counted_reply)
            return True

        if not await self.watcher.run_store_call(put):
            raise room_full_error()
        room.to_read.set()
        return {}

    async def _question(self, room: LocalRoomCopy, lesson: str, step: int) -> tuple[str, Callable[[str], str | None]]:
        """Return the key of a room's question in the store, and its function from reply to tally key.

        Raises:
            HTTPException: the class has another lesson or question, or the step has none.
        """
        if not lesson:
            own = room.teacher_state.question
            if own is None or own["number"] != step:
                raise HTTPException(409, _("This question is over."))
            return own_question_key(own), partial(own_question_tally_key, own)
        if lesson != room.teacher_state.lesson:
            raise HTTPException(409, _("The class is in another lesson."))
        steps = (await self._lessons())[lesson].steps
        question = steps[step - 1].question if 1 <= step <= len(steps) else None
        if question is None:
            raise HTTPException(422, _("There is no question in this step."))
        return f"{lesson}:{step}", question.tally_key

    async def leave(self, request: Request, code: str, student: str) -> dict[str, Any]:
        """Mark a student as absent."""
        if room := self.watcher.get_local(parse_room_code(code) or ""):
            room.leave(student, at_once=True)
        return {}

    async def close(self, request: Request, code: str, key: str) -> dict[str, Any]:
        """Delete the room and its contents."""
        room = await self._require_teacher(request, code, key)
        await self.watcher.run_store_call(self.watcher.room_store.close, room.code)
        room.close()
        return {}

    async def _require_student(self, request: Request, code: str, student: str | None) -> LocalRoomCopy:
        """Return the room of a student's request.

        Raises:
            HTTPException: there is no such room, it is full, or the student's name is invalid.
        """
        if not is_valid_student_name(student):
            raise HTTPException(422, _("A student has a name of 32 digits from 0 to f."))
        code, address = parse_room_code(code) or "", Client.from_request(request).address
        room = self.watcher.get_local(code)
        if room and student in room.present_until:
            return room
        self.limits.check_lookup(address)
        room = await self.watcher.get_or_follow(code)
        if room is None:
            self.limits.count_miss(address)
            raise room_not_found_error()
        if student not in room.people and len(room.people) >= self.limits.people:
            raise room_full_error()
        return room

    async def _require_teacher(self, request: Request, code: str, key: str) -> LocalRoomCopy:
        """Return the room of a teacher's request.

        Raises:
            HTTPException: there is no such room, or the key is another's.
        """
        room = await self.watcher.get_or_follow(parse_room_code(code) or "")
        if room and matches_key_hash(key, room.key_hash):
            return room
        address = Client.from_request(request).address
        self.limits.check_lookup(address)  # whoever has a key goes on, however often others guess a code
        self.limits.count_miss(address)
        if room is None:
            raise room_not_found_error()
        raise HTTPException(403, _("Only the teacher who opened this room can do that."))

    async def _renew(self, room: LocalRoomCopy):
        """Record that the teacher is present."""
        now = time.monotonic()
        if now - room.teacher_asked_at > LONG_POLL_S:
            room.to_read.set()  # replies are read for a teacher alone
        room.teacher_asked_at = now
        if now - room.renewed_at > MIN_RENEW_INTERVAL_S:
            room.renewed_at = now
            await self.watcher.run_store_call(self.watcher.room_store.renew, room.code)

    async def _lessons(self) -> Mapping[str, Any]:
        """Return the lessons, read from their files on first use."""
        return await self.watcher.run_store_call(lambda: self.lesson_library.lessons)
