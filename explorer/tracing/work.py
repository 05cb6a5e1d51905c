"""What an answer may cost, and whether anybody still waits for it."""

import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from explorer.language import _
from explorer.state.errors import UserError
from model.config import ModelConfig
from model.counting import num_parameters


class TooMuch(UserError):
    """An answer would take more than one may; what was computed for it until then is kept for the next."""


class GivenUp(Exception):
    """Nobody waits for the answer any more."""


@dataclass
class Work:
    """What is done for one answer.

    Attributes:
        most_tokens: that models read for it.
        most_seconds: that its thread computes before its last piece: on a busy machine an answer may take longer.
        given_up: whether its visitor is gone, or wants something else by now.
        give_way: called before each piece, to let others compute in between.
        is_incomplete: whether something in it waits for a job, so that the same question will be answered otherwise.
    """

    most_tokens: int
    most_seconds: float
    given_up: bool = False
    give_way: Callable[[], None] = lambda: None
    is_incomplete: bool = False
    tokens: int = 0
    began: float = 0.0

    @contextmanager
    def counted(self) -> Iterator[None]:
        """While the block runs, what this thread does is done for this answer."""
        before, self.began = _current.set(self), time.thread_time()
        try:
            yield
        finally:
            _current.reset(before)

    def go_on(self, tokens: int):
        self.tokens += tokens
        if self.given_up:
            raise GivenUp
        if self.tokens > self.most_tokens:
            told = _(
                "One answer reads at most {most:,} tokens, and this one would read more: "
                "take a shorter prompt, or close branches of its tree.",
                most=self.most_tokens,
            )
            raise TooMuch(told)
        if time.thread_time() - self.began > self.most_seconds:
            told = _(
                "One answer takes at most {most:g} seconds of computing, and this one takes more: "
                "take a shorter prompt, or close branches of its tree.",
                most=self.most_seconds,
            )
            raise TooMuch(told)
        self.give_way()


def unbounded() -> Work:
    """What is done because somebody pressed a button, or as a program asks."""
    return Work(most_tokens=sys.maxsize, most_seconds=math.inf)


MOST_TOKENS_AT_ONCE, MOST_PRODUCTS_AT_ONCE = 512, 8e9  # of a piece of work, which nothing interrupts


def tokens_at_once(config: ModelConfig, times: float = 1) -> int:
    """How many tokens a model is to read in a piece, so that one who cancels does not wait: a twentieth of a second for
    the bundled models on one core, a fifth for large ones.

    Args:
        times: what reading a token costs here, in passes.
    """
    return max(1, int(min(MOST_TOKENS_AT_ONCE, MOST_PRODUCTS_AT_ONCE / num_parameters(config)) / times))


_current: ContextVar[Work | None] = ContextVar("work", default=None)


def is_answering() -> bool:
    """Whether what is done now is done for an answer that is waited for, and so may not take long."""
    work = _current.get()
    return work is not None and work.most_seconds < math.inf


def is_now_incomplete():
    """The answer that is being put together lacks what a job has yet to find."""
    if work := _current.get():
        work.is_incomplete = True


def is_incomplete() -> bool:
    """Whether the answer that is put together lacks such a thing."""
    work = _current.get()
    return work is not None and work.is_incomplete


def go_on(tokens: int = 0):
    """To be called before each piece of work that takes a while.

    Args:
        tokens: that a model is to read next.

    Raises:
        TooMuch: the answer it is done for may not take that much.
        GivenUp: nobody waits for that answer any more.
    """
    if work := _current.get():
        work.go_on(tokens)
