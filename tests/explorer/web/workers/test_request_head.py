"""Parsing of a request's head by the front, and the head it sends to a worker."""

import asyncio

import pytest

from explorer.web.workers.request_head import MAX_HEAD_BYTES, InvalidRequestError, RequestHead


def parse_head(text: str | bytes) -> RequestHead:
    async def read_from_stream() -> RequestHead:
        reader = asyncio.StreamReader(limit=MAX_HEAD_BYTES)
        reader.feed_data(text if isinstance(text, bytes) else text.encode("latin-1"))
        reader.feed_eof()
        return await RequestHead.read(reader)

    return asyncio.run(read_from_stream())


def test_a_head_is_sent_on_as_it_came_but_for_path_and_connection():
    head = parse_head(
        "POST /w2/gradio_api/queue/join?a=%20b HTTP/1.1\r\nHost: lab.example\r\nContent-Length: 3\r\n"
        "Connection: keep-alive, Upgrade\r\nX-Forwarded-For: 10.0.0.7\r\nCookie: lang=en; a:b\r\n\r\nabc"
    )
    assert (head.path, head.query, head.worker) == (
        "/w2/gradio_api/queue/join",
        "?a=%20b",
        (2, "/gradio_api/queue/join"),
    )
    assert head.encode_for_worker("/gradio_api/queue/join", "10.0.0.8").decode() == (
        "POST /gradio_api/queue/join?a=%20b HTTP/1.1\r\nhost: lab.example\r\ncontent-length: 3\r\n"
        "cookie: lang=en; a:b\r\nx-forwarded-for: 10.0.0.7, 10.0.0.8\r\nconnection: close\r\n\r\n"
    )


@pytest.mark.parametrize(
    ("path", "worker"),
    [("/w0/", (0, "/")), ("/w12", (12, "")), ("/w1/w2/", (1, "/w2/")), ("/", None), ("/world/", None), ("/w/", None)],
)
def test_a_path_names_a_worker_or_none(path, worker):
    assert parse_head(f"GET {path} HTTP/1.1\r\n\r\n").worker == worker


@pytest.mark.parametrize(
    "text",
    ["", "GET / HTTP/1.1\r\n", "GET / HTTP/2\r\n\r\n", "GET http://else.where/ HTTP/1.1\r\n\r\n", "GET /\r\n\r\n"]
    + [b"\x16\x03\x01\x02\r\n\r\n", "GET / HTTP/1.1\r\nA: " + "a" * MAX_HEAD_BYTES + "\r\n\r\n"],
)
def test_what_is_no_request_is_none(text):
    with pytest.raises(InvalidRequestError):
        parse_head(text)
