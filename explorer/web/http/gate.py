"""What comes in over HTTP, and what goes out with it."""

import gzip
import logging
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import gradio as gr
import httpx
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from explorer.language import _, speaking
from explorer.web.errors import told
from explorer.web.http.content_policy import content_policy
from explorer.web.http.hosts import Hosts
from explorer.web.http.inline_scripts import inline_scripts
from explorer.web.http.kept_pages import KeptPages
from explorer.web.http.often import Often
from explorer.web.http.request_checks import BodyError, RequestChecks
from explorer.web.log_lines import MAX_LINES_A_MINUTE, LogBudget, log_budget
from explorer.web.visitors_language import of_request

LOG = logging.getLogger(__name__)
HEALTH, ROOMS, CANCEL = "/health", "/rooms/", "/gradio_api/cancel"
BUDGET = "explorer.log_budget"  # a request's name of what it may log
MINUTE = 60.0
MAX_NAME_BYTES = 255  # of a file: Gradio looks for what it is asked for, and systems fail where names are longer
GZIP_LEVEL = 5  # more takes longer and saves little
# What Gradio serves and nothing here uses: files sent to it and through it, recordings, its own editor and statistics.
# And direct calls, which answer every refusal with a status of 500: programs call by the queue.
UNUSED = "upload|upload_progress|process_recording|stream|proxy=|deep_link|run-history|profiling|(undo-)?vibe-|dev/"
UNUSED += "|run/|api/"
CLOSED = re.compile(rf"/gradio_api/({UNUSED})|/monitoring|/login|/logout")

# Files whose address another content never has: the page's own lie in a folder of this process, Gradio's bear a hash.
LASTING = re.compile(r"/gradio_api/file=|/assets/[^/]+-[\w-]{8}\.\w+$")


class Gate:
    """Middleware (ASGI) that admits requests by the server's own names, of a bounded size, to routes that are used,
    with bodies of the right types, and tells browsers what the page may do and which language it speaks. What breaks
    behind it is answered with a status of 500 and a sentence, and is in the log once.

    Args:
        app: what it stands before.
        hosts: names of the server.
        most_bytes: of a request.
        health: what the server tells whoever looks after it, at `/health`.
        rooms: an app that answers below `/rooms/`; None for none.
        checks: of the bodies of requests; None for none.
    """

    def __init__(
        self,
        app: ASGIApp,
        hosts: Hosts,
        most_bytes: int,
        health: Callable[[], Mapping[str, Any]],
        rooms: ASGIApp | None = None,
        checks: RequestChecks | None = None,
    ):
        self.app, self.hosts, self.most_bytes, self.health, self.rooms = app, hosts, most_bytes, health, rooms
        self.checks, self.pages, self.log_lines = checks, KeptPages(), Often(MINUTE)

    async def __call__(self, scope: Scope, receive: Receive, send: Send):
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        path = scope["path"].removeprefix(scope.get("root_path", ""))
        client = {(scope.get("client") or ("",))[0]: MAX_LINES_A_MINUTE}
        budget = LogBudget(partial(self.log_lines.wait, client), partial(self.log_lines.count, client))
        scope[BUDGET] = budget
        log_budget.set(budget)
        gzips = "gzip" in Headers(scope=scope).get("accept-encoding", "")
        outgoing = Outgoing(send, lasting=bool(LASTING.match(path)), gzips=gzips)
        if refusal := self.refusal(scope, path):
            return await refusal(scope, receive, outgoing)
        try:
            return await self.answer(scope, path, receive, outgoing)
        except TooLarge:
            refusal = too_large(self.most_bytes)
        except BodyError as error:
            refusal = JSONResponse({"detail": str(error)}, error.status)
        except ClientDisconnect:
            return None
        except Exception as error:
            if outgoing.has_begun and isinstance(error, OSError):  # nobody reads on
                raise
            if outgoing.has_begun and isinstance(error, HTTPException):  # of a session that is not there: it was told
                return await outgoing.end()
            ended = isinstance(error, KeyError) and path.startswith(CANCEL)  # Gradio 6.31: it ended meanwhile
            refusal = JSONResponse({"success": True}) if ended else JSONResponse({"detail": told(error)}, 500)
        return await (outgoing.end() if outgoing.has_begun else refusal(scope, receive, outgoing))

    async def answer(self, scope: Scope, path: str, receive: Receive, outgoing: "Outgoing"):
        """What stands behind the gate answers, or the gate itself."""
        if path == HEALTH:
            is_read = scope["method"] in ("GET", "HEAD")
            answer = JSONResponse(self.health()) if is_read else PlainTextResponse(_("Ask by GET."), 405)
            return await answer(scope, receive, outgoing)
        if self.rooms and path.startswith(ROOMS):
            return await self.rooms(scope, receive, outgoing)
        language = of_request(scope)
        key = self.pages.key(scope, path, language)
        if kept := self.pages.get(key):
            for message in kept:
                await outgoing.send(message)
            return None
        outgoing.keep = partial(self.pages.keep, key)
        if path in ("", "/"):
            scope = {**scope, "query_string": b""}  # which scripts read: Gradio would look for a page by it
        with speaking(language):
            if self.checks and scope["method"] == "POST":
                receive = await self.checked(scope, path, receive)
            return await self.app(scope, bounded(receive, self.most_bytes), outgoing)

    async def checked(self, scope: Scope, path: str, receive: Receive) -> Receive:
        """What is received, once it is known to be what the route takes. BodyError where it is not."""
        body, bounded_receive = b"", bounded(receive, self.most_bytes)
        while True:
            message = await bounded_receive()
            if message["type"] != "http.request":
                raise ClientDisconnect
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        body = self.checks.check(path, Headers(scope=scope).get("content-type", ""), body)
        return preceded(body, receive)

    def refusal(self, scope: Scope, path: str) -> PlainTextResponse | None:
        headers = Headers(scope=scope)
        host, length = headers.get("host", ""), headers.get("content-length", "0")
        if not self.hosts.have(host):
            LOG.warning("refused a request for the host %.80r; --allowed-hosts would admit it", host)
            return PlainTextResponse(_("This server has another name; --allowed-hosts gives it more."), 400)
        if CLOSED.match(path) or any(len(part.encode(errors="replace")) > MAX_NAME_BYTES for part in path.split("/")):
            return PlainTextResponse(_("There is no such thing here."), 404)
        if not has_origin(headers):
            return PlainTextResponse(_("A proxy’s headers name no host: X-Forwarded-Host, X-Gradio-Server."), 400)
        return too_large(self.most_bytes) if length.isdigit() and int(length) > self.most_bytes else None


def budget_of(event: gr.Request | None) -> LogBudget | None:
    """What the request of an event may log, which came by a gate."""
    request = getattr(event, "request", None)
    return request.scope.get(BUDGET) if request else None


def has_origin(headers: Headers) -> bool:
    """Whether Gradio can tell from a proxy's headers, if there are any, under which address it is asked for."""
    named, server = (headers.get(name, "").split(",")[0].strip() for name in ("x-forwarded-host", "x-gradio-server"))
    try:
        return all(httpx.URL(address) for address in (f"http://{named}" if named else "", server) if address)
    except httpx.InvalidURL:
        return False


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


def preceded(body: bytes, receive: Receive) -> Receive:
    """A body that was received already, and then what is received still."""
    messages = [{"type": "http.request", "body": body, "more_body": False}]

    async def received() -> Message:
        return messages.pop() if messages else await receive()

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
        self.has_begun = self.has_ended = False
        self.keep: Callable[[Message, Message], None] = lambda start, body: None  # a page, once it is complete

    async def end(self):
        """Of an answer that broke off."""
        if self.has_begun and not self.has_ended:
            await self({"type": "http.response.body", "body": b"", "more_body": False})

    async def __call__(self, message: Message):
        self.has_begun = True
        self.has_ended = message["type"] == "http.response.body" and not message.get("more_body")
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
