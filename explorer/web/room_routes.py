"""HTTP routes of rooms: POST to `/rooms/ACTION` with a JSON object; checks of their bodies and limits."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

from pydantic import TypeAdapter
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send
from typing_extensions import NotRequired, TypedDict

from explorer.errors import UserError
from explorer.lessons.lesson import LessonLibrary
from explorer.state.generation_settings import UserLimits
from explorer.state.selection import MAX_REPLY_CHARS, parse_index
from explorer.translations import _, negotiate_locale, use_locale
from explorer.web.key_value_stores import KeyValueStore, StoreError
from explorer.web.rate_limits import CLIENT_HEADER, CLIENTS_PER_ADDRESS, MAX_NAME_CHARACTERS, SlidingWindowLimiter
from explorer.web.request_validation import STRICT, Index, State, check_object, parse_json
from explorer.web.rooms import (
    ClassQuestion,
    LocalRoomCopy,
    RoomWatcher,
    TeacherState,
    is_valid_question,
    is_valid_student_name,
    own_question_key,
    own_question_tally_key,
    parse_room_code,
)
from explorer.web.user_messages import locale_from_request


class RoomError(Exception):
    """An error response: HTTP status and message."""

    def __init__(self, status: int, sentence: str):
        super().__init__(sentence)
        self.status, self.sentence = status, sentence


def room_not_found_error() -> RoomError:
    """Return the error for an unknown room."""
    return RoomError(404, _("There is no room with this code: it was closed, or the code is wrong."))


def room_full_error() -> RoomError:
    """Return the error for a full room."""
    return RoomError(403, _("This room is full."))


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

    def check_open(self, client: str, address: str):
        """Raise RoomError if the client has opened too many rooms in the last hour, else count one more."""
        limits = {("visitor", client): self.rooms, ("address", address): self.rooms * CLIENTS_PER_ADDRESS}
        if seconds := self._opened.acquire(limits):
            raise RoomError(
                429,
                _(
                    "Limit reached ({most:g} rooms per hour). Open the next room in {minutes} min.",
                    most=self.rooms,
                    minutes=-(-seconds // 60),
                ),
            )

    def check_lookup(self, address: str):
        """Raise RoomError if the address has requested too many rooms that do not exist."""
        if seconds := self._missed.seconds_until_free({address: MAX_MISSES_PER_MINUTE}):
            raise RoomError(
                429,
                _("Too many requests for rooms that do not exist. Try again in {seconds} s.", seconds=seconds),
            )

    def count_miss(self, address: str):
        """Count an attempt with a wrong code from an address."""
        self._missed.acquire({address: MAX_MISSES_PER_MINUTE})


JsonBody = Mapping[str, Any]


class RoomRequest(TypedDict):
    """Body of any request: optionally the client's locale."""

    __pydantic_config__ = STRICT

    lang: NotRequired[str]


class TeacherRequest(RoomRequest):
    """Body of a teacher's request, with the room's key."""

    code: str
    key: str


class StudentRequest(RoomRequest):
    """Body of a request by a student who has joined or is about to."""

    code: str
    student: str


class TeacherWaitRequest(TeacherRequest):
    """Teacher's request for changes since the response with the tag `seen`."""

    seen: NotRequired[str]


class StudentWaitRequest(StudentRequest):
    """Student's request for changes since the response with the tag `seen`."""

    seen: NotRequired[str]


class TeacherStateRequest(TeacherRequest):
    """Teacher's request to set the state that the class follows."""

    leads: NotRequired[bool]
    state: NotRequired[State | None]
    lesson: NotRequired[str | None]
    step: NotRequired[Index | None]
    held_from: NotRequired[Index]
    question: NotRequired[ClassQuestion | None]


class ReplyRequest(StudentRequest):
    """Student's reply to a question; null withdraws it.

    Without a lesson ("") it is the teacher's own question, and `step` its number.
    """

    lesson: str
    step: Index
    reply: str | None


OPEN, LEAD, REPLY = TypeAdapter(RoomRequest), TypeAdapter(TeacherStateRequest), TypeAdapter(ReplyRequest)
CLOSE, LEAVE = TypeAdapter(TeacherRequest), TypeAdapter(StudentRequest)
TEACHER_WAITS, STUDENT_WAITS = TypeAdapter(TeacherWaitRequest), TypeAdapter(StudentWaitRequest)


def client_address(request: Request) -> str:
    """Return the address of a request's client; "" if unknown."""
    return request.client.host if request.client else ""


async def read_json_body(request: Request, max_bytes: int) -> JsonBody:
    """Return the JSON object in a request's body.

    Raises:
        RoomError: it is no JSON object, or has more than `max_bytes`.
    """
    if not request.headers.get("content-type", "").startswith("application/json"):
        raise RoomError(415, _("Send a JSON object, as Content-Type: application/json."))
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > max_bytes:
            raise RoomError(413, _("A request has at most {most:,} bytes.", most=max_bytes))
    try:
        payload = parse_json(body)
    except UserError as error:
        raise RoomError(422, str(error)) from None
    if not isinstance(payload, dict):
        raise RoomError(422, _("Send a JSON object, as Content-Type: application/json."))
    return payload


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
MAX_FIELDS, MAX_FIELD_NAME_CHARACTERS = 120, 40


def parse_teacher_state(payload: Any) -> dict[str, Any]:
    """Return the page's state that students follow: texts, numbers and lists of integers by name.

    Raises:
        RoomError: it is no state.
    """
    if not isinstance(payload, Mapping) or not payload.get("checkpoint") or len(payload) > MAX_FIELDS:
        raise RoomError(422, _("“state” must be the state of the page."))
    state = {name: value for name, value in payload.items() if name not in STUDENT_FIELDS}
    if not all(len(name) <= MAX_FIELD_NAME_CHARACTERS and is_simple_value(value) for name, value in state.items()):
        raise RoomError(422, _("“state” must be the state of the page."))
    return state


def is_simple_value(value: Any) -> bool:
    """Return whether a value is text, a number or a list of integers."""
    return isinstance(value, str | int | float) or (
        isinstance(value, list) and all(isinstance(one, int) for one in value)
    )


LONG_POLL_S = 20.0  # maximum wait of a long poll: proxies close idle connections
MIN_RENEW_INTERVAL_S = 60.0  # seconds between two of the teacher's signs that are kept
MAX_STATE_BYTES, MAX_BODY_BYTES = 200_000, 2000  # bytes of what a teacher shows, and of all else


class RoomRoutes:
    """ASGI app for requests below `/rooms/`.

    Args:
        store: where the rooms are.
        lesson_library: lessons, whose questions students reply to.
        limits: of each user.
    """

    def __init__(self, store: KeyValueStore, lesson_library: LessonLibrary, limits: UserLimits):
        self.watcher, self.lesson_library, self.limits = RoomWatcher(store), lesson_library, RoomRateLimits(limits)
        self.handlers: dict[str, tuple[Callable[[JsonBody, Request], Awaitable[Any]], TypeAdapter]] = {
            "open": (self.open, OPEN),
            "next": (self.next, STUDENT_WAITS),
            "lead": (self.set_teacher_state, LEAD),
            "reply": (self.reply, REPLY),
            "leave": (self.leave, LEAVE),
            "close": (self.close, CLOSE),
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send):
        request = Request(scope, receive)
        with use_locale(locale_from_request(scope)):
            response = await self._dispatch(request)
        response.headers["Cache-Control"] = "no-store"
        await response(scope, receive, send)

    async def _dispatch(self, request: Request) -> Response:
        name = request.scope["path"].rpartition("/")[2]
        try:
            if request.method != "POST" or name not in self.handlers:
                raise RoomError(404, _("Not found."))
            payload = await read_json_body(request, MAX_STATE_BYTES if name == "lead" else MAX_BODY_BYTES)
            with use_locale(
                negotiate_locale(payload["lang"]) if "lang" in payload else locale_from_request(request.scope)
            ):
                handler, types = self.handlers[name]
                check_object(TEACHER_WAITS if name == "next" and "key" in payload else types, payload)
                answer = await handler(payload, request)
            return (
                Response(answer, media_type="application/json") if isinstance(answer, bytes) else JSONResponse(answer)
            )
        except RoomError as refusal:
            return JSONResponse({"detail": refusal.sentence}, refusal.status)
        except UserError as error:
            return JSONResponse({"detail": str(error)}, 422)
        except StoreError:
            return JSONResponse({"detail": _("The rooms cannot be reached just now: try again in a while.")}, 503)

    async def open(self, payload: JsonBody, request: Request) -> dict[str, str]:
        """Open a room, and return its `code` and its teacher's `key`."""
        self.limits.check_open(request.headers.get(CLIENT_HEADER, "")[:MAX_NAME_CHARACTERS], client_address(request))
        code_and_key = await self.watcher.run_store_call(self.watcher.room_store.open)
        if code_and_key is None:
            raise RoomError(429, _("Too many rooms are open. Try again later."))
        return dict(zip(("code", "key"), code_and_key, strict=True))

    async def next(self, payload: JsonBody, request: Request) -> bytes | dict[str, str]:
        """Return the room's next response, once its tag differs from `seen`."""
        is_teacher = "key" in payload
        room = await (
            self._require_teacher(payload, request) if is_teacher else self._require_student(payload, request)
        )
        seen_tag, student = str(payload.get("seen", "")), payload.get("student")
        if is_teacher:
            await self._renew(room)
        else:
            room.join(student)
        room.waiting += 1
        try:
            answer = await await_until_disconnect(request, room.wait_for_change(is_teacher, seen_tag, LONG_POLL_S))
        finally:
            room.waiting, room.left_at = room.waiting - 1, time.monotonic()
            if not is_teacher:
                room.leave(student)
        return {"tag": seen_tag} if answer is None else answer

    async def set_teacher_state(self, payload: JsonBody, request: Request) -> dict[str, Any]:
        """Set the teacher's state: `leads`, `state`, counted `lesson` and `step`, `held_from` and own `question`."""
        room = await self._require_teacher(payload, request)
        leads, lesson, step = payload.get("leads") is True, payload.get("lesson"), parse_index(payload.get("step")) or 0
        state = parse_teacher_state(payload.get("state")) if leads else None
        is_known_lesson = isinstance(lesson, str) and lesson in await self._lessons()
        if (question := payload.get("question")) and not is_valid_question(question):
            raise RoomError(422, _("A question has text, and two to four different answers or none."))
        await self.watcher.run_store_call(
            self.watcher.room_store.set_teacher_state,
            room.code,
            TeacherState(
                leads,
                state,
                *((lesson, step, payload.get("held_from", 0)) if is_known_lesson else ("", 0, 0)),
                question,
            ),
        )
        await self._renew(room)
        return {}

    async def reply(self, payload: JsonBody, request: Request) -> dict[str, Any]:
        """Store a student's `reply` to the question of a `step` of the room's `lesson`, or to the teacher's own."""
        room = await self._require_student(payload, request)
        student, reply = payload["student"], payload["reply"]
        if student not in room.present_until:
            raise RoomError(403, _("Join the room first."))
        question_name, tally_key = await self._question(room, payload["lesson"], payload["step"])
        counted_reply = tally_key(reply) if reply is not None and len(reply) <= MAX_REPLY_CHARS else None
        if counted_reply is None and reply is not None:
            raise RoomError(422, _("This reply does not fit the question."))
        room_store = self.watcher.room_store

        def put() -> bool:
            others = room_store.students_with_reply(room.code, question_name) if reply is not None else []
            if student not in others and len(others) >= self.limits.people:
                return False
            room_store.reply(room.code, question_name, student, counted_reply)
            return True

        if not await self.watcher.run_store_call(put):
            raise room_full_error()
        return {}

    async def _question(self, room: LocalRoomCopy, lesson: str, step: int) -> tuple[str, Callable[[str], str | None]]:
        """Return the key of a room's question in the store, and its function from reply to tally key.

        Raises:
            RoomError: the class has another lesson or question, or the step has none.
        """
        if not lesson:
            own = room.teacher_state.question
            if own is None or own["number"] != step:
                raise RoomError(409, _("This question is over."))
            return own_question_key(own), partial(own_question_tally_key, own)
        if lesson != room.teacher_state.lesson:
            raise RoomError(409, _("The class is in another lesson."))
        steps = (await self._lessons())[lesson].steps
        question = steps[step - 1].question if 1 <= step <= len(steps) else None
        if question is None:
            raise RoomError(422, _("There is no question in this step."))
        return f"{lesson}:{step}", question.tally_key

    async def leave(self, payload: JsonBody, request: Request) -> dict[str, Any]:
        """Mark a student as absent."""
        room = self.watcher.get_local(parse_room_code(payload.get("code")) or "")
        if room and is_valid_student_name(payload.get("student")):
            room.leave(payload["student"], at_once=True)
        return {}

    async def close(self, payload: JsonBody, request: Request) -> dict[str, Any]:
        """Delete the room and its contents."""
        room = await self._require_teacher(payload, request)
        await self.watcher.run_store_call(self.watcher.room_store.close, room.code)
        room.close()  # nobody here need wait for the news
        return {}

    async def _require_student(self, payload: JsonBody, request: Request) -> LocalRoomCopy:
        """Return the room of a student's request.

        Raises:
            RoomError: there is no such room, it is full, or the student's name is invalid.
        """
        student = payload.get("student")
        if not is_valid_student_name(student):
            raise RoomError(422, _("A student has a name of 32 digits from 0 to f."))
        code, address = parse_room_code(payload.get("code")) or "", client_address(request)
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

    async def _require_teacher(self, payload: JsonBody, request: Request) -> LocalRoomCopy:
        """Return the room of a teacher's request.

        Raises:
            RoomError: there is no such room, or the key is another's.
        """
        room = await self.watcher.get_or_follow(parse_room_code(payload.get("code")) or "")
        if room and await self.watcher.run_store_call(
            self.watcher.room_store.is_teacher, room.code, payload.get("key")
        ):
            return room
        self.limits.check_lookup(
            client_address(request)
        )  # whoever has a key goes on, however often others guess a code
        self.limits.count_miss(client_address(request))
        raise (
            RoomError(403, _("Only the teacher who opened this room can do that.")) if room else room_not_found_error()
        )

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
