"""Cache of the HTML page: Gradio would render it for each user, which blocks the others for a tenth of a second."""

from collections import OrderedDict
from collections.abc import Hashable

from starlette.datastructures import Headers, QueryParams
from starlette.types import Message, Scope

MAX_PAGES = 16  # each some 130 kB
CLIENT_HEADERS = ("x-forwarded-for", "x-real-ip", "x-request-id", "x-visitor")  # which no page depends on


class HtmlCache:
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
