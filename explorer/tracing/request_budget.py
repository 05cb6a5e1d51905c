"""Token and time budget of a request, and its cancellation."""

import math
import sys
import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from explorer.errors import UserError
from explorer.translations import _
from model.config import ModelConfig, num_parameters


class BudgetExceededError(UserError):
    """A response would exceed its budget; results computed so far stay cached for the next request."""


class RequestCancelledError(Exception):
    """No client waits for the response any more."""


@dataclass
class RequestBudget:
    """Token and time budget of one request.

    Attributes:
        max_tokens: that models read for it.
        max_seconds: of computing in its thread before its last piece; on a busy machine the response may take
            longer.
        is_cancelled: whether the client is gone, or has made a newer request.
        is_incomplete: whether a part of the response waits for a job, so that a repeated request gets another
            response.
        values: those that `compute_once` has for this request, by key.
    """

    max_tokens: int
    max_seconds: float
    is_cancelled: bool = False
    is_incomplete: bool = False
    tokens: int = 0
    began: float = 0.0
    values: dict[Hashable, Any] = field(default_factory=dict, repr=False)

    @contextmanager
    def activate(self) -> Iterator[None]:
        """Count this thread's computations towards this budget while the block runs."""
        before, self.began = _current.set(self), time.thread_time()
        try:
            yield
        finally:
            _current.reset(before)

    def check(self, tokens: int):
        self.tokens += tokens
        if self.is_cancelled:
            raise RequestCancelledError
        if self.tokens > self.max_tokens:
            message = _(
                "This request exceeds the limit of {most:,} tokens per request. Use a shorter prompt, or close "
                "branches of its tree.",
                most=self.max_tokens,
            )
            raise BudgetExceededError(message)
        if time.thread_time() - self.began > self.max_seconds:
            message = _(
                "This request exceeds the limit of {most:g} seconds of computing per request. Use a shorter prompt, "
                "or close branches of its tree.",
                most=self.max_seconds,
            )
            raise BudgetExceededError(message)


def unlimited_budget() -> RequestBudget:
    """Return an unlimited budget, for buttons and programs."""
    return RequestBudget(max_tokens=sys.maxsize, max_seconds=math.inf)


MAX_CHUNK_TOKENS, MAX_CHUNK_MACS = 512, 8e9  # of one piece of work, which cannot be interrupted


def chunk_tokens(config: ModelConfig, passes_per_token: float = 1) -> int:
    """Return the largest number of tokens that a model may read between two checks for cancellation.

    That takes a twentieth of a second for the bundled models on one core, a fifth for large ones.

    Args:
        passes_per_token: cost of a token here, in passes.
    """
    return max(1, int(min(MAX_CHUNK_TOKENS, MAX_CHUNK_MACS / num_parameters(config)) / passes_per_token))


_current: ContextVar[RequestBudget | None] = ContextVar("work", default=None)


def is_time_limited() -> bool:
    """Return True if this computation is part of a response with limited time."""
    budget = _current.get()
    return budget is not None and budget.max_seconds < math.inf


def mark_incomplete():
    """Mark the current response as incomplete: it lacks the result of a job."""
    if budget := _current.get():
        budget.is_incomplete = True


def is_incomplete() -> bool:
    """Return True if the current response lacks the result of a job."""
    budget = _current.get()
    return budget is not None and budget.is_incomplete


def compute_once(key: Hashable, compute: Callable[[], Any]) -> Any:
    """Return `compute()`, called once in the current request for a key, and each time where there is none.

    What files are like is so one thing in the whole of a response.
    """
    if (budget := _current.get()) is None:
        return compute()
    if key not in budget.values:
        budget.values[key] = compute()
    return budget.values[key]


def check_budget(tokens: int = 0):
    """Check the budget and the cancellation of the current request, before each longer piece of work.

    Args:
        tokens: that a model is to read next.

    Raises:
        BudgetExceededError: the response may not take that much.
        RequestCancelledError: no client waits for the response any more.
    """
    if budget := _current.get():
        budget.check(tokens)
