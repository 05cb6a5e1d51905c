from functools import cache
from itertools import product

import pytest

from explorer.errors import UserError
from explorer.state.token_alignment import (
    MAX_PINS,
    Alignment,
    align_by_shortest_edit,
    align_tokens,
    format_pins,
    parse_pins,
)
from tests.subtest_loops import subtest_each


def split_characters(text: str) -> tuple[str, ...]:
    return tuple(text)


def test_equal_lengths_align_by_position():
    assert align_tokens(split_characters("abc"), split_characters("abc")) == Alignment("same", (0, 1, 2), 3)
    assert align_tokens(split_characters("abc"), split_characters("bca")) == Alignment("length", (0, 1, 2), 3)


def test_inserted_token_leaves_gap():
    alignment = align_tokens(split_characters("abcdef"), split_characters("abXYcdef"))
    assert alignment.kind == "edited" and alignment.partners == (0, 1, 4, 5, 6, 7)
    assert alignment.inverse == (0, 1, None, None, 2, 3, 4, 5)
    inverse_alignment = align_tokens(split_characters("abXYcdef"), split_characters("abcdef"))
    assert inverse_alignment.partners == alignment.inverse and inverse_alignment.inverse == alignment.partners
    assert [alignment.nearest_aligned(position) for position in range(6)] == [0, 1, 4, 5, 6, 7]
    assert [inverse_alignment.nearest_aligned(position) for position in range(8)] == [0, 1, 1, 1, 2, 3, 4, 5]


def test_unrelated_prompts_are_not_aligned():
    assert align_tokens(split_characters("abcd"), split_characters("xyz")) == Alignment("none", (None,) * 4, 3)


def edit_distance(first: str, second: str) -> int:
    """Return the Levenshtein distance, by its definition."""

    @cache
    def prefix_distance(i: int, j: int) -> int:
        if not i or not j:
            return i + j
        return min(
            prefix_distance(i - 1, j) + 1,
            prefix_distance(i, j - 1) + 1,
            prefix_distance(i - 1, j - 1) + (first[i - 1] != second[j - 1]),
        )

    return prefix_distance(len(first), len(second))


@pytest.mark.parametrize("lengths", [(2, 3), (4, 2), (0, 2), (3, 0)], ids=str)
def test_alignment_is_shortest_edit_script(lengths):
    rows = [["".join(letters) for letters in product("abc", repeat=length)] for length in lengths]
    for first in rows[0]:
        for second in rows[1]:
            partners = align_by_shortest_edit(first, second)
            aligned = [partner for partner in partners if partner is not None]
            assert aligned == sorted(set(aligned))  # in order, no duplicates
            replaced = sum(first[i] != second[p] for i, p in enumerate(partners) if p is not None)
            num_edits = replaced + partners.count(None) + len(second) - len(aligned)
            assert num_edits == edit_distance(first, second)


def test_pinned_tokens_are_aligned():
    first, second = split_characters("abcdef"), split_characters("abXcdefg")
    alignment = align_tokens(first, second, ((2, 2), (5, 7)))
    assert alignment.kind == "pinned"
    assert alignment.partners[2] == 2 and alignment.partners[5] == 7 and alignment.partners[:2] == (0, 1)
    assert [partner for partner in alignment.partners if partner is not None] == sorted(
        set(alignment.partners) - {None}
    )
    assert align_tokens(first, second, ((40, 2), (2, 40))).kind == "edited"  # beyond an end


@pytest.mark.parametrize("text", ["", "3.4", "3.4~7.9"])
def test_pins_round_trip(text):
    assert format_pins(parse_pins(text)) == text


@subtest_each(
    ("text", "message"),
    [
        *((text, "pairs of tokens") for text in ["3", "a.b", "3.4~", "-1.2", "3.4.5", "12345.1"]),
        ("~".join(["1.1"] * 99), "pairs of tokens"),
        *((text, "aligned pairs cannot cross: remove one") for text in ["3.4~3.5", "3.4~5.4", "3.9~7.4"]),
    ],
    ids=str,
)
def test_invalid_pins_are_refused(text, message):
    with pytest.raises(UserError, match=message):
        parse_pins(text)
    assert MAX_PINS < 99
