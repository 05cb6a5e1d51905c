"""How many rooms somebody may open, and how often ask for one that is not there."""

from explorer.language import _
from explorer.state.limits import VisitorLimits
from explorer.web.http.often import Often
from explorer.web.http.prompts_a_minute import AN_ADDRESS
from explorer.web.rooms.refusals import Refusal

HOUR, MINUTE = 3600.0, 60.0
MOST_MISSES = 30  # rooms that are not there, of an address in a minute: as many as a class mistypes


class RoomLimits:
    """Counts in this process.

    Args:
        limits: of what visitors may have.
    """

    def __init__(self, limits: VisitorLimits):
        self.rooms, self.people = limits.rooms, limits.people
        self._opened, self._missed = Often(HOUR), Often(MINUTE)

    def open(self, visitor: str, address: str):
        """Refusal where somebody opens one too many."""
        most = {("visitor", visitor): self.rooms, ("address", address): self.rooms * AN_ADDRESS}
        if seconds := self._opened.count(most):
            raise Refusal(
                429,
                _(
                    "Here a visitor opens {most:g} rooms an hour: open the next in {minutes} min.",
                    most=self.rooms,
                    minutes=-(-seconds // 60),
                ),
            )

    def may_look(self, address: str):
        """Refusal where somebody asked for too many rooms that are not there."""
        if seconds := self._missed.wait({address: MOST_MISSES}):
            raise Refusal(
                429,
                _("Too many rooms that are not there were asked for: try again in {seconds} s.", seconds=seconds),
            )

    def missed(self, address: str):
        self._missed.count({address: MOST_MISSES})
