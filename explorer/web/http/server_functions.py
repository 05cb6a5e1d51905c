"""Functions that the page's script calls over HTTP, bypassing Gradio's queue."""

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

from explorer.tracing.request_budget import RequestBudget, RequestCancelledError
from explorer.translations import use_locale
from explorer.web.errors import USER_ERRORS, user_message
from explorer.web.http.argument_types import argument_types
from explorer.web.http.clients import client_id
from explorer.web.http.turns import NO_DELAY_S, current_client, priority_delay_s, time_sliced
from explorer.web.request_locale import locale_from_state

LOG = logging.getLogger(__name__)
MAX_TOKENS, MAX_SECONDS = 8192, 10.0  # of one answer
POLL_INTERVAL_S = 0.25  # seconds between two looks whether anybody waits
UNPROCESSABLE, SERVER_ERROR, CLIENT_CLOSED_REQUEST = 422, 500, 499  # HTTP's statuses; the last is nginx's


def server_function(
    function: Callable, priority: Callable[..., float] = lambda *arguments: NO_DELAY_S, name: str = ""
) -> Callable:
    """Return a function as Gradio calls it: with the unvalidated list of its arguments, and the request.

    It answers with the function's result; with status 422 and a sentence for a user's mistake; with 500 and a
    sentence that names an entry of the log for an internal error. It is cancelled when the client disconnects.

    Args:
        function: of JSON values; returns a JSON value, or JSON as bytes.
        priority: the arguments -> priority delay in seconds (see `turns`).
        name: by which the browser calls it; the function's own by default.
    """
    types = argument_types(function)

    async def endpoint(arguments: Any, request: gr.Request) -> Response:
        start_time, budget = time.monotonic(), RequestBudget(MAX_TOKENS, MAX_SECONDS)

        def run() -> Response:
            with time_sliced(budget):
                answer = function(*arguments)
            return Response(answer if isinstance(answer, bytes) else as_json(answer), media_type="application/json")

        watcher = asyncio.create_task(cancel_on_disconnect(request, budget))
        try:
            with use_locale(locale_from_state(arguments if isinstance(arguments, list) else ())), errors_as_responses():
                types.check(arguments)
                priority_delay_s.set(priority(*arguments))
                current_client.set(client_id(request))
                return await anyio.to_thread.run_sync(run, limiter=request.app.get_blocks().limiter)
        finally:
            watcher.cancel()
            LOG.debug("%s: %d tokens, %.3f s", function.__name__, budget.tokens, time.monotonic() - start_time)

    endpoint.__name__, endpoint.types = name or function.__name__, types
    return endpoint


def as_json(value: Any) -> bytes:
    """Return a value as JSON.

    Called on the computing thread: on the server's thread all other clients would wait for it.

    Raises:
        ValueError: a number is not finite.
    """
    return json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode()


@contextmanager
def errors_as_responses() -> Iterator[None]:
    """Turn errors into HTTP responses."""
    try:
        yield
    except RequestCancelledError:
        raise HTTPException(CLIENT_CLOSED_REQUEST) from None
    except USER_ERRORS as error:
        raise HTTPException(UNPROCESSABLE, user_message(error)) from None
    except Exception as error:
        raise HTTPException(SERVER_ERROR, user_message(error)) from None


async def cancel_on_disconnect(request: gr.Request, budget: RequestBudget):
    while not budget.is_cancelled:
        await asyncio.sleep(POLL_INTERVAL_S)
        budget.is_cancelled = await request.is_disconnected()
