"""What comes in over HTTP, and what goes out with it."""

import gzip
import logging
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from explorer.language import _, speaking
from explorer.web.http.content_policy import content_policy
from explorer.web.http.hosts import Hosts
from explorer.web.http.inline_scripts import inline_scripts
from explorer.web.http.kept_pages import KeptPages
from explorer.web.visitors_language import of_request

LOG = logging.getLogger(__name__)
HEALTH, ROOMS = "/health", "/rooms/"
GZIP_LEVEL = 5  # more takes longer and saves little
# What Gradio serves and nothing here uses: files sent to it and through it, recordings, its own editor and statistics.
UNUSED = "upload|upload_progress|process_recording|stream|proxy=|deep_link|run-history|profiling|(undo-)?vibe-|dev/"
CLOSED = re.compile(rf"/gradio_api/({UNUSED})|/monitoring")

# Files whose address another content never has: the page's own lie in a folder of this process, Gradio's bear a hash.
LASTING = re.compile(r"/gradio_api/file=|/assets/[^/]+-[\w-]{8}\.\w+$")


class Gate:
    """Middleware (ASGI) that admits requests by the server's own names, of a bounded size, to routes that are used, and
    tells browsers what the page may do and which language it speaks.

    Args:
        app: what it stands before.
        hosts: names of the server.
        most_bytes: of a request.
        health: what the server tells whoever looks after it, at `/health`.
        rooms: an app that answers below `/rooms/`; None for none.
    """

    def __init__(
        self,
        app: ASGIApp,
        hosts: Hosts,
        most_bytes: int,
        health: Callable[[], Mapping[str, Any]],
        rooms: ASGIApp | None = None,
    ):
        self.app, self.hosts, self.most_bytes, self.health, self.rooms = app, hosts, most_bytes, health, rooms
        self.pages = KeptPages()

    async def __call__(self, scope: Scope, receive: Receive, send: Send):
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        path = scope["path"].removeprefix(scope.get("root_path", ""))
        gzips = "gzip" in Headers(scope=scope).get("accept-encoding", "")
        outgoing = Outgoing(send, lasting=bool(LASTING.match(path)), gzips=gzips)
        if refusal := self.refusal(scope, path):
            return await refusal(scope, receive, outgoing)
        if path == HEALTH:
            return await JSONResponse(self.health())(scope, receive, outgoing)
        if self.rooms and path.startswith(ROOMS):
            return await self.rooms(scope, receive, outgoing)
        language = of_request(scope)
        key = self.pages.key(scope, path, language)
        if kept := self.pages.get(key):
            for message in kept:
                await send(message)
            return None
        outgoing.keep = partial(self.pages.keep, key)
        try:
            with speaking(language):
                return await self.app(scope, bounded(receive, self.most_bytes), outgoing)
        except TooLarge:
            return await too_large(self.most_bytes)(scope, receive, outgoing)

    def refusal(self, scope: Scope, path: str) -> PlainTextResponse | None:
        headers = Headers(scope=scope)
        host, length = headers.get("host", ""), headers.get("content-length", "0")
        if not self.hosts.have(host):
            LOG.warning("refused a request for the host %.80r; --allowed-hosts would admit it", host)
            return PlainTextResponse(_("This server has another name; --allowed-hosts gives it more."), 400)
        if CLOSED.match(path):
            return PlainTextResponse(_("There is no such thing here."), 404)
        return too_large(self.most_bytes) if length.isdigit() and int(length) > self.most_bytes else None


class TooLarge(Exception):
    """A request goes on for longer than it may."""


def too_large(most: int) -> PlainTextResponse:
    return PlainTextResponse(_("A request has at most {most:,} bytes.", most=most), 413)


def bounded(receive: Receive, most: int) -> Receive:
    """What is received, up to so many bytes, however long it said that it is."""
    seen = 0

    async def received() -> Message:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        if seen > most:
            raise TooLarge
        return message

    return received


class Outgoing:
    """Sends on, with headers; a page waits until it is complete, as its policy depends on it.

    Args:
        lasting: whether what is found may be kept without asking for it again, and what a browser compiled of it.
        gzips: whether a page may go out compressed, which makes a tenth of half a megabyte.
    """

    def __init__(self, send: Send, lasting: bool = False, gzips: bool = False):
        self.send, self.lasting, self.gzips = send, lasting, gzips
        self.start: Message | None = None
        self.page = b""
        self.keep: Callable[[Message, Message], None] = lambda start, body: None  # a page, once it is complete

    async def __call__(self, message: Message):
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers["X-Content-Type-Options"] = "nosniff"
            headers["Referrer-Policy"] = "same-origin"  # the address holds what a visitor wrote
            if self.lasting and message["status"] < 400:
                headers["Cache-Control"] = "public, max-age=31536000, immutable"
            if headers.get("content-type", "").startswith("text/html"):
                self.start = message
                return
        elif self.start and message["type"] == "http.response.body":
            self.page += message.get("body", b"")
            if message.get("more_body"):
                return
            page = self.page.replace(b"<head>", b"<head>" + inline_scripts(), 1)
            headers = MutableHeaders(scope=self.start)
            headers["Content-Security-Policy"] = content_policy(page)
            headers["Content-Length"] = str(int(headers["Content-Length"]) + len(page) - len(self.page))
            if self.gzips:
                page = gzip.compress(page, GZIP_LEVEL)
                headers["Content-Encoding"], headers["Content-Length"] = "gzip", str(len(page))
            headers.add_vary_header("Accept-Encoding")
            message = message | {"body": page}
            self.keep(dict(self.start), message)
            await self.send(self.start)
            self.start = None
        await self.send(message)
