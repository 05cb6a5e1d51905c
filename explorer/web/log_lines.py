"""How much of the log one client may fill: a line a request, and so many a minute, whatever it asks for."""

import logging
from collections import deque
from collections.abc import Callable
from contextvars import ContextVar

MAX_LINES_A_MINUTE, MINUTE_S = 20, 60.0
LAST = " (the last line of this client for now)"


class LogBudget:
    """What one request may still log.

    Args:
        wait: seconds until its client may have a line, 0 for now.
        count: the same, and where it is now, the client has it.
    """

    def __init__(self, wait: Callable[[], int], count: Callable[[], int]):
        self._wait, self._count, self._is_spent = wait, count, False

    @property
    def has_room(self) -> bool:
        return not self._is_spent and not self._wait()

    def take(self) -> bool:
        """Whether a line may be logged, which then is."""
        may, self._is_spent = not self._is_spent and not self._count(), True
        return may

    @property
    def is_last(self) -> bool:
        """Whether the client may have no more for now."""
        return self._wait() > 0


log_budget: ContextVar[LogBudget | None] = ContextVar("log_budget", default=None)


def has_room() -> bool:
    """Whether the log takes a line of the request that is answered here."""
    budget = log_budget.get()
    return budget is None or budget.has_room


class _WithinBudget(logging.Filter):
    """Lets warnings and errors through within the budget of the request that they are of; what is of none, always."""

    def filter(self, record: logging.LogRecord) -> bool:
        budget = log_budget.get()
        if record.levelno < logging.WARNING or budget is None:
            return True
        if not hasattr(record, "is_in_budget"):  # which each handler asks
            record.is_in_budget = budget.take()
            if record.is_in_budget and budget.is_last:
                record.msg = f"{record.msg}{LAST}"
        return record.is_in_budget


class _SoManyAMinute(logging.Filter):
    """Lets so many warnings and errors through a minute, of whomever they are: of what is no request nobody knows."""

    def __init__(self):
        super().__init__()
        self._times: deque[float] = deque(maxlen=MAX_LINES_A_MINUTE)

    def filter(self, record: logging.LogRecord) -> bool:
        is_full = len(self._times) == MAX_LINES_A_MINUTE and record.created - self._times[0] < MINUTE_S
        if record.levelno >= logging.WARNING and is_full:
            return False
        if record.levelno >= logging.WARNING:
            self._times.append(record.created)
        return True


_OF_REQUESTS, _OF_CONNECTIONS = _WithinBudget(), _SoManyAMinute()
SERVER = "uvicorn.error"  # its log of connections that bring no request


def bound_log():
    """Bound what is written to the log by who asks the most, where the log is written."""
    for handler in (*logging.getLogger().handlers, logging.lastResort):
        if handler:
            handler.addFilter(_OF_REQUESTS)  # once, however often
    logging.getLogger(SERVER).addFilter(_OF_CONNECTIONS)
