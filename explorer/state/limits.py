"""What visitors may have at most: of a server for oneself, and of a public one."""

import math
from dataclasses import dataclass

from explorer.state.settings import RANGES


@dataclass(frozen=True)
class VisitorLimits:
    """The most of each.

    Attributes:
        tokens: that one press of a button writes.
        seconds: of waiting and computing that it may take.
        prompts: of one visitor in a minute.
        request_bytes: of one request.
        rooms: for a class, that one visitor opens in an hour.
        people: in a room.
    """

    tokens: int = RANGES["max_new_tokens"][1]
    seconds: float = math.inf
    prompts: float = math.inf
    request_bytes: int = 1 << 20  # a state takes some 100 kB, and a prompt need not be a book
    rooms: float = math.inf
    people: int = 400


NO_LIMITS = VisitorLimits()
PUBLIC_LIMITS = VisitorLimits(tokens=120, seconds=20.0, prompts=20, request_bytes=256 << 10, rooms=6, people=120)
