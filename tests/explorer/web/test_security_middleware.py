"""Requests that the server accepts or refuses, and the headers it sends."""

import asyncio
import logging
import re

import pytest
from fastapi import FastAPI
from starlette.responses import PlainTextResponse
from starlette.testclient import TestClient

from explorer.state.generation_settings import NO_LIMITS
from explorer.web.middleware import AllowedHosts, SecurityMiddleware, content_policy
from explorer.web.page import Page
from explorer.web.rate_limits import MAX_LINES_A_MINUTE, limit_logging
from tests.subtest_loops import subtest_each


@pytest.fixture(scope="module")
def client(library) -> TestClient:
    """Client of a page mounted at /sub of another app, under an allowed host name."""
    app = Page(library, "rope").mount(FastAPI(), "/sub", hosts=["lab.example"])
    return TestClient(app, base_url="http://lab.example", raise_server_exceptions=False)


def test_page_has_content_security_policy(client):
    page = client.get("/sub/")
    assert page.status_code == 200 and "window.gradio_config" in page.text
    assert page.headers["content-security-policy"] == content_policy(page.content)


def test_head_request_has_no_body(client):
    response = client.head("/sub/")
    assert response.status_code == 200 and response.content == b""


def test_page_is_compressed_if_accepted(client):
    small, whole = (client.get("/sub/", headers={"Accept-Encoding": encoding}) for encoding in ("gzip, br", "identity"))
    assert small.headers["content-encoding"] == "gzip" and "content-encoding" not in whole.headers
    assert small.content == whole.content
    assert int(whole.headers["content-length"]) == len(whole.content) > 5 * int(small.headers["content-length"])
    assert small.headers["vary"] == whole.headers["vary"] == "Accept-Encoding"


def test_page_is_built_once_for_equal_requests(client, monkeypatch):
    built_pages = []
    monkeypatch.setattr(
        "explorer.web.middleware.content_policy",
        lambda page: built_pages.append(page) or content_policy(page),
    )

    def get_page(path="/sub/", **headers):
        before, page = len(built_pages), client.get(path, headers={"X-Test": "its own", **headers})
        assert page.status_code == 200
        return page, len(built_pages) - before

    first, again = get_page(), get_page("/sub/?view=attention")
    assert (first[1], again[1]) == (1, 0)
    assert first[0].content == again[0].content and first[0].headers == again[0].headers
    others = {"Accept-Language": "zh-CN"}, {"Accept-Encoding": "identity"}, {"X-Forwarded-Proto": "https"}
    for other in (*others, {"Origin": "http://lab.example"}):
        assert [get_page(**other)[1] for _again in range(2)] == [1, 0], other
    assert get_page("/sub/?lang=zh-CN")[1] == 0 and get_page("/sub/?deep_link=x")[1] == 1
    assert get_page(**{"X-Forwarded-For": "10.0.0.9"})[1] == 0


@pytest.mark.parametrize("path", ["/", "/config", "/gradio_api/app_id", "/gradio_api/upload", "/no"])
def test_responses_have_nosniff_and_referrer_policy(client, path):
    headers = client.get(f"/sub{path}").headers
    assert headers["x-content-type-options"] == "nosniff" and headers["referrer-policy"] == "same-origin"


def test_scripts_are_cached_and_changing_files_are_not(client):
    page = client.get("/sub/")
    scripts = re.findall(r'explorer/static/[^"\\]+\.js|assets/index-[^"]+\.js', page.text)
    by_kind = {path.partition("/")[0]: path for path in scripts}
    assert by_kind.keys() == {"explorer", "assets"}
    for path in by_kind.values():
        script = client.get(f"/sub/{path}")
        assert script.status_code == 200 and "immutable" in script.headers["cache-control"], path
    gone = client.get(f"/sub/{by_kind['explorer']}.gone")
    for answer in (page, gone, client.get("/sub/config"), client.get("/sub/theme.css")):
        assert "immutable" not in answer.headers.get("cache-control", ""), answer.url


def test_rooms_respect_path_host_and_content_type(client):
    opened = client.post("/sub/rooms/open", json={})
    assert opened.status_code == 200 and set(opened.json()) == {"code", "key"}
    assert opened.headers["x-content-type-options"] == "nosniff" and opened.headers["cache-control"] == "no-store"
    assert client.post("/sub/rooms/open", json={}, headers={"Host": "evil.example"}).status_code == 400
    assert client.post("/sub/rooms/open", content=b"{}").status_code == 415  # the content type of another site's form


@pytest.mark.parametrize("path", ["/", "/config", "/gradio_api/app_id", "/gradio_api/info"])
def test_public_routes_answer(client, path):
    assert client.get(f"/sub{path}").status_code == 200


@subtest_each(
    "path",
    ["upload", "upload?upload_id=1", "upload_progress", "process_recording", "stream/a", "vibe-edit/", "vibe-code"]
    + ["undo-vibe-edit", "proxy=http://127.0.0.1/", "deep_link", "run-history/buckets", "profiling/traces"],
)
def test_unused_gradio_routes_are_closed(client, path):
    for answer in (
        client.get(f"/sub/gradio_api/{path}"),
        client.post(f"/sub/gradio_api/{path}", files={"files": b"a"}),
    ):
        assert (answer.status_code, answer.text) == (404, "Not found.")


@pytest.mark.parametrize("path", ["/monitoring", "/monitoring/summary", "/monitoring/key"])
def test_gradio_statistics_are_closed(client, path):
    assert client.get(f"/sub{path}").status_code == 404


def test_unknown_host_is_refused_and_logged(client, caplog):
    answer = client.get("/sub/", headers={"Host": "evil.example"})
    assert answer.status_code == 400 and "--allowed-hosts" in answer.text and "evil" not in answer.text
    assert "'evil.example'" in caplog.text


def test_request_size_is_limited_with_or_without_length(client):
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
def test_request_without_length_is_cut_at_limit(pieces, status):
    left, sent = list(pieces), []

    async def receive():
        return {"type": "http.request", "body": bytes(left.pop(0)), "more_body": bool(left)}

    async def send(message):
        sent.append(message)

    async def reads_all(scope, receive, send):
        while (await receive())["more_body"]:
            pass
        await PlainTextResponse("read")(scope, receive, send)

    middleware = SecurityMiddleware(reads_all, AllowedHosts(["*"]), most_bytes=10)
    scope = {"type": "http", "method": "POST", "path": "/a", "headers": [(b"host", b"localhost")], "query_string": b""}
    asyncio.run(middleware(scope, receive, send))
    assert sent[0]["status"] == status
    assert status == 200 or sent[1]["body"] == b'{"detail":"A request has at most 10 bytes."}'


async def get_messages(middleware: SecurityMiddleware, path: str = "/a") -> list[dict]:
    """Return the messages that the middleware sends in answer to a GET request."""
    sent = []

    async def receive():
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message):
        sent.append(message)

    headers = [(b"host", b"localhost")]
    scope = {"type": "http", "method": "GET", "path": path, "headers": headers, "query_string": b""}
    await middleware(scope | {"client": ("10.0.0.1", 1)}, receive, send)
    return sent


def test_internal_error_is_reported_and_logged_once(caplog):
    async def breaks(scope, receive, send):
        raise KeyError("blocks.99")

    start, body = asyncio.run(get_messages(SecurityMiddleware(breaks, AllowedHosts(["*"]), most_bytes=10)))
    name = re.search(rb"It was logged as ([0-9a-f]{8})", body["body"])[1].decode()
    assert start["status"] == 500 and b"blocks.99" not in body["body"]
    assert [record.getMessage() for record in caplog.records] == [f"{name}: KeyError"] and "blocks.99" in caplog.text


def test_failing_stream_is_closed(caplog):
    async def breaks(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"a", "more_body": True})
        raise KeyError("blocks.99")

    sent = asyncio.run(get_messages(SecurityMiddleware(breaks, AllowedHosts(["*"]), most_bytes=10)))
    assert [message.get("body") for message in sent] == [None, b"a", b""] and not sent[-1]["more_body"]
    assert len(caplog.records) == 1


def test_log_lines_of_client_are_limited(caplog):
    async def breaks(scope, receive, send):
        logging.getLogger("explorer").warning("before it breaks")
        raise KeyError("blocks.99")

    async def ask() -> list[bytes]:
        middleware = SecurityMiddleware(breaks, AllowedHosts(["*"]), most_bytes=10)
        return [(await get_messages(middleware))[1]["body"] for _again in range(MAX_LINES_A_MINUTE + 30)]

    limit_logging()
    asyncio.run(ask())
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == MAX_LINES_A_MINUTE and lines.count("before it breaks") == MAX_LINES_A_MINUTE / 2
    logging.getLogger("explorer").warning("of no client")
    assert caplog.messages[-1] == "of no client"


def test_no_response_names_missing_log_line(caplog):
    async def breaks(scope, receive, send):
        raise KeyError("blocks.99")

    async def ask() -> list[bytes]:
        gate = SecurityMiddleware(breaks, AllowedHosts(["*"]), most_bytes=10)
        return [(await get_messages(gate))[1]["body"].decode() for _again in range(MAX_LINES_A_MINUTE + 5)]

    limit_logging()
    messages = asyncio.run(ask())
    named = [match[1] for sentence in messages if (match := re.search("It was logged as ([0-9a-f]{8})", sentence))]
    assert len(named) == MAX_LINES_A_MINUTE and all(name in caplog.text for name in named)
    assert all("Tell the person" in sentence for sentence in messages[MAX_LINES_A_MINUTE:])


def test_refused_hosts_do_not_fill_log(client, caplog):
    limit_logging()
    for _again in range(MAX_LINES_A_MINUTE + 10):
        assert client.get("/sub/", headers={"Host": "evil.example"}).status_code == 400
    assert len(caplog.records) <= MAX_LINES_A_MINUTE


def test_request_body_must_be_json_of_right_types(client):
    path, headers = "/sub/gradio_api/queue/join", {"Content-Type": "application/json"}
    for body, sentence in (
        (b'{"data": [NaN]}', "JSON has no number NaN: send a finite one."),
        (b"[" * 10_000, "The request is nested too deeply: send fewer lists within each other."),
        (b'{"data": 1, "data": 2}', "The request has 'data' twice in one object: send it once."),
        (b'{"data": [], "session_hash": "a"}', "fn_index is missing."),
        (b'{"data": [], "session_hash": "", "fn_index": 0}', 'session_hash must be text that is not empty, got "".'),
        (b'{"data": {}, "session_hash": "a", "fn_index": 0}', "data must be a list, got an object."),
        (b'{"data": [], "session_hash": "a", "fn_index": true}', "fn_index must be a whole number, got true."),
    ):
        answer = client.post(path, content=body, headers=headers)
        assert (answer.status_code, answer.json()["detail"]) == (422, sentence)
    events = client.get("/sub/config").json()["dependencies"]
    (explore,) = (event for event in events if event["api_name"] == "explore")
    file = {"path": "/etc/passwd", "meta": {"_type": "gradio.FileData"}}  # which Gradio would read for a public event
    data = [file, *(None for _input in explore["inputs"][1:])]
    named = client.post(path, json={"data": data, "session_hash": "a", "fn_index": explore["id"]})
    assert named.status_code == 422 and "must be" in named.json()["detail"]
    assert client.post(path, content=b"{}", headers={"Content-Type": "text/plain"}).status_code == 415
    assert client.post(path, json={"data": [], "session_hash": "a", "fn_index": 10**6}).status_code == 404


def test_lone_surrogates_become_replacement_characters(client):
    prompt = {"Content-Type": "application/json"}
    answer = client.post("/sub/gradio_api/call/explore", content=b'{"data": ["a\\ud800b", ""]}', headers=prompt)
    assert answer.status_code == 200 and "event_id" in answer.json()


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_health_is_read_only(client, method):
    assert client.get("/sub/health").status_code == client.head("/sub/health").status_code == 200
    assert client.request(method, "/sub/health").status_code == 405


def test_too_long_file_name_is_not_found(client):
    for path in ("assets", "static", "gradio_api/file=/tmp"):
        assert client.get(f"/sub/{path}/{'a' * 300}").status_code == 404


@pytest.mark.parametrize(
    "query", ["?page=x", "?deep_link=x", "?layer=1.5&head=-0&top_k=true&temperature=nan&text=%ED%A0%80"]
)
def test_page_opens_with_any_query(client, query):
    for method in ("GET", "HEAD"):
        assert client.request(method, f"/sub/{query}", headers={"X-Test": query}).status_code == 200


def test_invalid_forwarded_host_is_refused(client):
    for headers in ({"X-Forwarded-Host": "[::1"}, {"X-Forwarded-Host": "a:b:c"}, {"X-Gradio-Server": "http://a:b:c"}):
        assert client.get("/sub/config", headers=headers).status_code == 400
    assert client.get("/sub/config", headers={"X-Forwarded-Host": "lab.example:8443, b"}).status_code == 200


def test_invalid_http_requests_do_not_fill_log(caplog):
    limit_logging()
    for _again in range(MAX_LINES_A_MINUTE * 2):
        logging.getLogger("uvicorn.error").warning("Invalid HTTP request received.")
    assert 0 < len(caplog.records) <= MAX_LINES_A_MINUTE


def test_cancelling_finished_event_succeeds(caplog):
    async def breaks(scope, receive, send):
        raise KeyError("an event")

    start, body = asyncio.run(
        get_messages(SecurityMiddleware(breaks, AllowedHosts(["*"]), most_bytes=10), "/gradio_api/cancel")
    )
    assert (start["status"], body["body"], caplog.text) == (200, b'{"success":true}', "")
