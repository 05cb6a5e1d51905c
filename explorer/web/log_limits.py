"""Limits on the log lines that one client can cause: one line a request, and a number of lines a minute."""

import logging
from collections import deque
from collections.abc import Callable
from contextvars import ContextVar

MAX_LINES_A_MINUTE, MINUTE_S = 20, 60.0
LAST_LINE_NOTE = " (the last line of this client for now)"


class RequestLogBudget:
    """Log lines that one request may still write.

    Args:
        wait: returns the seconds until the client may write a line, 0 for now.
        count: the same, and counts a line if the client may write it now.
    """

    def __init__(self, wait: Callable[[], int], count: Callable[[], int]):
        self._wait, self._count, self._is_spent = wait, count, False

    @property
    def has_room(self) -> bool:
        return not self._is_spent and not self._wait()

    def take(self) -> bool:
        """Take one line from the budget, and return whether it may be logged."""
        is_allowed, self._is_spent = not self._is_spent and not self._count(), True
        return is_allowed

    @property
    def is_exhausted(self) -> bool:
        """True if the client may log nothing more for now."""
        return self._wait() > 0


log_budget: ContextVar[RequestLogBudget | None] = ContextVar("log_budget", default=None)


def can_log() -> bool:
    """Return whether the current request may write a line to the log."""
    budget = log_budget.get()
    return budget is None or budget.has_room


class _BudgetFilter(logging.Filter):
    """Filter that passes warnings and errors within their request's budget; records without a request always pass."""

    def filter(self, record: logging.LogRecord) -> bool:
        budget = log_budget.get()
        if record.levelno < logging.WARNING or budget is None:
            return True
        if not hasattr(record, "is_in_budget"):  # which each handler asks
            record.is_in_budget = budget.take()
            if record.is_in_budget and budget.is_exhausted:
                record.msg = f"{record.msg}{LAST_LINE_NOTE}"
        return record.is_in_budget


class _RateLimitFilter(logging.Filter):
    """Filter that passes a limited number of warnings and errors a minute, whatever their source."""

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


_REQUEST_FILTER, _CONNECTION_FILTER = _BudgetFilter(), _RateLimitFilter()
SERVER_LOGGER = "uvicorn.error"  # its log of connections that bring no request


def limit_logging():
    """Limit what each client can write to the log."""
    for handler in (*logging.getLogger().handlers, logging.lastResort):
        if handler:
            handler.addFilter(_REQUEST_FILTER)  # once, however often
    logging.getLogger(SERVER_LOGGER).addFilter(_CONNECTION_FILTER)
