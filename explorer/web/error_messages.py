"""Error messages and notices for the user, and limits on the log lines that one client can cause."""

import logging
import secrets
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from explorer.errors import UserError
from explorer.translations import _, translate
from model.errors import ModelError, NonFiniteLogitsError

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


LOG = logging.getLogger(__name__)
# Mistakes that say in their own words what the visitor can do about them.
USER_ERRORS = (UserError, ModelError, NonFiniteLogitsError)

MAX_CHARACTERS = 2000  # of a message, which may quote user input
OUT_OF_MEMORY_PHRASES = "can't allocate memory", "out of memory"  # as torch says it of the CPU and of other devices


def user_message(error: Exception) -> str:
    """Return the message that the user reads.

    An internal error is logged with its traceback under an id that the message names.
    """
    if isinstance(error, USER_ERRORS):
        text = translated_message(error)
        return text if len(text) <= MAX_CHARACTERS else text[:MAX_CHARACTERS] + "…"
    name, is_logged = secrets.token_hex(4), can_log()
    LOG.error("%s: %s", name, type(error).__name__, exc_info=error)
    if is_out_of_memory(error):
        return _("The server has not enough memory for this just now: ask again in a while, or take a shorter prompt.")
    if not is_logged:
        return _("Internal error (not your fault). Tell the person who runs the server.")
    return _("Internal error (not your fault). It was logged as {name}.", name=name)


def is_out_of_memory(error: Exception) -> bool:
    """Return whether an error says that memory ran out, in NumPy, PyTorch or on a GPU."""
    is_torch_error = isinstance(error, RuntimeError) and any(phrase in str(error) for phrase in OUT_OF_MEMORY_PHRASES)
    return isinstance(error, MemoryError) or is_torch_error


def translated_message(error: Exception) -> str:
    """Return an error's message, translated if it is a ModelError, including the errors among its values."""
    if not isinstance(error, ModelError):
        return str(error)
    values = {
        name: translated_message(value) if isinstance(value, Exception) else value
        for name, value in error.values.items()
    }
    return translate(error.template, **values)


_notices: ContextVar[list[str] | None] = ContextVar("notices", default=None)


def warn(error: Exception):
    """Add an error's message to the notices that are sent with the answer."""
    if (notices := _notices.get()) is not None:
        notices.append(user_message(error))


@contextmanager
def collect_notices() -> Iterator[list[str]]:
    """Collect the notices of the block, which are to be sent."""
    notices: list[str] = []
    before = _notices.set(notices)
    try:
        yield notices
    finally:
        _notices.reset(before)
