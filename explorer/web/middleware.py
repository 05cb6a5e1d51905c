"""ASGI middleware: it refuses requests that are not allowed, and adds security headers to responses."""

import base64
import gzip
import hashlib
import ipaddress
import logging
import os
import re
import socket
from collections import OrderedDict
from collections.abc import Callable, Collection, Hashable
from functools import partial

import httpx
from starlette.datastructures import Headers, MutableHeaders, QueryParams
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from explorer.translations import _, use_locale
from explorer.web.assets import inline_script_tags
from explorer.web.rate_limits import Client, current_client
from explorer.web.request_validation import RequestBodyValidator, too_large_error
from explorer.web.user_messages import locale_from_request, user_message

INLINE_SCRIPT = re.compile(rb"<script(?![^>]*\ssrc=)[^>]*>(.*?)</script>", re.DOTALL)


def content_policy(page: bytes) -> str:
    """Return the Content-Security-Policy of one of Gradio's HTML pages.

    Nothing is loaded from other origins, and of inline scripts only those run that the page was sent with. Gradio
    compiles the widgets' scripts in the browser (unsafe-eval) and styles elements one by one (unsafe-inline). A
    Space shows the page in a frame of huggingface.co.
    """
    hashes = (base64.b64encode(hashlib.sha256(script).digest()).decode() for script in INLINE_SCRIPT.findall(page))
    policy = {
        "default-src": "'self'",
        "script-src": " ".join(("'self'", "'unsafe-eval'", *(f"'sha256-{name}'" for name in hashes))),
        "style-src": "'self' 'unsafe-inline'",
        "img-src": "'self' data: blob:",
        "font-src": "'self' data:",
        "worker-src": "'self' blob:",
        "object-src": "'none'",
        "base-uri": "'self'",
        "form-action": "'self'",
        "frame-ancestors": "'self' https://huggingface.co https://*.hf.space",
    }
    return "; ".join(f"{name} {value}" for name, value in policy.items())


SPACES, SHARED = "*.hf.space", "*.gradio.live"  # where Hugging Face and Gradio's `share` lend a name


class AllowedHosts:
    """The host names that the server answers to.

    Another site can make its own name resolve to this machine, and its page would then have the server's origin (DNS
    rebinding). It cannot do so with an IP address, so all IP addresses are allowed.

    Args:
        names: "lab.example.org", or "*.example.org" for all below it, or "*" for any.
    """

    def __init__(self, names: Collection[str]):
        self.names = tuple(name.lower() for name in names)

    @classmethod
    def for_this_machine(cls, bound_host: str | None, more: Collection[str] = ()) -> "AllowedHosts":
        """Return the machine's own names, those of Spaces and Gradio's share links, and `more`.

        Args:
            bound_host: name or address that the server listens on; None for this machine only.
        """
        name = socket.gethostname()
        own_names = (
            "localhost",
            "*.localhost",
            name,
            f"{name}.local",
            bound_host or "",
            os.environ.get("SPACE_HOST", ""),
        )
        return cls([name for name in (*own_names, SPACES, SHARED, *more) if name])

    def allows(self, host: str) -> bool:
        """Return whether a request's `Host` header, with any port, is allowed."""
        name = re.sub(r":\d*$", "", host.strip()).strip("[]").rstrip(".").lower()
        return is_ip_address(name) or any(matches_host_pattern(name, pattern) for pattern in self.names)


def matches_host_pattern(name: str, pattern: str) -> bool:
    """Return whether a host name matches a name, "*.domain" or "*"."""
    return pattern in ("*", name) or (pattern.startswith("*.") and name.endswith(pattern[1:]))


def is_ip_address(name: str) -> bool:
    """Return whether a name is an IP address."""
    try:
        return bool(ipaddress.ip_address(name))
    except ValueError:
        return False


MAX_PAGES = 16  # each some 130 kB
CLIENT_HEADERS = ("x-forwarded-for", "x-real-ip", "x-request-id", "x-visitor")  # which no page depends on


class HtmlPageCache:
    """Responses by all that the page depends on: host and path, locale, encoding, and headers of proxies."""

    def __init__(self):
        self._pages: OrderedDict[Hashable, tuple[Message, Message]] = OrderedDict()

    @staticmethod
    def key(scope: Scope, path: str, language: str) -> Hashable | None:
        """Return the cache key of a request; None if it is not for the page, or for a deep link."""
        if scope["method"] != "GET" or path not in ("", "/") or "deep_link" in QueryParams(scope["query_string"]):
            return None
        headers = Headers(scope=scope)
        relevant_headers = {
            name: value for name, value in headers.items() if name.startswith("x-") and name not in CLIENT_HEADERS
        }
        relevant_headers |= {name: headers.get(name, "") for name in ("host", "forwarded", "origin", "authorization")}
        gzips = "gzip" in headers.get("accept-encoding", "")
        return scope["scheme"], scope.get("root_path", ""), language, gzips, tuple(sorted(relevant_headers.items()))

    def get(self, key: Hashable | None) -> tuple[Message, Message] | None:
        """Return a cached response as its start and body messages (ASGI); None if there is none."""
        return self._pages.get(key) if key else None

    def put(self, key: Hashable | None, start: Message, body: Message):
        """Store a response of status 200 that sets no cookie."""
        names = {name for name, _value in start["headers"]}
        if key and start["status"] == 200 and b"set-cookie" not in names:
            self._pages[key] = start, body
            while len(self._pages) > MAX_PAGES:
                self._pages.popitem(last=False)


LOG = logging.getLogger(__name__)
CANCEL = "/gradio_api/cancel"
MAX_NAME_BYTES = 255  # of a file: Gradio looks for what it is asked for, and systems fail where names are longer
GZIP_LEVEL = 5  # more takes longer and saves little
# What Gradio serves and nothing here uses: files sent to it and through it, recordings, its own editor and statistics.
# And direct calls, which answer every refusal with a status of 500: programs call by the queue.
UNUSED_ROUTES = (
    "upload|upload_progress|process_recording|stream|proxy=|deep_link|run-history|profiling|(undo-)?vibe-|dev/"
)
UNUSED_ROUTES += "|run/|api/"
CLOSED_ROUTES = re.compile(rf"/gradio_api/({UNUSED_ROUTES})|/monitoring|/login|/logout")

# Files whose address another content never has: the page's own lie in a folder of this process, Gradio's bear a hash.
IMMUTABLE_ROUTES = re.compile(r"/explorer/static/|/assets/[^/]+-[\w-]{8}\.\w+$")


class SecurityMiddleware:
    """ASGI middleware that checks requests and sets the headers of responses.

    It admits requests to the server's own names, of bounded size, to used routes and with valid bodies, and sets the
    page's policy and locale. Unexpected errors are logged once and answered with status 500 and a sentence.

    Args:
        app: the app behind it.
        hosts: allowed host names.
        most_bytes: maximum size of a request.
        checks: of request bodies; None for none.
        unbounded_paths: of routes that bound the size of requests themselves.
    """

    def __init__(
        self,
        app: ASGIApp,
        hosts: AllowedHosts,
        most_bytes: int,
        checks: RequestBodyValidator | None = None,
        unbounded_paths: Collection[str] = (),
    ):
        self.app, self.hosts, self.most_bytes = app, hosts, most_bytes
        self.checks, self.unbounded_paths = checks, unbounded_paths
        self.pages = HtmlPageCache()

    async def __call__(self, scope: Scope, receive: Receive, send: Send):
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        path = scope["path"].removeprefix(scope.get("root_path", ""))
        current_client.set(Client.from_request(Request(scope)))
        gzips = "gzip" in Headers(scope=scope).get("accept-encoding", "")
        outgoing = ResponseSender(send, is_immutable=bool(IMMUTABLE_ROUTES.match(path)), gzips=gzips)
        try:
            if refusal := self.rejection(scope, path):
                return await refusal(scope, receive, outgoing)
            return await self.answer(scope, path, receive, outgoing)
        except HTTPException as error:  # after the response began: of a session that is unknown, which it says
            refusal = JSONResponse({"detail": error.detail}, error.status_code)
        except ClientDisconnect:
            return None
        except Exception as error:
            if outgoing.has_begun and isinstance(error, OSError):  # nobody reads on
                raise
            ended = isinstance(error, KeyError) and path.startswith(CANCEL)  # Gradio 6.31: it ended meanwhile
            refusal = JSONResponse({"success": True}) if ended else JSONResponse({"detail": user_message(error)}, 500)
        return await (outgoing.end() if outgoing.has_begun else refusal(scope, receive, outgoing))

    async def answer(self, scope: Scope, path: str, receive: Receive, outgoing: "ResponseSender"):
        """Answer a request by the page cache or the app behind."""
        language = locale_from_request(scope)
        key = self.pages.key(scope, path, language)
        if messages := self.pages.get(key):
            for message in messages:
                await outgoing.send(message)
            return None
        outgoing.on_page_complete = partial(self.pages.put, key)
        if path in ("", "/"):
            scope = {**scope, "query_string": b""}  # which scripts read: Gradio would look for a page by it
        with use_locale(language):
            if path in self.unbounded_paths:
                return await self.app(scope, receive, outgoing)
            if self.checks and scope["method"] == "POST":
                receive = await self.check_body(scope, path, receive)
            return await self.app(scope, limit_body_size(receive, self.most_bytes), outgoing)

    async def check_body(self, scope: Scope, path: str, receive: Receive) -> Receive:
        """Return a receive function for the request's body after checking it.

        Raises:
            HTTPException: the body is too large, or invalid for its route.
        """
        body = await Request(scope, limit_body_size(receive, self.most_bytes)).body()
        return replay_body(self.checks.check(path, Headers(scope=scope), body), receive)

    def rejection(self, scope: Scope, path: str) -> Response | None:
        """Return the response that rejects a request; None to let it through.

        Raises:
            HTTPException: the request is too large.
        """
        headers = Headers(scope=scope)
        host, length = headers.get("host", ""), headers.get("content-length", "0")
        if not self.hosts.allows(host):
            LOG.warning("rejected a request for the host %.80r; add it to --allowed-hosts to accept it", host)
            return PlainTextResponse(_("This server does not accept this host name. Add it with --allowed-hosts."), 400)
        if CLOSED_ROUTES.match(path) or any(
            len(part.encode(errors="replace")) > MAX_NAME_BYTES for part in path.split("/")
        ):
            return PlainTextResponse(_("Not found."), 404)
        if not has_valid_proxy_headers(headers):
            return PlainTextResponse(_("A proxy’s headers name no host: X-Forwarded-Host, X-Gradio-Server."), 400)
        if length.isdigit() and int(length) > self.most_bytes and path not in self.unbounded_paths:
            raise too_large_error(self.most_bytes)
        return None


def has_valid_proxy_headers(headers: Headers) -> bool:
    """Return whether Gradio can derive its URL from a proxy's headers, if there are any."""
    named, server = (headers.get(name, "").split(",")[0].strip() for name in ("x-forwarded-host", "x-gradio-server"))
    try:
        return all(httpx.URL(address) for address in (f"http://{named}" if named else "", server) if address)
    except httpx.InvalidURL:
        return False


def limit_body_size(receive: Receive, max_bytes: int) -> Receive:
    """Return a receive function that raises HTTPException after `max_bytes`, whatever the declared length."""
    num_bytes = 0

    async def receive_limited() -> Message:
        nonlocal num_bytes
        message = await receive()
        num_bytes += len(message.get("body", b""))
        if num_bytes > max_bytes:
            raise too_large_error(max_bytes)
        return message

    return receive_limited


def replay_body(body: bytes, receive: Receive) -> Receive:
    """Return a receive function that yields a body that was received already, and then further messages."""
    messages = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_next() -> Message:
        return messages.pop() if messages else await receive()

    return receive_next


class ResponseSender:
    """Sends a response with headers; a page is sent once it is complete, as its policy depends on its content.

    Args:
        is_immutable: whether browsers may cache the response without revalidation.
        gzips: whether a page may be compressed, to a tenth of half a megabyte.
    """

    def __init__(self, send: Send, is_immutable: bool = False, gzips: bool = False):
        self.send, self.is_immutable, self.gzips = send, is_immutable, gzips
        self.start: Message | None = None
        self.page = b""
        self.has_begun = self.has_ended = False
        self.on_page_complete: Callable[[Message, Message], None] = lambda start, body: (
            None
        )  # a page, once it is complete

    async def end(self):
        """End a response that broke off."""
        if self.has_begun and not self.has_ended:
            await self({"type": "http.response.body", "body": b"", "more_body": False})

    async def __call__(self, message: Message):
        self.has_begun = True
        self.has_ended = message["type"] == "http.response.body" and not message.get("more_body")
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers["X-Content-Type-Options"] = "nosniff"
            headers["Referrer-Policy"] = "same-origin"  # the address holds what a visitor wrote
            if self.is_immutable and message["status"] < 400:
                headers["Cache-Control"] = "public, max-age=31536000, immutable"
            if headers.get("content-type", "").startswith("text/html"):
                self.start = message
                return
        elif self.start and message["type"] == "http.response.body":
            self.page += message.get("body", b"")
            if message.get("more_body"):
                return
            page = self.page.replace(b"<head>", b"<head>" + inline_script_tags(), 1)
            headers = MutableHeaders(scope=self.start)
            headers["Content-Security-Policy"] = content_policy(page)
            headers["Content-Length"] = str(int(headers["Content-Length"]) + len(page) - len(self.page))
            if self.gzips:
                page = gzip.compress(page, GZIP_LEVEL)
                headers["Content-Encoding"], headers["Content-Length"] = "gzip", str(len(page))
            headers.add_vary_header("Accept-Encoding")
            message = message | {"body": page}
            self.on_page_complete(dict(self.start), message)
            await self.send(self.start)
            self.start = None
        await self.send(message)
