"""Head of an HTTP/1.1 request, as far as the load balancer changes it."""

import asyncio
import re
from dataclasses import dataclass, field
from urllib.parse import urlsplit

MAX_HEAD_BYTES = 64 << 10
CONNECTION_HEADERS = ("connection", "keep-alive", "proxy-connection")  # said of one connection, not of what is asked
FORWARDED = "x-forwarded-for"
WORKER_PATH = re.compile(r"/w([0-9]{1,3})(/.*)?")


class InvalidRequestError(Exception):
    """A connection sent no valid request head."""


@dataclass
class RequestHead:
    """Head of a request.

    Attributes:
        target: path and query.
        headers: (name, value) in order of arrival, names in lower case.
    """

    method: str
    target: str
    headers: list[tuple[str, str]] = field(default_factory=list)

    @classmethod
    async def read(cls, reader: asyncio.StreamReader) -> "RequestHead":
        """Read the head of a request, and leave its body unread.

        Raises:
            InvalidRequestError: there is none.
        """
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, OSError) as error:
            raise InvalidRequestError from error
        first, *lines = head.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
        match first.split(" "):
            case [method, target, version] if version.startswith("HTTP/1.") and target.startswith("/"):
                headers = [tuple(map(str.strip, line.split(":", 1))) for line in lines if ":" in line]
                return cls(method, target, [(name.lower(), value) for name, value in headers])
        raise InvalidRequestError

    @property
    def path(self) -> str:
        return urlsplit(self.target).path

    @property
    def query(self) -> str:
        query = urlsplit(self.target).query
        return f"?{query}" if query else ""

    @property
    def worker(self) -> tuple[int, str] | None:
        """Number of the worker that the path names, and the path there; None if it names none."""
        if match := WORKER_PATH.fullmatch(self.path):
            return int(match[1]), match[2] or ""
        return None

    def encode_for_worker(self, path: str, client: str) -> bytes:
        """Return the head for another path, with the client's address added, and closing the connection afterwards."""
        forwarded = ", ".join([*(value for name, value in self.headers if name == FORWARDED), client])
        headers = [(name, value) for name, value in self.headers if name not in (*CONNECTION_HEADERS, FORWARDED)]
        lines = [f"{name}: {value}" for name, value in (*headers, (FORWARDED, forwarded), ("connection", "close"))]
        return "\r\n".join([f"{self.method} {path}{self.query} HTTP/1.1", *lines, "\r\n"]).encode("latin-1")
