"""Rate limit of prompts."""

import math

from gradio.context import LocalContext

from explorer.state.errors import UserError
from explorer.translations import _
from explorer.web.http.rate_limiter import SlidingWindowLimiter

MINUTE_S = 60.0
CLIENTS_PER_ADDRESS = 20  # visitors who may come from one address, as a class does


class PromptRateLimiter:
    """Rate limit per client and per address, so that a client gains nothing by changing its name.

    Args:
        max_prompts: per client and minute; `CLIENTS_PER_ADDRESS` times more per address.
    """

    def __init__(self, max_prompts: float = math.inf):
        self.max_prompts, self._limiter = max_prompts, SlidingWindowLimiter(MINUTE_S)

    def acquire(self, client: str, address: str):
        """Count a prompt, or raise UserError, without counting it, if the limit is reached."""
        if self.max_prompts == math.inf:
            return
        limits = {("visitor", client): self.max_prompts, ("address", address): self.max_prompts * CLIENTS_PER_ADDRESS}
        if seconds := self._limiter.acquire(limits):
            message = _(
                "Limit reached ({most:g} prompts per minute). Try again in {seconds} s.",
                most=self.max_prompts,
                seconds=seconds,
            )
            raise UserError(message)

    def acquire_for_current_event(self):
        """Count a prompt for the client of this thread's Gradio event; do nothing without one."""
        request = LocalContext.request.get(None)
        if request is not None:
            client = getattr(request, "client", None)
            self.acquire(str(getattr(request, "session_hash", "")), getattr(client, "host", None) or "")
