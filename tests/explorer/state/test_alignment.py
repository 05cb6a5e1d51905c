from functools import cache
from itertools import product

import pytest

from explorer.state.alignment import MOST_PINS, Alignment, aligned, parse_pins, shortest_edit, written
from explorer.state.errors import UserError


def tokens(text: str) -> tuple[str, ...]:
    return tuple(text)


def test_rows_as_long_as_each_other_stand_position_by_position():
    assert aligned(tokens("abc"), tokens("abc")) == Alignment("same", (0, 1, 2), 3)
    assert aligned(tokens("abc"), tokens("bca")) == Alignment("length", (0, 1, 2), 3)


def test_a_token_more_leaves_a_gap():
    found = aligned(tokens("abcdef"), tokens("abXYcdef"))
    assert found.kind == "edited" and found.partners == (0, 1, 4, 5, 6, 7)
    assert found.back == (0, 1, None, None, 2, 3, 4, 5)
    other = aligned(tokens("abXYcdef"), tokens("abcdef"))
    assert other.partners == found.back and other.back == found.partners
    assert [found.nearest(position) for position in range(6)] == [0, 1, 4, 5, 6, 7]
    assert [other.nearest(position) for position in range(8)] == [0, 1, 1, 1, 2, 3, 4, 5]


def test_rows_that_share_nothing_are_not_aligned():
    assert aligned(tokens("abcd"), tokens("xyz")) == Alignment("none", (None,) * 4, 3)


def distance(first: str, second: str) -> int:
    """Levenshtein's, by its definition."""

    @cache
    def of(i: int, j: int) -> int:
        if not i or not j:
            return i + j
        return min(of(i - 1, j) + 1, of(i, j - 1) + 1, of(i - 1, j - 1) + (first[i - 1] != second[j - 1]))

    return of(len(first), len(second))


@pytest.mark.parametrize("lengths", [(2, 3), (4, 2), (0, 2), (3, 0)], ids=str)
def test_scripts_are_as_short_as_can_be(lengths):
    rows = [["".join(letters) for letters in product("abc", repeat=length)] for length in lengths]
    for first in rows[0]:
        for second in rows[1]:
            partners = shortest_edit(first, second)
            kept = [partner for partner in partners if partner is not None]
            assert kept == sorted(set(kept))  # in order, none twice
            replaced = sum(first[i] != second[p] for i, p in enumerate(partners) if p is not None)
            edits = replaced + partners.count(None) + len(second) - len(kept)
            assert edits == distance(first, second)


def test_tokens_that_were_put_together_stand_beside_each_other():
    first, second = tokens("abcdef"), tokens("abXcdefg")
    found = aligned(first, second, ((2, 2), (5, 7)))
    assert found.kind == "pinned"
    assert found.partners[2] == 2 and found.partners[5] == 7 and found.partners[:2] == (0, 1)
    assert [partner for partner in found.partners if partner is not None] == sorted(set(found.partners) - {None})
    assert aligned(first, second, ((40, 2), (2, 40))).kind == "edited"  # beyond an end


@pytest.mark.parametrize("text", ["", "3.4", "3.4~7.9"])
def test_pairs_are_read_as_they_were_written(text):
    assert written(parse_pins(text)) == text


@pytest.mark.parametrize(
    "text",
    ["3", "a.b", "3.4~", "3.4~3.5", "3.4~5.4", "3.9~7.4", "-1.2", "3.4.5", "12345.1", 7, None, "~".join(["1.1"] * 99)],
    ids=str,
)
def test_pairs_that_make_no_sense_are_told(text):
    with pytest.raises(UserError, match=r"pairs of tokens"):
        parse_pins(text)
    assert MOST_PINS < 99
