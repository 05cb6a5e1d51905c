"""Many people who write at once."""

import json
import threading
import time

import httpx
import pytest

from explorer.web.page import Page

WRITERS, TOKENS = 9, 60  # one more than are served at once
PROMPT = "the fox asked the owl"


@pytest.fixture(scope="module")
def served(library):
    blocks = Page(library, "rope").launch(prevent_thread_lock=True, quiet=True)
    yield blocks
    blocks.close(verbose=False)


@pytest.mark.exhaustive
def test_the_ninth_does_not_wait_until_another_has_read(served, library, monkeypatch):
    """Nobody's place is held longer than computing takes; what each of them reads takes 3.3 seconds to show."""
    monkeypatch.undo()  # at the pace of a visitor's server
    (generate,) = (i for i, event in served.fns.items() if event.name == "on_generate")
    prompt = library.model("rope")[1].encode(PROMPT)
    state = {"checkpoint": "rope", "prompt": prompt, "generated": [], "max_new_tokens": TOKENS}
    first, all_together = {}, threading.Barrier(WRITERS)

    def write(session: str):
        with httpx.Client(base_url=served.local_api_url, timeout=60) as client:
            all_together.wait()
            asked = {"fn_index": generate, "data": [state], "session_hash": session}
            client.post("queue/join", json=asked).raise_for_status()
            with client.stream("GET", "queue/data", params={"session_hash": session}) as events:
                for line in events.iter_lines():
                    told = json.loads(line.removeprefix("data: ")) if line.startswith("data: ") else {}
                    if told.get("msg") in ("process_generating", "process_completed"):
                        assert told["success"], told
                        first.setdefault(session, time.monotonic())
                    if told.get("msg") == "process_completed":
                        return

    writers = [threading.Thread(target=write, args=(f"writer-{i}",)) for i in range(WRITERS)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert len(first) == WRITERS
    assert max(first.values()) - min(first.values()) < TOKENS / 18
