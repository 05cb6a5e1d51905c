"""Generation stops when the client disconnects."""

import time

import httpx
import pytest

from explorer.web.actions import generation_actions
from explorer.web.page import Page

SECONDS_PER_TOKEN, TOKENS = 0.1, 200  # so many that all would take much longer than the test


@pytest.fixture
def token_times(monkeypatch) -> list[float]:
    """Times at which the tokens were computed, on the monotonic clock."""
    times, generate = [], generation_actions.generate

    def generate_slowly(*args, **kwargs):
        for step in generate(*args, **kwargs):
            time.sleep(SECONDS_PER_TOKEN)
            times.append(time.monotonic())
            yield step

    monkeypatch.setattr(generation_actions, "generate", generate_slowly)
    return times


@pytest.fixture
def served_app(library):
    blocks = Page(library, "rope").launch(prevent_thread_lock=True, quiet=True)
    yield blocks
    blocks.close(verbose=False)


@pytest.mark.exhaustive
def test_generation_stops_after_client_disconnects(served_app, library, token_times):
    (generate,) = (i for i, event in served_app.fns.items() if event.api_name == "page_generate")
    prompt = library.model("rope")[1].encode("the fox asked the owl")
    state = {"checkpoint": "rope", "prompt": prompt, "generated": [], "max_new_tokens": TOKENS}
    with httpx.Client(base_url=served_app.local_api_url, timeout=60) as client:
        request = {"fn_index": generate, "data": [state], "session_hash": "leaver"}
        client.post("queue/join", json=request).raise_for_status()
        with client.stream("GET", "queue/data", params={"session_hash": "leaver"}) as events:
            next(line for line in events.iter_lines() if "process_generating" in line)
    left = time.monotonic()
    while time.monotonic() < left + 3 or (token_times and time.monotonic() < token_times[-1] + 10 * SECONDS_PER_TOKEN):
        assert time.monotonic() < left + 15, "generation goes on"
        time.sleep(SECONDS_PER_TOKEN)
    assert 0 < len(token_times) < TOKENS
    assert token_times[-1] - left < 1.0
