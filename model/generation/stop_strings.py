"""Texts that end a generation."""

from collections.abc import Collection

from model.tokenizer import Tokenizer, replace_surrogates


class StopStrings:
    """Watches a text grow token by token for the first of some strings to be complete.

    A token may hold the end of a string and more, and a string may be spread over many tokens; their bytes are
    compared, since a token may end within a character.

    Args:
        strings: what to look for, or a single string; an empty one is none.
        tokenizer: says what the tokens' bytes are; needed if there is a string.

    Raises:
        ValueError: there are strings but no tokenizer.
    """

    def __init__(self, strings: str | Collection[str], tokenizer: Tokenizer | None):
        strings = [strings] if isinstance(strings, str) else strings
        self.strings = {string.encode(): string for string in map(replace_surrogates, strings) if string}
        if self.strings and tokenizer is None:
            raise ValueError("stop strings are found in the tokens' bytes: pass the model's tokenizer, too")
        self.tokenizer = tokenizer
        self.longest = max(map(len, self.strings), default=0)
        self.tail = b""  # the last bytes, as many as could begin a string

    def completed_by(self, token_id: int) -> str | None:
        """The string that the next token completes, of several the one complete first; None if there is none."""
        if not self.strings:
            return None
        text = self.tail + self.tokenizer.token_bytes(token_id)
        self.tail = text[max(0, len(text) - self.longest + 1) :]
        ends = {text.find(string) + len(string): string for string in self.strings if string in text}
        return self.strings[ends[min(ends)]] if ends else None


def up_to_stop(text: str, stopped_by: str | None) -> str:
    """A generated text up to the end of the stop string it was stopped by; all of it where its decoder left out a space
    of that at an end."""
    return text if stopped_by is None or stopped_by not in text else text[: text.index(stopped_by) + len(stopped_by)]
