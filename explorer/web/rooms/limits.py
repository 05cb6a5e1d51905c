"""Limits on opening rooms and on requests for rooms that do not exist."""

from explorer.state.generation_settings import UserLimits
from explorer.translations import _
from explorer.web.middleware.prompt_rate_limit import CLIENTS_PER_ADDRESS
from explorer.web.middleware.rate_limiter import SlidingWindowLimiter
from explorer.web.rooms.errors import RoomError

HOUR_S, MINUTE_S = 3600.0, 60.0
MAX_MISSES_PER_MINUTE = 30  # rooms that are not there, of an address in a minute: as many as a class mistypes


class RoomLimits:
    """Limits on opening rooms and on looking them up, counted in this process.

    Args:
        limits: of each user.
    """

    def __init__(self, limits: UserLimits):
        self.rooms, self.people = limits.rooms, limits.people
        self._opened, self._missed = SlidingWindowLimiter(HOUR_S), SlidingWindowLimiter(MINUTE_S)

    def check_open(self, client: str, address: str):
        """Raise RoomError if the client has opened too many rooms in the last hour, else count one more."""
        limits = {("visitor", client): self.rooms, ("address", address): self.rooms * CLIENTS_PER_ADDRESS}
        if seconds := self._opened.acquire(limits):
            raise RoomError(
                429,
                _(
                    "Limit reached ({most:g} rooms per hour). Open the next room in {minutes} min.",
                    most=self.rooms,
                    minutes=-(-seconds // 60),
                ),
            )

    def check_lookup(self, address: str):
        """Raise RoomError if the address has requested too many rooms that do not exist."""
        if seconds := self._missed.seconds_until_free({address: MAX_MISSES_PER_MINUTE}):
            raise RoomError(
                429,
                _("Too many requests for rooms that do not exist. Try again in {seconds} s.", seconds=seconds),
            )

    def count_miss(self, address: str):
        """Count an attempt with a wrong code from an address."""
        self._missed.acquire({address: MAX_MISSES_PER_MINUTE})
