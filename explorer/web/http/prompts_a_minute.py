"""How often a visitor may ask about another text."""

import math

from gradio.context import LocalContext

from explorer.language import _
from explorer.state.errors import UserError
from explorer.web.http.often import Often

MINUTE = 60.0
AN_ADDRESS = 20  # visitors who may come from one address, as a class does


class PromptsAMinute:
    """Counts for each visitor, and for the address that they come from, so that nobody has more by coming as another.

    Args:
        most: of a visitor in a minute; an address may ask for as many as a class of visitors.
    """

    def __init__(self, most: float = math.inf):
        self.most, self._asked = most, Often(MINUTE)

    def ask(self, visitor: str, address: str):
        """UserError where it is once too often; nothing is counted then."""
        if self.most == math.inf:
            return
        limits = {("visitor", visitor): self.most, ("address", address): self.most * AN_ADDRESS}
        if seconds := self._asked.count(limits):
            told = _(
                "Here {most:g} prompts a minute are read of a visitor: ask again in {seconds} s.",
                most=self.most,
                seconds=seconds,
            )
            raise UserError(told)

    def ask_of_this_event(self):
        """The same of whoever the event is of that Gradio handles on this thread; of nobody where it handles none."""
        request = LocalContext.request.get(None)
        if request is not None:
            client = getattr(request, "client", None)
            self.ask(str(getattr(request, "session_hash", "")), getattr(client, "host", None) or "")
