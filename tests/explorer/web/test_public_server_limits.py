"""Limits of a public server over HTTP, and its health report."""

import json
from dataclasses import replace

import httpx
import pytest
from gradio_client import Client
from gradio_client.exceptions import AppError

from explorer.state.generation_settings import PUBLIC_LIMITS
from explorer.tracing.model_library import ModelLibrary
from explorer.web.page import Page

pytestmark = pytest.mark.exhaustive
LIMITS = replace(PUBLIC_LIMITS, tokens=5, prompts=3)


@pytest.fixture(scope="module")
def address(built_page, style_checkpoints):
    blocks = Page(ModelLibrary("cpu"), "rope", LIMITS).launch(prevent_thread_lock=True, quiet=True)
    yield blocks.local_url
    blocks.close(verbose=False)


@pytest.fixture
def client(address):
    client = Client(address, verbose=False)
    yield client
    client.close()


def test_prompt_rate_is_limited(client):
    for number in range(LIMITS.prompts):
        client.predict(f"the fox {number}", api_name="/explore")
    with pytest.raises(AppError, match=r"Limit reached \(3 prompts per minute\)"):
        client.predict("once more", api_name="/explore")
    with pytest.raises(AppError, match=r"Limit reached \(3 prompts per minute\)"):
        client.predict("once more", api_name="/generate")


def test_prompt_rate_on_page_is_limited_with_notice(address):
    notices = []
    for number in range(LIMITS.prompts + 1):
        action = {"kind": "prompt", "text": f"the owl {number}", "checkpoint": "rope"}
        question = {"about": "token", "state": {}, "action": action}
        answer = httpx.post(f"{address}explorer/answer", json=question, headers={"X-Visitor": "on the page"})
        notices.append(json.loads(answer.text.splitlines()[0])["notices"])
    assert notices[:-1] == [[]] * LIMITS.prompts
    assert "3 prompts per minute" in notices[-1][0]


def test_generated_tokens_are_limited(client):
    assert len(client.predict("the fox", 60, api_name="/generate")["tokens"]) == LIMITS.tokens


def test_hub_models_are_refused(client):
    with pytest.raises(AppError, match="there is no checkpoint"):
        client.predict("the fox", "somebody/model", api_name="/explore")


def test_request_size_is_limited(address):
    answers = [
        httpx.post(f"{address}gradio_api/queue/join", content=b"x" * (LIMITS.request_bytes + more)) for more in (0, 1)
    ]
    assert [answer.status_code == 413 for answer in answers] == [False, True]
    assert "at most 262,144 bytes" in answers[1].text


def test_uploads_are_closed(address):
    assert httpx.post(f"{address}gradio_api/upload", files={"files": b"x"}).status_code == 404


def test_health_report_has_counts_and_versions(address, client):
    before = httpx.get(f"{address}health").json()
    assert set(before) == {"version", "models", "traces_bytes", "sessions", "rss_bytes", "queue", "shared"}
    client.predict("ever so many foxes and owls", api_name="/explore")
    report = httpx.get(f"{address}health").json()
    assert report["models"] == ["rope"] and "gradio 6." in report["version"] and "torch 2." in report["version"]
    assert report["traces_bytes"] > before["traces_bytes"]
    assert report["sessions"] > 0 and report["queue"] == 0
    assert 100e6 < report["rss_bytes"] < 8e9
