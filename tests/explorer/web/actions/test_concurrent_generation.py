"""Many clients that generate at the same time."""

import json
import threading
import time

import httpx
import pytest

from explorer.web.page import Page

WRITERS, TOKENS = 9, 60  # one more than the server's slots
PROMPT = "the fox asked the owl"


@pytest.fixture(scope="module")
def served_app(library):
    blocks = Page(library, "rope").launch(prevent_thread_lock=True, quiet=True)
    yield blocks
    blocks.close(verbose=False)


@pytest.mark.exhaustive
def test_ninth_client_does_not_wait_for_others_to_read(served_app, library, monkeypatch):
    """A slot is held only while tokens are computed; showing them takes each client 3.3 seconds."""
    monkeypatch.undo()  # restore the server's usual interval between answers
    (generate,) = (i for i, event in served_app.fns.items() if event.api_name == "page_generate")
    prompt = library.model("rope")[1].encode(PROMPT)
    state = {"checkpoint": "rope", "prompt": prompt, "generated": [], "max_new_tokens": TOKENS}
    first, all_together = {}, threading.Barrier(WRITERS)

    def generate_as_client(session: str):
        with httpx.Client(base_url=served_app.local_api_url, timeout=60) as client:
            all_together.wait()
            request = {"fn_index": generate, "data": [state], "session_hash": session}
            client.post("queue/join", json=request).raise_for_status()
            with client.stream("GET", "queue/data", params={"session_hash": session}) as events:
                for line in events.iter_lines():
                    message = json.loads(line.removeprefix("data: ")) if line.startswith("data: ") else {}
                    if message.get("msg") in ("process_generating", "process_completed"):
                        assert message["success"], message
                        first.setdefault(session, time.monotonic())
                    if message.get("msg") == "process_completed":
                        return

    writers = [threading.Thread(target=generate_as_client, args=(f"writer-{i}",)) for i in range(WRITERS)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert len(first) == WRITERS
    assert max(first.values()) - min(first.values()) < TOKENS / 18
