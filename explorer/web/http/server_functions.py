"""Functions that the page's script calls over HTTP, past Gradio's queue."""

import asyncio
import json
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import anyio.to_thread
import gradio as gr
from fastapi import HTTPException
from starlette.responses import Response

from explorer.language import speaking
from explorer.tracing.work import GivenUp, Work
from explorer.web.errors import VISITORS, told
from explorer.web.http.argument_types import argument_types
from explorer.web.http.turns import AT_ONCE, in_turn, patience, visitor
from explorer.web.http.visitors import visitor_of
from explorer.web.visitors_language import of_state

LOG = logging.getLogger(__name__)
MOST_TOKENS, MOST_SECONDS = 8192, 10.0  # of one answer
LOOKING = 0.25  # seconds between two looks whether anybody waits
REFUSED, BROKEN, NOBODY_WAITS = 422, 500, 499  # HTTP's statuses; the last is nginx's


def server_function(
    function: Callable, waits: Callable[..., float] = lambda *arguments: AT_ONCE, name: str = ""
) -> Callable:
    """The function as Gradio calls it: with what anybody may have sent in place of a list of its arguments, which are
    of the types that its signature says.

    It answers with its result; with a status of 422 and a sentence where the visitor made a mistake; with 500 and a
    sentence that names an entry of the log where we did. It is left unfinished when its visitor leaves.

    Args:
        function: of values; its result is what JSON has, or JSON already, as bytes.
        name: by which the browser asks for it; its own where none is given.
        waits: the arguments -> with which patience it waits for its turn (see `turns`).
    """
    types = argument_types(function)

    async def called(given: Any, request: gr.Request) -> Response:
        began, work = time.monotonic(), Work(MOST_TOKENS, MOST_SECONDS)

        def run() -> Response:
            with in_turn(work):
                answer = function(*given)
            return Response(answer if isinstance(answer, bytes) else as_json(answer), media_type="application/json")

        watching = asyncio.create_task(watch(request, work))
        try:
            with speaking(of_state(given if isinstance(given, list) else ())), answered():
                types.check(given)
                patience.set(waits(*given))
                visitor.set(visitor_of(request))
                return await anyio.to_thread.run_sync(run, limiter=request.app.get_blocks().limiter)
        finally:
            watching.cancel()
            LOG.debug("%s: %d tokens, %.3f s", function.__name__, work.tokens, time.monotonic() - began)

    called.__name__, called.types = name or function.__name__, types
    return called


def as_json(value: Any) -> bytes:
    """Made on the thread that computes: of another's the server's other visitors would wait for it, too.

    ValueError where a number is none that JSON has.
    """
    return json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode()


@contextmanager
def answered() -> Iterator[None]:
    """What is raised as an answer of HTTP."""
    try:
        yield
    except GivenUp:
        raise HTTPException(NOBODY_WAITS) from None
    except VISITORS as error:
        raise HTTPException(REFUSED, told(error)) from None
    except Exception as error:
        raise HTTPException(BROKEN, told(error)) from None


async def watch(request: gr.Request, work: Work):
    while not work.given_up:
        await asyncio.sleep(LOOKING)
        work.given_up = await request.is_disconnected()
