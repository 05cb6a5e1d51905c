"""Rate limits per client: on prompts, and on the lines that its requests write to the log."""

import logging
import math
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Hashable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from starlette.requests import Request

from explorer.errors import UserError
from explorer.translations import _

MAX_KEYS = 10_000  # the least recently used key is dropped first


class SlidingWindowLimiter:
    """Counts events per key within the last seconds.

    Args:
        seconds: length of the window.
    """

    def __init__(self, seconds: float):
        self.seconds = seconds
        self._times: OrderedDict[Hashable, deque[float]] = OrderedDict()
        self._lock = threading.Lock()

    def seconds_until_free(self, limits: Mapping[Hashable, float]) -> int:
        """Return the seconds until all keys are below their limits, 0 for now.

        Args:
            limits: key -> maximum number of events in the window.
        """
        now = time.monotonic()
        with self._lock:
            waits = [self._wait_s(key, limit, now) for key, limit in limits.items()]
        return max(waits, default=0)

    def acquire(self, limits: Mapping[Hashable, float]) -> int:
        """Return the seconds until all keys are below their limits; if it is 0, count one event for each key."""
        now = time.monotonic()
        with self._lock:
            wait = max((self._wait_s(key, limit, now) for key, limit in limits.items()), default=0)
            if not wait:
                for key in limits:
                    self._recent_times(key, now).append(now)
        return wait

    def _wait_s(self, key: Hashable, limit: float, now: float) -> int:
        times = self._recent_times(key, now)
        return math.ceil(times[len(times) - int(limit)] + self.seconds - now) if len(times) >= limit else 0

    def _recent_times(self, key: Hashable, now: float) -> deque[float]:
        times = self._times.setdefault(key, deque())
        self._times.move_to_end(key)
        while times and times[0] <= now - self.seconds:
            times.popleft()
        while len(self._times) > MAX_KEYS:
            self._times.popitem(last=False)
        return times


CLIENT_HEADER = "x-visitor"  # with a name that the page made up when it was opened (static/server_connection.js)
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


@contextmanager
def use_client(client: Client | None) -> Iterator[None]:
    """Let what runs in the block count to a client; None for the server itself."""
    token = current_client.set(client)
    try:
        yield
    finally:
        current_client.reset(token)


MINUTE_S = 60.0
CLIENTS_PER_ADDRESS = 20  # visitors who may come from one address, as a class does


class PromptRateLimiter:
    """Rate limit per client and per address, so that a client gains nothing by changing its name.

    A program, which has no name, counts by its address.

    Args:
        max_prompts: per client and minute; `CLIENTS_PER_ADDRESS` times more per address.
    """

    def __init__(self, max_prompts: float = math.inf):
        self.max_prompts, self._limiter = max_prompts, SlidingWindowLimiter(MINUTE_S)

    def acquire(self):
        """Count a prompt of the current client, or raise UserError, without counting it, if the limit is reached."""
        client = current_client.get()
        if client is None or self.max_prompts == math.inf:
            return
        limits = {
            ("visitor", client.name or client.address): self.max_prompts,
            ("address", client.address): self.max_prompts * CLIENTS_PER_ADDRESS,
        }
        if seconds := self._limiter.acquire(limits):
            message = _(
                "Limit reached ({most:g} prompts per minute). Try again in {seconds} s.",
                most=self.max_prompts,
                seconds=seconds,
            )
            raise UserError(message)


MAX_LINES_A_MINUTE = 20  # that the requests of one address write to the log
log_lines = SlidingWindowLimiter(MINUTE_S)


def can_log() -> bool:
    """Return whether the current client may write a line to the log."""
    client = current_client.get()
    return client is None or log_lines.seconds_until_free({client.address: MAX_LINES_A_MINUTE}) == 0


class _LogFilter(logging.Filter):
    """Filter that passes a limited number of warnings and errors of each address, and all that have no client.

    Args:
        client: to whom all lines count; None for the current client.
    """

    def __init__(self, client: Client | None = None):
        super().__init__()
        self.client = client

    def filter(self, record: logging.LogRecord) -> bool:
        client = self.client or current_client.get()
        if record.levelno < logging.WARNING or client is None:
            return True
        if not hasattr(record, "is_in_budget"):  # which each handler asks
            record.is_in_budget = log_lines.acquire({client.address: MAX_LINES_A_MINUTE}) == 0
        return record.is_in_budget


SERVER_LOGGER = "uvicorn.error"  # its log of connections that bring no request
_CLIENT_FILTER, _SERVER_FILTER = _LogFilter(), _LogFilter(Client(address=SERVER_LOGGER))


def limit_logging():
    """Limit what each client can write to the log."""
    for handler in (*logging.getLogger().handlers, logging.lastResort):
        if handler:
            handler.addFilter(_CLIENT_FILTER)  # once, however often
    logging.getLogger(SERVER_LOGGER).addFilter(_SERVER_FILTER)
