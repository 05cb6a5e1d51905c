"""What is answered in place of what was asked for."""


class Refusal(Exception):
    """A status of HTTP and a sentence for whoever asked."""

    def __init__(self, status: int, sentence: str):
        super().__init__(sentence)
        self.status, self.sentence = status, sentence
