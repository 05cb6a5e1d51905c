"""Bodies of requests about rooms, and detection of clients that disconnect."""

import asyncio
from collections.abc import Awaitable, Mapping
from typing import Any

from pydantic import TypeAdapter
from starlette.requests import Request
from typing_extensions import NotRequired, TypedDict

from explorer.state.errors import UserError
from explorer.translations import _
from explorer.web.middleware.argument_types import STRICT
from explorer.web.middleware.request_types import Index, State
from explorer.web.middleware.strict_json import parse_json
from explorer.web.rooms.errors import RoomError

JsonBody = Mapping[str, Any]


class LocalizedRequest(TypedDict):
    """Body of any request: optionally the client's locale."""

    __pydantic_config__ = STRICT

    lang: NotRequired[str]


class TeacherRequest(LocalizedRequest):
    """Body of a teacher's request, with the room's key."""

    code: str
    key: str


class StudentRequest(LocalizedRequest):
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


class ReplyRequest(StudentRequest):
    """Student's reply to a question; null withdraws it."""

    lesson: str
    step: Index
    reply: str | None


OPEN, LEAD, REPLY = TypeAdapter(LocalizedRequest), TypeAdapter(TeacherStateRequest), TypeAdapter(ReplyRequest)
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


async def until_disconnect(request: Request, answer: Awaitable[bytes | None]) -> bytes | None:
    """Return an answer; None as soon as the client disconnects."""
    answering, leaving = asyncio.ensure_future(answer), asyncio.ensure_future(request.receive())
    try:
        await asyncio.wait((answering, leaving), return_when=asyncio.FIRST_COMPLETED)
        return answering.result() if answering.done() else None
    finally:
        answering.cancel()
        leaving.cancel()
