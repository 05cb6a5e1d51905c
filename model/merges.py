"""How byte-pair encoding builds a token, merge by merge."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True, eq=False)
class MergeRules:
    """Which neighbouring pieces a byte-pair encoding joins (Sennrich et al. 2016), and in which order.

    Attributes:
        ids: bytes of each piece -> its id.
        ranks: two pieces -> the rank of their merge; None where any two are joined that make a piece together, whose
            id is the rank, as `tiktoken` does.
        of_characters: whether a text is cut into characters first, as by SentencePiece, and not into bytes.
        word_start: stands at the start of a word, one with its first character; "" where no mark does.
        word_end: the same of its end.
    """

    ids: Mapping[bytes, int]
    ranks: Mapping[tuple[bytes, bytes], int] | None = None
    of_characters: bool = False
    word_start: bytes = b""
    word_end: bytes = b""

    @cached_property
    def pieces(self) -> dict[int, bytes]:
        """The bytes of each id."""
        return {token_id: piece for piece, token_id in self.ids.items()}

    def rank(self, left: bytes, right: bytes) -> int | None:
        """Of two neighbours' merge: the lowest is made first; None where they stay apart."""
        return self.ids.get(left + right) if self.ranks is None else self.ranks.get((left, right))

    def begun(self, text: bytes) -> tuple[bytes, ...]:
        """The pieces before any merge."""
        if self.of_characters:
            start = self.word_start if text.startswith(self.word_start) else b""
            end = self.word_end if text.endswith(self.word_end) else b""
            try:
                characters = [character.encode() for character in text[len(start) : len(text) - len(end)].decode()]
            except UnicodeDecodeError:  # part of a character, which no merge has
                characters = []
            if characters:
                characters[0] = start + characters[0]
                characters[-1] += end
                return tuple(characters)
        return tuple(bytes([byte]) for byte in text)


@dataclass(frozen=True)
class MergeStep:
    """One merge.

    Attributes:
        pieces: the whole text after it, piece by piece.
        place: of the piece it made, among `pieces`.
        pair: the two pieces it was made of.
        token_id: of the piece it made.
    """

    pieces: tuple[bytes, ...]
    place: int
    pair: tuple[bytes, bytes]
    token_id: int


def merge_steps(text: bytes, rules: MergeRules) -> list[MergeStep]:
    """What turns the first pieces into tokens: of all neighbours that a merge joins, those of the lowest rank are, the
    leftmost of equals, until no two do.

    The last step's `pieces` are the tokens; a text of no merges has no steps.

    Args:
        text: a word: within it all neighbours may be merged.
    """
    pieces = rules.begun(text)
    steps = []
    while True:
        ranks = [rules.rank(*pair) for pair in zip(pieces, pieces[1:], strict=False)]
        known = [(rank, place) for place, rank in enumerate(ranks) if rank is not None]
        if not known:
            return steps
        _rank, place = min(known)
        pair = pieces[place], pieces[place + 1]
        made = pair[0] + pair[1]
        pieces = (*pieces[:place], made, *pieces[place + 2 :])
        steps.append(MergeStep(pieces, place, pair, rules.ids[made]))
