"""What the server lets in, and what it sends along."""

import asyncio
import re

import pytest
from fastapi import FastAPI
from starlette.responses import PlainTextResponse
from starlette.testclient import TestClient

from explorer.state.limits import NO_LIMITS
from explorer.web.http.content_policy import content_policy
from explorer.web.http.gate import Gate
from explorer.web.http.hosts import Hosts
from explorer.web.page import Page


@pytest.fixture(scope="module")
def client(library) -> TestClient:
    """Of a page below /sub of another app, asked for by a name of its own."""
    app = Page(library, "rope").mount(FastAPI(), "/sub", hosts=["lab.example"])
    return TestClient(app, base_url="http://lab.example", raise_server_exceptions=False)


def test_the_page_says_what_browsers_may_do_with_it(client):
    page = client.get("/sub/")
    assert page.status_code == 200 and "window.gradio_config" in page.text
    assert page.headers["content-security-policy"] == content_policy(page.content)


def test_the_browser_speaks_the_pages_language_before_gradio_asks(client):
    page = client.get("/sub/")
    assert page.text.index('(navigator, "language"') < page.text.index('<script type="module"')
    asked = client.head("/sub/")
    assert asked.status_code == 200 and asked.content == b""


def test_the_page_goes_out_small_to_those_who_can_read_it(client):
    small, whole = (client.get("/sub/", headers={"Accept-Encoding": encoding}) for encoding in ("gzip, br", "identity"))
    assert small.headers["content-encoding"] == "gzip" and "content-encoding" not in whole.headers
    assert small.content == whole.content
    assert int(whole.headers["content-length"]) == len(whole.content) > 5 * int(small.headers["content-length"])
    assert small.headers["vary"] == whole.headers["vary"] == "Accept-Encoding"


def test_a_page_is_put_together_once_for_all_who_get_the_same(client, monkeypatch):
    made = []
    monkeypatch.setattr("explorer.web.http.gate.content_policy", lambda page: made.append(page) or content_policy(page))

    def asked(path="/sub/", **headers):
        before, page = len(made), client.get(path, headers={"X-Test": "its own", **headers})
        assert page.status_code == 200
        return page, len(made) - before

    first, again = asked(), asked("/sub/?view=attention")
    assert (first[1], again[1]) == (1, 0)
    assert first[0].content == again[0].content and first[0].headers == again[0].headers
    others = {"Accept-Language": "zh-CN"}, {"Accept-Encoding": "identity"}, {"X-Forwarded-Proto": "https"}
    for other in (*others, {"Origin": "http://lab.example"}):
        assert [asked(**other)[1] for _again in range(2)] == [1, 0], other
    assert asked("/sub/?lang=zh-CN")[1] == 0 and asked("/sub/?deep_link=x")[1] == 1
    assert asked(**{"X-Forwarded-For": "10.0.0.9"})[1] == 0


@pytest.mark.parametrize("path", ["/", "/config", "/gradio_api/app_id", "/gradio_api/upload", "/no"])
def test_nothing_is_taken_for_what_it_does_not_say_it_is(client, path):
    headers = client.get(f"/sub{path}").headers
    assert headers["x-content-type-options"] == "nosniff" and headers["referrer-policy"] == "same-origin"


def test_scripts_are_kept_and_what_may_change_is_not(client):
    page = client.get("/sub/")
    scripts = re.findall(r'gradio_api/file=[^"\\]+\.js|assets/index-[^"]+\.js', page.text)
    assert [scripts[i].partition("/")[0] for i in (0, -1)] == ["gradio_api", "assets"]
    for path in (scripts[0], scripts[-1]):  # one of each kind
        kept = client.get(f"/sub/{path}")
        assert kept.status_code == 200 and "immutable" in kept.headers["cache-control"], path
    gone = client.get(f"/sub/{scripts[0]}.gone")
    for answer in (page, gone, client.get("/sub/config"), client.get("/sub/theme.css")):
        assert "immutable" not in answer.headers.get("cache-control", ""), answer.url


def test_rooms_are_asked_below_the_pages_path_by_the_servers_names_alone(client):
    opened = client.post("/sub/rooms/open", json={})
    assert opened.status_code == 200 and set(opened.json()) == {"code", "key"}
    assert opened.headers["x-content-type-options"] == "nosniff" and opened.headers["cache-control"] == "no-store"
    assert client.post("/sub/rooms/open", json={}, headers={"Host": "evil.example"}).status_code == 400
    assert client.post("/sub/rooms/open", content=b"{}").status_code == 415  # as a form of another site would ask


@pytest.mark.parametrize("path", ["/", "/config", "/gradio_api/app_id", "/gradio_api/info"])
def test_what_the_page_and_programs_ask_for_is_there(client, path):
    assert client.get(f"/sub{path}").status_code == 200


@pytest.mark.parametrize(
    "path",
    ["upload", "upload?upload_id=1", "upload_progress", "process_recording", "stream/a", "vibe-edit/", "vibe-code"]
    + ["undo-vibe-edit", "proxy=http://127.0.0.1/", "deep_link", "run-history/buckets", "profiling/traces"],
)
def test_what_nothing_uses_is_closed(client, path):
    for answer in (
        client.get(f"/sub/gradio_api/{path}"),
        client.post(f"/sub/gradio_api/{path}", files={"files": b"a"}),
    ):
        assert (answer.status_code, answer.text) == (404, "There is no such thing here.")


@pytest.mark.parametrize("path", ["/monitoring", "/monitoring/summary", "/monitoring/key"])
def test_statistics_are_closed(client, path):
    assert client.get(f"/sub{path}").status_code == 404


def test_another_name_is_refused_and_logged(client, caplog):
    answer = client.get("/sub/", headers={"Host": "evil.example"})
    assert answer.status_code == 400 and "--allowed-hosts" in answer.text and "evil" not in answer.text
    assert "'evil.example'" in caplog.text


def test_requests_are_bounded_whatever_they_say_of_their_size(client):
    def join(body):
        return client.post("/sub/gradio_api/queue/join", content=body, headers={"Content-Type": "application/json"})

    assert join(b"x" * (NO_LIMITS.request_bytes + 1)).status_code == 413
    assert join(b"x" * 10).status_code == 422
    assert 400 <= join(b"x" * 1000 for _ in range(2000)).status_code < 500
    read = []

    def endless():
        for _ in range(10_000):
            read.append(1000)
            yield b" " * 1000

    assert 400 <= join(endless()).status_code < 500


@pytest.mark.parametrize(("pieces", "status"), [([4, 4, 2], 200), ([4, 4, 3], 413), ([11], 413), ([10, 0], 200)])
def test_a_request_that_does_not_say_its_size_ends_at_the_byte(pieces, status):
    left, sent = list(pieces), []

    async def receive():
        return {"type": "http.request", "body": bytes(left.pop(0)), "more_body": bool(left)}

    async def send(message):
        sent.append(message)

    async def reads_all(scope, receive, send):
        while (await receive())["more_body"]:
            pass
        await PlainTextResponse("read")(scope, receive, send)

    gate = Gate(reads_all, Hosts(["*"]), most_bytes=10, health=dict)
    scope = {"type": "http", "method": "POST", "path": "/a", "headers": [(b"host", b"localhost")], "query_string": b""}
    asyncio.run(gate(scope, receive, send))
    assert sent[0]["status"] == status
    assert status == 200 or sent[1]["body"] == b"A request has at most 10 bytes."
