"""Whoever leaves while a text is written to them has nothing more written."""

import time

import httpx
import pytest

from explorer.web.events import generation_events
from explorer.web.page import Page

A_TOKEN, TOKENS = 0.1, 200  # seconds; so many that it would take much longer than the test


@pytest.fixture
def written(monkeypatch) -> list[float]:
    """When each token was computed."""
    times, generate = [], generation_events.generate

    def slowly(*given, **how):
        for step in generate(*given, **how):
            time.sleep(A_TOKEN)
            times.append(time.monotonic())
            yield step

    monkeypatch.setattr(generation_events, "generate", slowly)
    return times


@pytest.fixture
def served(library):
    blocks = Page(library, "rope").launch(prevent_thread_lock=True, quiet=True)
    yield blocks
    blocks.close(verbose=False)


@pytest.mark.exhaustive
def test_who_leaves_has_nothing_more_written(served, library, written):
    (generate,) = (i for i, event in served.fns.items() if event.name == "on_generate")
    prompt = library.model("rope")[1].encode("the fox asked the owl")
    state = {"checkpoint": "rope", "prompt": prompt, "generated": [], "max_new_tokens": TOKENS}
    with httpx.Client(base_url=served.local_api_url, timeout=60) as client:
        asked = {"fn_index": generate, "data": [state], "session_hash": "leaver"}
        client.post("queue/join", json=asked).raise_for_status()
        with client.stream("GET", "queue/data", params={"session_hash": "leaver"}) as events:
            next(line for line in events.iter_lines() if "process_generating" in line)
    left = time.monotonic()
    while time.monotonic() < left + 3 or (written and time.monotonic() < written[-1] + 10 * A_TOKEN):
        assert time.monotonic() < left + 15, "it is still being written"
        time.sleep(A_TOKEN)
    assert 0 < len(written) < TOKENS
    assert written[-1] - left < 1.0
    assert served.limiter.free == served.limiter.places  # nor is a place kept
