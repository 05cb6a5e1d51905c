"""Client ids, and the number of clients ahead in the queues."""

import asyncio
import time
from types import SimpleNamespace

import pytest

from explorer.web.http.clients import CLIENT_HEADER, client_id, event_queue_position, people_before
from explorer.web.http.turns import SHOW_QUEUE_AFTER_S


def request(name: str = "", host: str | None = "10.0.0.7", **more) -> SimpleNamespace:
    headers = {CLIENT_HEADER: name} if name else {}
    return SimpleNamespace(headers=headers, client=host and SimpleNamespace(host=host), **more)


@pytest.mark.parametrize(
    ("asked", "who"),
    [
        (request("page"), "page"),
        (request("x" * 1000), "x" * 64),
        (request(), "10.0.0.7"),
        (request(host=None), ""),
        (None, ""),
    ],
)
def test_a_page_has_a_name_and_a_program_an_address(asked, who):
    assert client_id(asked) == who


def queue(*names: str, since: float = SHOW_QUEUE_AFTER_S) -> SimpleNamespace:
    """Return an event queue as Gradio's, with one event for each client name."""
    return SimpleNamespace(
        queue=[SimpleNamespace(request=request(name), enqueue_time=time.monotonic() - since) for name in names]
    )


def test_those_before_in_gradios_queues_are_counted_once_each():
    queues = [queue("d"), queue("a", "a", "b", "c", "a")]
    assert [event_queue_position(queues, name) for name in "abcd"] == [0, 1, 2, 0]
    assert event_queue_position(queues, "nobody") is None
    assert event_queue_position([queue("a", "b", since=0)], "b") is None


@pytest.mark.parametrize(("waits", "told"), [(4, b"4"), (0, b"0"), (None, b"1")])
def test_the_page_is_told_in_json(waits, told):
    limiter = SimpleNamespace(queue_position=lambda name: waits)
    gradios = SimpleNamespace(event_queue_per_concurrency_id={"x": queue("other", "me")})
    blocks = SimpleNamespace(limiter=limiter, _queue=gradios)
    page_request = request("me", app=SimpleNamespace(get_blocks=lambda: blocks))
    assert asyncio.run(people_before([], page_request)).body == told
