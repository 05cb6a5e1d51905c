"""How often a visitor may ask about another text."""

import math
import threading
import time
from collections import OrderedDict, deque

from gradio.context import LocalContext

from explorer.language import _
from explorer.state.errors import UserError

MINUTE = 60.0
AN_ADDRESS = 20  # visitors who may come from one address, as a class does
MOST_KNOWN = 10_000  # visitors; of whom asked longest ago nothing is known any more


class PromptsAMinute:
    """Counts for each visitor, and for the address that they come from, so that nobody has more by coming as another.

    Args:
        most: of a visitor in a minute; an address may ask for as many as a class of visitors.
    """

    def __init__(self, most: float = math.inf):
        self.most = most
        self._asked: OrderedDict[tuple[str, str], deque[float]] = OrderedDict()
        self._lock = threading.Lock()

    def ask(self, visitor: str, address: str):
        """UserError where it is once too often; nothing is counted then."""
        if self.most == math.inf:
            return
        now, limits = time.monotonic(), {("visitor", visitor): self.most, ("address", address): self.most * AN_ADDRESS}
        with self._lock:
            counted = [self._recent(who, now) for who in limits]
            for times, most in zip(counted, limits.values(), strict=True):
                if len(times) >= most:
                    seconds = math.ceil(times[0] + MINUTE - now)
                    told = _(
                        "Here {most:g} prompts a minute are read of a visitor: ask again in {seconds} s.",
                        most=self.most,
                        seconds=seconds,
                    )
                    raise UserError(told)
            for times in counted:
                times.append(now)

    def ask_of_this_event(self):
        """The same of whoever the event is of that Gradio handles on this thread; of nobody where it handles none."""
        request = LocalContext.request.get(None)
        if request is not None:
            client = getattr(request, "client", None)
            self.ask(str(getattr(request, "session_hash", "")), getattr(client, "host", None) or "")

    def _recent(self, who: tuple[str, str], now: float) -> deque[float]:
        times = self._asked.setdefault(who, deque())
        self._asked.move_to_end(who)
        while times and times[0] <= now - MINUTE:
            times.popleft()
        while len(self._asked) > MOST_KNOWN:
            self._asked.popitem(last=False)
        return times
