"""What the page's script asks of a room: POST to `/rooms/` and a word, with an object of JSON.

Who asks is told by what they send, a student's name or the teacher's key, and by no cookie, so that another site's page
has nothing to ask with; JSON alone is read, which such a page cannot send unasked.
"""

import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from pydantic import TypeAdapter
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from explorer.language import _, speaking, understood
from explorer.lessons.course.shelf import Shelf
from explorer.state.errors import UserError
from explorer.state.limits import VisitorLimits
from explorer.state.selection import MOST_REPLY, as_index
from explorer.web.http.argument_types import check_object
from explorer.web.http.visitors import HEADER, MOST_NAME
from explorer.web.rooms.asking import (
    CLOSE,
    LEAD,
    LEAVE,
    OPEN,
    REPLY,
    STUDENT_WAITS,
    TEACHER_WAITS,
    Asked,
    address_of,
    read,
    unless_gone,
)
from explorer.web.rooms.codes import code_in, is_student
from explorer.web.rooms.here import Here
from explorer.web.rooms.kept_rooms import Led
from explorer.web.rooms.led_state import state_in
from explorer.web.rooms.limits import RoomLimits
from explorer.web.rooms.refusals import Refusal, full, none_there
from explorer.web.rooms.rooms import Rooms
from explorer.web.shared.store import Store, StoreError
from explorer.web.visitors_language import of_request

WAITS = 20.0  # seconds until an answer that says nothing new: proxies end what is silent for longer
RENEWED = 60.0  # seconds between two of the teacher's signs that are kept
MOST_STATE, MOST_BODY = 200_000, 2000  # bytes of what a teacher shows, and of all else


class RoomRoutes:
    """An app (ASGI) for requests below `/rooms/`.

    Args:
        store: where rooms are.
        shelf: the lessons, whose questions are replied to.
        limits: of what visitors may have.
    """

    def __init__(self, store: Store, shelf: Shelf, limits: VisitorLimits):
        self.rooms, self.shelf, self.limits = Rooms(store), shelf, RoomLimits(limits)
        self.acts: dict[str, tuple[Callable[[Asked, Request], Awaitable[Any]], TypeAdapter]] = {
            "open": (self.open, OPEN),
            "next": (self.next, STUDENT_WAITS),
            "lead": (self.lead, LEAD),
            "reply": (self.reply, REPLY),
            "leave": (self.leave, LEAVE),
            "close": (self.close, CLOSE),
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send):
        request = Request(scope, receive)
        with speaking(of_request(scope)):
            response = await self._answered(request)
        response.headers["Cache-Control"] = "no-store"
        await response(scope, receive, send)

    async def _answered(self, request: Request) -> Response:
        name = request.scope["path"].rpartition("/")[2]
        try:
            if request.method != "POST" or name not in self.acts:
                raise Refusal(404, _("There is no such thing here."))
            given = await read(request, MOST_STATE if name == "lead" else MOST_BODY)
            with speaking(understood(given["lang"]) if "lang" in given else of_request(request.scope)):
                act, types = self.acts[name]
                check_object(TEACHER_WAITS if name == "next" and "key" in given else types, given)
                answer = await act(given, request)
            return (
                Response(answer, media_type="application/json") if isinstance(answer, bytes) else JSONResponse(answer)
            )
        except Refusal as refusal:
            return JSONResponse({"detail": refusal.sentence}, refusal.status)
        except UserError as error:
            return JSONResponse({"detail": str(error)}, 422)
        except StoreError:
            return JSONResponse({"detail": _("The rooms cannot be reached just now: try again in a while.")}, 503)

    async def open(self, given: Asked, request: Request) -> dict[str, str]:
        """A room: its `code` and its teacher's `key`."""
        self.limits.open(request.headers.get(HEADER, "")[:MOST_NAME], address_of(request))
        opened = await self.rooms.asked(self.rooms.kept.open)
        if opened is None:
            raise Refusal(429, _("As many rooms are open here as may be: try again later."))
        return dict(zip(("code", "key"), opened, strict=True))

    async def next(self, given: Asked, request: Request) -> bytes | dict[str, str]:
        """What is to be known in the room, once that is something else than what was `seen`, by its tag."""
        is_teacher = "key" in given
        here = await (self._led_by(given, request) if is_teacher else self._joined(given, request))
        seen, student = str(given.get("seen", "")), given.get("student")
        if is_teacher:
            await self._sign(here)
        else:
            here.come(student)
        here.waiting += 1
        try:
            answer = await unless_gone(request, here.next(is_teacher, seen, WAITS))
        finally:
            here.waiting, here.left_at = here.waiting - 1, time.monotonic()
            if not is_teacher:
                here.go(student)
        return {"tag": seen} if answer is None else answer

    async def lead(self, given: Asked, request: Request) -> dict[str, Any]:
        """What the teacher does: whether it `leads`, its `state`, and the `lesson` and `step` whose replies count."""
        here = await self._led_by(given, request)
        leads, lesson, step = given.get("leads") is True, given.get("lesson"), as_index(given.get("step")) or 0
        state = state_in(given.get("state")) if leads else None
        known = isinstance(lesson, str) and lesson in await self._lessons()
        await self.rooms.asked(
            self.rooms.kept.lead, here.code, Led(leads, state, *((lesson, step) if known else ("", 0)))
        )
        await self._sign(here)
        return {}

    async def reply(self, given: Asked, request: Request) -> dict[str, Any]:
        """A student's `reply` to the question of a `step` of the room's `lesson`; null for none any more."""
        here = await self._joined(given, request)
        student, lesson, step, reply = (given.get(name) for name in ("student", "lesson", "step", "reply"))
        if student not in here.staying:
            raise Refusal(403, _("Join the room first."))
        if not lesson or lesson != here.led.lesson:
            raise Refusal(409, _("The class goes through another lesson."))
        steps, place = (await self._lessons())[lesson].steps, as_index(step) or 0
        question = steps[place - 1].question if 1 <= place <= len(steps) else None
        if question is None:
            raise Refusal(422, _("There is no question in this step."))
        counted = question.counted(reply) if isinstance(reply, str) and len(reply) <= MOST_REPLY else None
        if counted is None and reply is not None:
            raise Refusal(422, _("This is no reply to the question."))
        name, kept = f"{lesson}:{place}", self.rooms.kept

        def put() -> bool:
            others = kept.replied(here.code, name) if reply is not None else []
            if student not in others and len(others) >= self.limits.people:
                return False
            kept.reply(here.code, name, student, counted)
            return True

        if not await self.rooms.asked(put):
            raise full()
        return {}

    async def leave(self, given: Asked, request: Request) -> dict[str, Any]:
        """A student is no longer there."""
        here = self.rooms.known(code_in(given.get("code")) or "")
        if here and is_student(given.get("student")):
            here.go(given["student"], at_once=True)
        return {}

    async def close(self, given: Asked, request: Request) -> dict[str, Any]:
        """The room, and all that is kept of it."""
        here = await self._led_by(given, request)
        await self.rooms.asked(self.rooms.kept.close, here.code)
        here.close()  # nobody here need wait for the news
        return {}

    async def _joined(self, given: Asked, request: Request) -> Here:
        """The room that a student asks about; Refusal where there is none, or none for them."""
        student = given.get("student")
        if not is_student(student):
            raise Refusal(422, _("A student has a name of 32 digits from 0 to f."))
        code, address = code_in(given.get("code")) or "", address_of(request)
        here = self.rooms.known(code)
        if here and student in here.staying:
            return here
        self.limits.may_look(address)
        here = await self.rooms.here(code)
        if here is None:
            self.limits.missed(address)
            raise none_there()
        if student not in here.people and len(here.people) >= self.limits.people:
            raise full()
        return here

    async def _led_by(self, given: Asked, request: Request) -> Here:
        """The room that its teacher asks about."""
        here = await self.rooms.here(code_in(given.get("code")) or "")
        if here and await self.rooms.asked(self.rooms.kept.is_teacher, here.code, given.get("key")):
            return here
        self.limits.may_look(address_of(request))  # whoever has a key goes on, however often others guess a code
        self.limits.missed(address_of(request))
        raise Refusal(403, _("This is another’s room.")) if here else none_there()

    async def _sign(self, here: Here):
        """The teacher is there."""
        now = time.monotonic()
        if now - here.teacher_asked_at > WAITS:
            here.to_read.set()  # replies are read for a teacher alone
        here.teacher_asked_at = now
        if now - here.renewed_at > RENEWED:
            here.renewed_at = now
            await self.rooms.asked(self.rooms.kept.renew, here.code)

    async def _lessons(self) -> Mapping[str, Any]:
        """Read from their files when they are first asked for."""
        return await self.rooms.asked(lambda: self.shelf.lessons)
