"""How byte-pair encoding builds a token, merge by merge."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class MergeStep:
    """One merge.

    Attributes:
        pieces: the whole text after it, piece by piece.
        place: of the piece it made, among `pieces`.
        pair: the two pieces it was made of.
        rank: of the merge, the lowest there was: the id of the token it made.
    """

    pieces: tuple[bytes, ...]
    place: int
    pair: tuple[bytes, bytes]
    rank: int


def merge_steps(text: bytes, ranks: Mapping[bytes, int]) -> list[MergeStep]:
    """What turns single bytes into tokens: of all neighbours that make a token together, those that make the one of
    the lowest rank become it, the leftmost of equals, until no two do (Sennrich et al. 2016, as `tiktoken` applies it).

    The last step's `pieces` are the tokens; a text of no merges has no steps.

    Args:
        text: a word: within it all neighbours may be merged.
        ranks: bytes of each ordinary token -> its id.
    """
    pieces = tuple(bytes([byte]) for byte in text)
    steps = []
    while True:
        joined = [left + right for left, right in zip(pieces, pieces[1:], strict=False)]
        known = [(ranks[piece], place) for place, piece in enumerate(joined) if piece in ranks]
        if not known:
            return steps
        rank, place = min(known)
        pair = pieces[place], pieces[place + 1]
        pieces = (*pieces[:place], joined[place], *pieces[place + 2 :])
        steps.append(MergeStep(pieces, place, pair, rank))
