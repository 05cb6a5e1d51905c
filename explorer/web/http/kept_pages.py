"""The page as it was sent before: Gradio would put it together anew for everybody, a tenth of a second in which nobody
else is answered."""

from collections import OrderedDict
from collections.abc import Hashable

from starlette.datastructures import Headers, QueryParams
from starlette.types import Message, Scope

MOST_KEPT = 16  # each some 130 kB
OF_VISITORS = ("x-forwarded-for", "x-real-ip", "x-request-id", "x-visitor")  # which no page depends on


class KeptPages:
    """Pages by all that they depend on: under which address they are asked for, in which language, how they travel."""

    def __init__(self):
        self._kept: OrderedDict[Hashable, tuple[Message, Message]] = OrderedDict()

    @staticmethod
    def key(scope: Scope, path: str, language: str) -> Hashable | None:
        """None of what is no page, or one that its address says more of than a state, which scripts read."""
        if scope["method"] != "GET" or path not in ("", "/") or "deep_link" in QueryParams(scope["query_string"]):
            return None
        headers = Headers(scope=scope)
        told = {name: value for name, value in headers.items() if name.startswith("x-") and name not in OF_VISITORS}
        told |= {name: headers.get(name, "") for name in ("host", "forwarded", "origin", "authorization")}
        gzips = "gzip" in headers.get("accept-encoding", "")
        return scope["scheme"], scope.get("root_path", ""), language, gzips, tuple(sorted(told.items()))

    def get(self, key: Hashable | None) -> tuple[Message, Message] | None:
        """How it is sent: the start of the answer and its body."""
        return self._kept.get(key) if key else None

    def keep(self, key: Hashable | None, start: Message, body: Message):
        names = {name for name, _value in start["headers"]}
        if key and start["status"] == 200 and b"set-cookie" not in names:
            self._kept[key] = start, body
            while len(self._kept) > MOST_KEPT:
                self._kept.popitem(last=False)
