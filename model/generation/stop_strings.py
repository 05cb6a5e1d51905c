"""Stop strings: texts that end a generation."""

from collections.abc import Collection

from model.tokenizer import Tokenizer, replace_surrogates


class StopStrings:
    """A scanner of a growing text for the first complete stop string.

    A token may hold the end of a string and more, and a string may be spread over several tokens; bytes are
    compared, since a token may end within a character.

    Args:
        strings: the stop strings, or a single one; empty ones are ignored.
        tokenizer: gives the tokens' bytes; needed if there is a string.

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

    def add_token(self, token_id: int) -> str | None:
        """Append a token; return the stop string that it completes, the earliest if several, or None."""
        if not self.strings:
            return None
        text = self.tail + self.tokenizer.token_bytes(token_id)
        self.tail = text[max(0, len(text) - self.longest + 1) :]
        ends = {text.find(string) + len(string): string for string in self.strings if string in text}
        return self.strings[ends[min(ends)]] if ends else None


def truncate_at_stop(text: str, stopped_by: str | None) -> str:
    """Return a generated text up to the end of the stop string that ended it.

    The text is returned whole if the stop string is not in it, as where decoding removed a space at one of its
    ends.
    """
    return text if stopped_by is None or stopped_by not in text else text[: text.index(stopped_by) + len(stopped_by)]
