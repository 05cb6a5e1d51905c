"""Rate limit of prompts."""

import math

from explorer.state.errors import UserError
from explorer.translations import _
from explorer.web.middleware.clients import current_client
from explorer.web.middleware.rate_limiter import SlidingWindowLimiter

MINUTE_S = 60.0
CLIENTS_PER_ADDRESS = 20  # visitors who may come from one address, as a class does


class PromptRateLimiter:
    """Rate limit per client and per address, so that a client gains nothing by changing its name.

    A program, which has no name, counts by its address.

    Args:
        max_prompts: per client and minute; `CLIENTS_PER_ADDRESS` times more per address.
    """

    def __init__(self, max_prompts: float = math.inf):
        self.max_prompts, self._limiter = max_prompts, SlidingWindowLimiter(MINUTE_S)

    def acquire(self):
        """Count a prompt of the current client, or raise UserError, without counting it, if the limit is reached."""
        client = current_client.get()
        if client is None or self.max_prompts == math.inf:
            return
        limits = {
            ("visitor", client.name or client.address): self.max_prompts,
            ("address", client.address): self.max_prompts * CLIENTS_PER_ADDRESS,
        }
        if seconds := self._limiter.acquire(limits):
            message = _(
                "Limit reached ({most:g} prompts per minute). Try again in {seconds} s.",
                most=self.max_prompts,
                seconds=seconds,
            )
            raise UserError(message)
