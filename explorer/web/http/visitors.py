"""Who asks, as far as that is known, and how many come before."""

import time
from collections.abc import Iterable
from typing import Any

import gradio as gr
from fastapi import HTTPException
from gradio.queueing import EventQueue
from starlette.responses import Response

from explorer.language import _
from explorer.web.http.turns import TOLD_AFTER

HEADER = "x-visitor"  # with a name that the page made up when it was opened (static/visitor.js)
MOST_NAME = 64  # characters


def visitor_of(request: gr.Request | None) -> str:
    """A page by its name, a program by the address that it comes from; "" where nobody knows."""
    if request is None:
        return ""
    client = getattr(request, "client", None)
    return request.headers.get(HEADER, "")[:MOST_NAME] or getattr(client, "host", None) or ""


async def people_before(given: Any, request: gr.Request) -> Response:
    """How many people are served before the one who asks this, as JSON: null where they do not wait, or not for long.

    It takes no turn itself.
    """
    if given != []:
        raise HTTPException(422, _("This takes no arguments: send an empty list."))
    blocks, name = request.app.get_blocks(), visitor_of(request)
    before = blocks.limiter.before(name)
    if before is None:
        before = events_before(blocks._queue.event_queue_per_concurrency_id.values(), name)
    return Response("null" if before is None else str(before), media_type="application/json")


def events_before(queues: Iterable[EventQueue], name: str) -> int | None:
    """The same of events that Gradio has not begun to answer, as of each button few texts are written at once."""
    for queue in queues:
        order = [visitor_of(event.request) for event in queue.queue]
        if name in order and time.monotonic() - queue.queue[order.index(name)].enqueue_time >= TOLD_AFTER:
            return len(set(order[: order.index(name)]))
    return None
