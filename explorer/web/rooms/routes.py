"""HTTP routes of rooms: POST to `/rooms/ACTION` with a JSON object.

A client identifies itself by a student's name or the teacher's key in the body, not by a cookie, so that another
site's page has no credentials; only JSON is accepted, which such a page cannot send without a CORS preflight.
"""

import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from pydantic import TypeAdapter
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from explorer.lessons.course.lesson import LessonLibrary
from explorer.state.errors import UserError
from explorer.state.generation_settings import UserLimits
from explorer.state.selection import MAX_REPLY_CHARS, parse_index
from explorer.translations import _, negotiate_locale, use_locale
from explorer.web.middleware.argument_types import check_object
from explorer.web.middleware.clients import CLIENT_HEADER, MAX_NAME_CHARACTERS
from explorer.web.request_locale import locale_from_request
from explorer.web.rooms.codes import is_valid_student_name, parse_code
from explorer.web.rooms.errors import RoomError, room_full, room_not_found
from explorer.web.rooms.limits import RoomLimits
from explorer.web.rooms.local_room import LocalRoom
from explorer.web.rooms.request_bodies import (
    CLOSE,
    LEAD,
    LEAVE,
    OPEN,
    REPLY,
    STUDENT_WAITS,
    TEACHER_WAITS,
    JsonBody,
    client_address,
    read_json_body,
    until_disconnect,
)
from explorer.web.rooms.room_hub import RoomHub
from explorer.web.rooms.room_store import TeacherState
from explorer.web.rooms.teacher_state import parse_teacher_state
from explorer.web.stores import Store, StoreError

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

    def __init__(self, store: Store, lesson_library: LessonLibrary, limits: UserLimits):
        self.hub, self.lesson_library, self.limits = RoomHub(store), lesson_library, RoomLimits(limits)
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
        code_and_key = await self.hub.run_store_call(self.hub.room_store.open)
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
            answer = await until_disconnect(request, room.wait_for_change(is_teacher, seen_tag, LONG_POLL_S))
        finally:
            room.waiting, room.left_at = room.waiting - 1, time.monotonic()
            if not is_teacher:
                room.leave(student)
        return {"tag": seen_tag} if answer is None else answer

    async def set_teacher_state(self, payload: JsonBody, request: Request) -> dict[str, Any]:
        """Set the teacher's state: `leads`, `state`, and the `lesson` and `step` whose replies are counted."""
        room = await self._require_teacher(payload, request)
        leads, lesson, step = payload.get("leads") is True, payload.get("lesson"), parse_index(payload.get("step")) or 0
        state = parse_teacher_state(payload.get("state")) if leads else None
        is_known_lesson = isinstance(lesson, str) and lesson in await self._lessons()
        await self.hub.run_store_call(
            self.hub.room_store.set_teacher_state,
            room.code,
            TeacherState(leads, state, *((lesson, step) if is_known_lesson else ("", 0))),
        )
        await self._renew(room)
        return {}

    async def reply(self, payload: JsonBody, request: Request) -> dict[str, Any]:
        """Store a student's `reply` to the question of a `step` of the room's `lesson`; null withdraws it."""
        room = await self._require_student(payload, request)
        student, lesson, step, reply = (
            payload.get(question_name) for question_name in ("student", "lesson", "step", "reply")
        )
        if student not in room.present_until:
            raise RoomError(403, _("Join the room first."))
        if not lesson or lesson != room.teacher_state.lesson:
            raise RoomError(409, _("The class goes through another lesson."))
        steps, step_number = (await self._lessons())[lesson].steps, parse_index(step) or 0
        question = steps[step_number - 1].question if 1 <= step_number <= len(steps) else None
        if question is None:
            raise RoomError(422, _("There is no question in this step."))
        counted_reply = question.tally_key(reply) if isinstance(reply, str) and len(reply) <= MAX_REPLY_CHARS else None
        if counted_reply is None and reply is not None:
            raise RoomError(422, _("This is no reply to the question."))
        question_name, room_store = f"{lesson}:{step_number}", self.hub.room_store

        def put() -> bool:
            others = room_store.students_with_reply(room.code, question_name) if reply is not None else []
            if student not in others and len(others) >= self.limits.people:
                return False
            room_store.reply(room.code, question_name, student, counted_reply)
            return True

        if not await self.hub.run_store_call(put):
            raise room_full()
        return {}

    async def leave(self, payload: JsonBody, request: Request) -> dict[str, Any]:
        """Mark a student as absent."""
        room = self.hub.get_local(parse_code(payload.get("code")) or "")
        if room and is_valid_student_name(payload.get("student")):
            room.leave(payload["student"], at_once=True)
        return {}

    async def close(self, payload: JsonBody, request: Request) -> dict[str, Any]:
        """Delete the room and its contents."""
        room = await self._require_teacher(payload, request)
        await self.hub.run_store_call(self.hub.room_store.close, room.code)
        room.close()  # nobody here need wait for the news
        return {}

    async def _require_student(self, payload: JsonBody, request: Request) -> LocalRoom:
        """Return the room of a student's request.

        Raises:
            RoomError: there is no such room, it is full, or the student's name is invalid.
        """
        student = payload.get("student")
        if not is_valid_student_name(student):
            raise RoomError(422, _("A student has a name of 32 digits from 0 to f."))
        code, address = parse_code(payload.get("code")) or "", client_address(request)
        room = self.hub.get_local(code)
        if room and student in room.present_until:
            return room
        self.limits.check_lookup(address)
        room = await self.hub.get_or_follow(code)
        if room is None:
            self.limits.count_miss(address)
            raise room_not_found()
        if student not in room.people and len(room.people) >= self.limits.people:
            raise room_full()
        return room

    async def _require_teacher(self, payload: JsonBody, request: Request) -> LocalRoom:
        """Return the room of a teacher's request.

        Raises:
            RoomError: there is no such room, or the key is another's.
        """
        room = await self.hub.get_or_follow(parse_code(payload.get("code")) or "")
        if room and await self.hub.run_store_call(self.hub.room_store.is_teacher, room.code, payload.get("key")):
            return room
        self.limits.check_lookup(
            client_address(request)
        )  # whoever has a key goes on, however often others guess a code
        self.limits.count_miss(client_address(request))
        raise RoomError(403, _("Only the teacher who opened this room can do that.")) if room else room_not_found()

    async def _renew(self, room: LocalRoom):
        """Record that the teacher is present."""
        now = time.monotonic()
        if now - room.teacher_asked_at > LONG_POLL_S:
            room.to_read.set()  # replies are read for a teacher alone
        room.teacher_asked_at = now
        if now - room.renewed_at > MIN_RENEW_INTERVAL_S:
            room.renewed_at = now
            await self.hub.run_store_call(self.hub.room_store.renew, room.code)

    async def _lessons(self) -> Mapping[str, Any]:
        """Return the lessons, read from their files on first use."""
        return await self.hub.run_store_call(lambda: self.lesson_library.lessons)
