"""The head of a request of HTTP/1.1, as far as a front changes it."""

import asyncio
import re
from dataclasses import dataclass, field
from urllib.parse import urlsplit

MOST_BYTES = 64 << 10
OF_CONNECTION = ("connection", "keep-alive", "proxy-connection")  # said of one connection, not of what is asked
FORWARDED = "x-forwarded-for"
OF_WORKER = re.compile(r"/w([0-9]{1,3})(/.*)?")


class NoRequest(Exception):
    """What came is none."""


@dataclass
class RequestHead:
    """What is asked, by whom.

    Attributes:
        target: path and query.
        headers: name -> value, in the order in which they came, in small letters.
    """

    method: str
    target: str
    headers: list[tuple[str, str]] = field(default_factory=list)

    @classmethod
    async def read(cls, reader: asyncio.StreamReader) -> "RequestHead":
        """NoRequest where there is none; its body stays to be read."""
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, OSError) as error:
            raise NoRequest from error
        first, *lines = head.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
        match first.split(" "):
            case [method, target, version] if version.startswith("HTTP/1.") and target.startswith("/"):
                headers = [tuple(map(str.strip, line.split(":", 1))) for line in lines if ":" in line]
                return cls(method, target, [(name.lower(), value) for name, value in headers])
        raise NoRequest

    @property
    def path(self) -> str:
        return urlsplit(self.target).path

    @property
    def query(self) -> str:
        query = urlsplit(self.target).query
        return f"?{query}" if query else ""

    @property
    def worker(self) -> tuple[int, str] | None:
        """Whom the path names, and the path there; None where it names nobody."""
        if match := OF_WORKER.fullmatch(self.path):
            return int(match[1]), match[2] or ""
        return None

    def sent_on(self, path: str, client: str) -> bytes:
        """The same of another path, from a client; whoever answers closes the connection then."""
        known = ", ".join([*(value for name, value in self.headers if name == FORWARDED), client])
        kept = [(name, value) for name, value in self.headers if name not in (*OF_CONNECTION, FORWARDED)]
        lines = [f"{name}: {value}" for name, value in (*kept, (FORWARDED, known), ("connection", "close"))]
        return "\r\n".join([f"{self.method} {path}{self.query} HTTP/1.1", *lines, "\r\n"]).encode("latin-1")
