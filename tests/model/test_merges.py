from itertools import pairwise

import pytest

from model.checkpoint import load_checkpoint
from model.merges import merge_steps
from model.tokenizer import Tokenizer
from model.training.bpe import merge

BYTES = [bytes([byte]) for byte in range(256)]
WORDS = ["the", " the", " moon", " wanted", " “", " nothing", " 🌙", "aaaaa", "é", " thethe", "x"]


@pytest.fixture(scope="module", params=["tiny", "llama-fables"])
def tokenizer(request, tiny_tokenizer) -> Tokenizer:
    return tiny_tokenizer if request.param == "tiny" else load_checkpoint(request.param)[1]


@pytest.fixture(scope="module")
def ranks(tokenizer) -> dict[bytes, int]:
    return {token: rank for rank, token in enumerate(tokenizer.merged_bytes)}


def in_order_of_learning(text: bytes, tokens: tuple[bytes, ...]) -> list[bytes]:
    """The same by another way: every merge there is, in the order they were learned, wherever it applies."""
    word = [bytes([byte]) for byte in text]
    for token in tokens[256:]:
        for pair in set(pairwise(word)):
            if b"".join(pair) == token:
                word = merge(word, pair)
    return word


def test_every_token_is_built_by_its_merges(tokenizer, ranks):
    for token_id, token in enumerate(tokenizer.merged_bytes):
        steps = merge_steps(token, ranks)
        assert len(steps) == len(token) - 1
        if steps:
            assert steps[-1].pieces == (token,)
            assert steps[-1].rank == token_id


def test_every_merge_is_that_of_the_lowest_rank(tokenizer, ranks):
    for token in tokenizer.merged_bytes[256:]:
        before = tuple(bytes([byte]) for byte in token)
        for step in merge_steps(token, ranks):
            joined = [b"".join(pair) for pair in pairwise(before)]
            assert step.rank == min(ranks[piece] for piece in joined if piece in ranks)
            assert step.pair == before[step.place : step.place + 2]
            assert step.pieces[step.place] == b"".join(step.pair)
            assert ranks[step.pieces[step.place]] == step.rank
            assert (*step.pieces[: step.place], *step.pair, *step.pieces[step.place + 1 :]) == before
            before = step.pieces


@pytest.mark.parametrize("word", WORDS)
def test_a_word_becomes_the_tokens_that_tiktoken_makes_of_it(tokenizer, ranks, word):
    text = word.encode()
    steps = merge_steps(text, ranks)
    pieces = steps[-1].pieces if steps else tuple(bytes([byte]) for byte in text)
    assert [ranks[piece] for piece in pieces] == tokenizer.encode(word)


@pytest.mark.parametrize("word", WORDS)
def test_it_is_what_the_merges_make_in_the_order_they_were_learned(tokenizer, ranks, word):
    text = word.encode()
    steps = merge_steps(text, ranks)
    pieces = steps[-1].pieces if steps else [bytes([byte]) for byte in text]
    assert list(pieces) == in_order_of_learning(text, tokenizer.merged_bytes)


def test_steps_of_a_word_by_hand():
    ranks = {token: rank for rank, token in enumerate([*BYTES, b"he", b" t", b" the", b"er"])}
    steps = merge_steps(b" ther", ranks)
    assert [step.pieces for step in steps] == [
        (b" ", b"t", b"he", b"r"),  # "he" was learned before " t" and before "er"
        (b" t", b"he", b"r"),
        (b" the", b"r"),
    ]
    assert [(step.rank, step.place) for step in steps] == [(256, 2), (257, 0), (258, 0)]
    assert [step.pair for step in steps] == [(b"h", b"e"), (b" ", b"t"), (b" t", b"he")]


def test_of_equals_the_leftmost_is_merged_first():
    ranks = {token: rank for rank, token in enumerate([*BYTES, b"aa"])}
    assert [step.pieces for step in merge_steps(b"aaaaa", ranks)] == [
        (b"aa", b"a", b"a", b"a"),
        (b"aa", b"aa", b"a"),
    ]


@pytest.mark.parametrize("text", [b"", b"x", b"\xff\xfe", b"xyz"])
def test_what_no_merge_applies_to_has_no_steps(text):
    assert merge_steps(text, {token: rank for rank, token in enumerate(BYTES)}) == []
