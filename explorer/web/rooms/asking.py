"""What a request for a room says, and whether whoever sent it still waits."""

import asyncio
from collections.abc import Awaitable, Mapping
from typing import Any

from pydantic import TypeAdapter
from starlette.requests import Request
from typing_extensions import NotRequired, TypedDict

from explorer.language import _
from explorer.state.errors import UserError
from explorer.web.http.argument_types import STRICT
from explorer.web.http.request_types import Index, State
from explorer.web.http.strict_json import parse_json
from explorer.web.rooms.refusals import Refusal

Asked = Mapping[str, Any]


class InLanguage(TypedDict):
    """What every request may say: the language of who asks."""

    __pydantic_config__ = STRICT

    lang: NotRequired[str]


class OfTeacher(InLanguage):
    """Of the one who has the room's key."""

    code: str
    key: str


class OfStudent(InLanguage):
    """Of one who has joined, or is about to."""

    code: str
    student: str


class TeacherWaits(OfTeacher):
    """For what is new, after the answer with the tag `seen`."""

    seen: NotRequired[str]


class StudentWaits(OfStudent):
    """Likewise."""

    seen: NotRequired[str]


class Lead(OfTeacher):
    """What the teacher does."""

    leads: NotRequired[bool]
    state: NotRequired[State | None]
    lesson: NotRequired[str | None]
    step: NotRequired[Index | None]


class Reply(OfStudent):
    """To a question; null takes it back."""

    lesson: str
    step: Index
    reply: str | None


OPEN, LEAD, REPLY = TypeAdapter(InLanguage), TypeAdapter(Lead), TypeAdapter(Reply)
CLOSE, LEAVE = TypeAdapter(OfTeacher), TypeAdapter(OfStudent)
TEACHER_WAITS, STUDENT_WAITS = TypeAdapter(TeacherWaits), TypeAdapter(StudentWaits)


def address_of(request: Request) -> str:
    return request.client.host if request.client else ""


async def read(request: Request, most: int) -> Asked:
    """The object that was sent; Refusal where none was, or too much."""
    if not request.headers.get("content-type", "").startswith("application/json"):
        raise Refusal(415, _("A room is asked in JSON."))
    body = b""
    async for piece in request.stream():
        body += piece
        if len(body) > most:
            raise Refusal(413, _("A request has at most {most:,} bytes.", most=most))
    try:
        given = parse_json(body)
    except UserError as error:
        raise Refusal(422, str(error)) from None
    if not isinstance(given, dict):
        raise Refusal(422, _("A room is asked in JSON."))
    return given


async def unless_gone(request: Request, answer: Awaitable[bytes | None]) -> bytes | None:
    """An answer; None at once where who asked has left."""
    answering, leaving = asyncio.ensure_future(answer), asyncio.ensure_future(request.receive())
    try:
        await asyncio.wait((answering, leaving), return_when=asyncio.FIRST_COMPLETED)
        return answering.result() if answering.done() else None
    finally:
        answering.cancel()
        leaving.cancel()
