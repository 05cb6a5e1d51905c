"""What a request for a room says, and whether whoever sent it still waits."""

import asyncio
import json
from collections.abc import Awaitable, Mapping
from typing import Any

from starlette.requests import Request

from explorer.language import _
from explorer.web.rooms.refusals import Refusal

Asked = Mapping[str, Any]


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
        given = json.loads(body, parse_constant=no_number)
    except (ValueError, RecursionError):
        given = None
    if not isinstance(given, dict):
        raise Refusal(422, _("A room is asked in JSON."))
    return given


def no_number(name: str):
    raise ValueError(name)  # which JSON has not, and browsers cannot read


async def unless_gone(request: Request, answer: Awaitable[bytes | None]) -> bytes | None:
    """An answer; None at once where who asked has left."""
    answering, leaving = asyncio.ensure_future(answer), asyncio.ensure_future(request.receive())
    try:
        await asyncio.wait((answering, leaving), return_when=asyncio.FIRST_COMPLETED)
        return answering.result() if answering.done() else None
    finally:
        answering.cancel()
        leaving.cancel()
