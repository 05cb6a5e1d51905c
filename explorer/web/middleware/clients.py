"""Identification of clients."""

from contextvars import ContextVar
from dataclasses import dataclass

from starlette.requests import Request

CLIENT_HEADER = "x-visitor"  # with a name that the page made up when it was opened (static/connection.js)
MAX_NAME_CHARACTERS = 64  # characters


@dataclass(frozen=True)
class Client:
    """The sender of a request: the page's random name, "" for a program, and the address."""

    name: str = ""
    address: str = ""

    @classmethod
    def from_request(cls, request: Request) -> "Client":
        """Return the client of a request, by its name and address."""
        name = request.headers.get(CLIENT_HEADER, "")[:MAX_NAME_CHARACTERS]
        return cls(name, request.client.host if request.client else "")


current_client: ContextVar[Client | None] = ContextVar("client", default=None)
