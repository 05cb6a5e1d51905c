"""Limits per user: of a private and of a public server."""

import math
from dataclasses import dataclass

from explorer.state.generation_settings import RANGES


@dataclass(frozen=True)
class UserLimits:
    """Limits per user.

    Attributes:
        tokens: that one press of a button generates.
        seconds: of waiting and computing for it.
        prompts: of one user in a minute.
        request_bytes: of one request.
        rooms: for a class, that one user opens in an hour.
        people: in a room.
    """

    tokens: int = RANGES["max_new_tokens"][1]
    seconds: float = math.inf
    prompts: float = math.inf
    request_bytes: int = 1 << 20  # a state takes some 100 kB, and a prompt need not be a book
    rooms: float = math.inf
    people: int = 400


NO_LIMITS = UserLimits()
PUBLIC_LIMITS = UserLimits(tokens=120, seconds=20.0, prompts=20, request_bytes=256 << 10, rooms=6, people=120)
