import json

import pytest

from explorer.state.branches import Branch, build_tree
from explorer.web.widgets.tokens import ContinuationTree, GenerationPlayer
from explorer.web.widgets.view_tools import PromptAdviceLine

SURPRISALS = {(1, 2, 3): [1.0, 2.0, 3.0], (1, 4): [1.0, 0.5]}


@pytest.fixture
def rows() -> list[dict]:
    return ContinuationTree.pack(
        build_tree(SURPRISALS), (1, 4), (Branch((1, 2, 3), "beam"),), lambda token_id: f"<{token_id}>"
    )


def test_a_row_a_stretch_with_its_tokens_and_numbers(rows):
    assert [(row["ids"], row["tokens"], row["parent"], row["depth"]) for row in rows] == [
        ([1], ["<1>"], -1, 0),
        ([4], ["<4>"], 0, 1),
        ([2, 3], ["<2>", "<3>"], 0, 1),
    ]
    assert [(row["probability"], row["first"], row["bits"], row["total"]) for row in rows] == [
        (0.5, "0.500", "−1.00", "−1.00"),
        (2**-0.5, "0.707", "−0.500", "−1.50"),
        (0.25, "0.250", "−5.00", "−6.00"),
    ]
    assert [(row["length"], row["per_token"], row["perplexity"]) for row in rows[1:]] == [
        (2, "−0.750", "1.68"),
        (3, "−2.00", "4.00"),
    ]
    assert json.loads(json.dumps(rows, allow_nan=False)) == rows


def test_a_row_says_whether_it_is_shown_and_where_it_is_from(rows):
    assert [row["shown"] for row in rows] == [True, True, False]
    assert [row["here"] for row in rows] == [False, True, False]
    assert [row["compared"] for row in rows] == [False, True, True]
    assert [row["origins"] for row in rows] == ["", "", "beam"]


def test_a_branch_found_in_two_ways_says_so():
    branches = (Branch((1,), "greedy"), Branch((1,), "sampling"))
    (row,) = ContinuationTree.pack(build_tree({(1,): [1.0]}), (), branches, str)
    assert row["origins"] == "greedy, sampling" and not row["shown"]


@pytest.mark.parametrize(
    ("tokens", "num_prompt", "generated", "packed"),
    [
        ("abcde", 3, 2, {"first": 2, "tokens": ["c", "d", "e"], "unseen": 0}),
        ("abc", 3, 0, {"first": 2, "tokens": ["c"], "unseen": 0}),
        ("abc", 1, 2, {"first": 0, "tokens": ["a", "b", "c"], "unseen": 0}),
        ("abcd", 0, 9, {"first": 0, "tokens": ["a", "b", "c", "d"], "unseen": 6}),  # what came before "a" is not seen
    ],
)
def test_playback_begins_after_the_prompt_or_with_what_is_seen(tokens, num_prompt, generated, packed):
    assert GenerationPlayer.pack(tuple(tokens), num_prompt, generated) == packed
    assert packed["unseen"] + len(packed["tokens"]) - 1 == generated


def test_a_line_of_advice_is_words_and_what_to_do():
    assert PromptAdviceLine.pack("<b>", "x") == {"words": "<b>", "offer": "x"}
    assert PromptAdviceLine.pack() == {"words": "", "offer": ""}
