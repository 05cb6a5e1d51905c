"""Identification of clients, and their position in the queue."""

import time
from collections.abc import Iterable
from typing import Any

import gradio as gr
from fastapi import HTTPException
from gradio.queueing import EventQueue
from starlette.responses import Response

from explorer.translations import _
from explorer.web.http.turns import SHOW_QUEUE_AFTER_S

CLIENT_HEADER = "x-visitor"  # with a name that the page made up when it was opened (static/visitor.js)
MAX_NAME_CHARACTERS = 64  # characters


def client_id(request: gr.Request | None) -> str:
    """Return a page's random name, or a program's address; "" if neither is known."""
    if request is None:
        return ""
    client = getattr(request, "client", None)
    return request.headers.get(CLIENT_HEADER, "")[:MAX_NAME_CHARACTERS] or getattr(client, "host", None) or ""


async def people_before(arguments: Any, request: gr.Request) -> Response:
    """Return the number of clients served before this one as JSON; null if it is not waiting, or not for long.

    This takes no slot of the scheduler.
    """
    if arguments != []:
        raise HTTPException(422, _("This takes no arguments: send an empty list."))
    blocks, name = request.app.get_blocks(), client_id(request)
    position = blocks.limiter.queue_position(name)
    if position is None:
        position = event_queue_position(blocks._queue.event_queue_per_concurrency_id.values(), name)
    return Response("null" if position is None else str(position), media_type="application/json")


def event_queue_position(queues: Iterable[EventQueue], name: str) -> int | None:
    """Return a client's position in Gradio's queues; None if it is not there, or not for long."""
    for queue in queues:
        order = [client_id(event.request) for event in queue.queue]
        if name in order and time.monotonic() - queue.queue[order.index(name)].enqueue_time >= SHOW_QUEUE_AFTER_S:
            return len(set(order[: order.index(name)]))
    return None
