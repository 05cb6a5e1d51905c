"""Byte-pair encoding of a single word, merge by merge."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True, eq=False)
class MergeRules:
    """The merges of a byte-pair encoding (Sennrich et al. 2016), with their order.

    Attributes:
        ids: bytes of each piece -> its id.
        ranks: two pieces -> the rank of their merge. None if any two pieces merge that make a piece together,
            whose id is then the rank, as in `tiktoken`.
        is_character_level: whether a text is split into characters first, as by SentencePiece, or into bytes.
        word_start: mark at the start of a word, part of its first piece; empty if there is none.
        word_end: mark at the end of a word, part of its last piece; empty if there is none.
    """

    ids: Mapping[bytes, int]
    ranks: Mapping[tuple[bytes, bytes], int] | None = None
    is_character_level: bool = False
    word_start: bytes = b""
    word_end: bytes = b""

    @cached_property
    def pieces(self) -> dict[int, bytes]:
        """Bytes of each id."""
        return {token_id: piece for piece, token_id in self.ids.items()}

    def rank(self, left: bytes, right: bytes) -> int | None:
        """Return the rank of the merge of two neighbours, the lowest is made first; None if they do not merge."""
        return self.ids.get(left + right) if self.ranks is None else self.ranks.get((left, right))

    def initial_pieces(self, text: bytes) -> tuple[bytes, ...]:
        """Return the pieces of a word before any merge."""
        if self.is_character_level:
            start = self.word_start if text.startswith(self.word_start) else b""
            end = self.word_end if text.endswith(self.word_end) else b""
            try:
                characters = [character.encode() for character in text[len(start) : len(text) - len(end)].decode()]
            except UnicodeDecodeError:  # part of a character: no merges apply
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
        index: of the merged piece in `pieces`.
        pair: the two pieces that were merged.
        token_id: id of the merged piece.
    """

    pieces: tuple[bytes, ...]
    index: int
    pair: tuple[bytes, bytes]
    token_id: int


def merge_steps(text: bytes, rules: MergeRules) -> list[MergeStep]:
    """Return the merges that turn the initial pieces into tokens.

    Each step merges the neighbours of the lowest rank, the leftmost of equals, until no two neighbours merge. The
    last step's `pieces` are the tokens; a text without merges has no steps.

    Args:
        text: a word, within which all neighbours may be merged.
    """
    pieces = rules.initial_pieces(text)
    steps = []
    while True:
        ranks = [rules.rank(*pair) for pair in zip(pieces, pieces[1:], strict=False)]
        candidates = [(rank, index) for index, rank in enumerate(ranks) if rank is not None]
        if not candidates:
            return steps
        _rank, index = min(candidates)
        pair = pieces[index], pieces[index + 1]
        merged = pair[0] + pair[1]
        pieces = (*pieces[:index], merged, *pieces[index + 2 :])
        steps.append(MergeStep(pieces, index, pair, rules.ids[merged]))
