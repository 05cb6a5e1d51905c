"""What is answered in place of what was asked for."""

from explorer.language import _


class Refusal(Exception):
    """A status of HTTP and a sentence for whoever asked."""

    def __init__(self, status: int, sentence: str):
        super().__init__(sentence)
        self.status, self.sentence = status, sentence


def none_there() -> Refusal:
    return Refusal(404, _("There is no such room: it was closed, or its code is another."))


def full() -> Refusal:
    return Refusal(403, _("As many people are in this room as may be."))
