from itertools import pairwise

import pytest

from model.checkpoint import load_checkpoint
from model.tokenizer import MergeRules, Tokenizer, merge_steps
from tests.byte_pairs import merge_pair
from tests.subtest_loops import subtest_each

BYTES = [bytes([byte]) for byte in range(256)]
WORDS = ["the", " the", " moon", " wanted", " “", " nothing", " 🌙", "aaaaa", "é", " thethe", "x"]


@pytest.fixture(scope="module", params=["tiny", "llama-fables"])
def tokenizer(request, tiny_tokenizer) -> Tokenizer:
    return tiny_tokenizer if request.param == "tiny" else load_checkpoint(request.param)[1]


@pytest.fixture(scope="module")
def tokens(tokenizer) -> tuple[bytes, ...]:
    return tuple(token for token in tokenizer.bytes_of_ids if token is not None)


@pytest.fixture(scope="module")
def rules(tokenizer) -> MergeRules:
    return tokenizer.merge_rules


def merge_rules(*made: bytes) -> MergeRules:
    return MergeRules({token: token_id for token_id, token in enumerate([*BYTES, *made])})


def merge_in_rank_order(text: bytes, tokens: tuple[bytes, ...]) -> list[bytes]:
    """Encode by another algorithm: apply every merge in rank order, wherever it occurs."""
    word = [bytes([byte]) for byte in text]
    for token in tokens[256:]:
        for pair in set(pairwise(word)):
            if b"".join(pair) == token:
                word = merge_pair(word, pair)
    return word


def test_every_token_is_built_by_its_merges(tokens, rules):
    for token_id, token in enumerate(tokens):
        steps = merge_steps(token, rules)
        assert len(steps) == len(token) - 1
        if steps:
            assert steps[-1].pieces == (token,)
            assert steps[-1].token_id == token_id


def test_each_step_merges_lowest_rank(tokens, rules):
    for token in tokens[256:]:
        before = tuple(bytes([byte]) for byte in token)
        for step in merge_steps(token, rules):
            joined = [b"".join(pair) for pair in pairwise(before)]
            assert step.token_id == min(rules.ids[piece] for piece in joined if piece in rules.ids)
            assert step.pair == before[step.index : step.index + 2]
            assert step.pieces[step.index] == b"".join(step.pair)
            assert rules.ids[step.pieces[step.index]] == step.token_id
            assert (*step.pieces[: step.index], *step.pair, *step.pieces[step.index + 1 :]) == before
            before = step.pieces


@subtest_each("word", WORDS)
def test_merge_steps_match_tiktoken(tokenizer, rules, word):
    text = word.encode()
    steps = merge_steps(text, rules)
    pieces = steps[-1].pieces if steps else tuple(bytes([byte]) for byte in text)
    assert [rules.ids[piece] for piece in pieces] == tokenizer.encode(word)


@subtest_each("word", WORDS)
def test_merge_steps_match_merging_in_rank_order(tokens, rules, word):
    text = word.encode()
    steps = merge_steps(text, rules)
    pieces = steps[-1].pieces if steps else [bytes([byte]) for byte in text]
    assert list(pieces) == merge_in_rank_order(text, tokens)


def test_merge_steps_of_known_word():
    rules = merge_rules(b"he", b" t", b" the", b"er")
    steps = merge_steps(b" ther", rules)
    assert [step.pieces for step in steps] == [
        (b" ", b"t", b"he", b"r"),  # "he" was learned before " t" and before "er"
        (b" t", b"he", b"r"),
        (b" the", b"r"),
    ]
    assert [(step.token_id, step.index) for step in steps] == [(256, 2), (257, 0), (258, 0)]
    assert [step.pair for step in steps] == [(b"h", b"e"), (b" ", b"t"), (b" t", b"he")]


def test_leftmost_of_equal_pairs_merges_first():
    assert [step.pieces for step in merge_steps(b"aaaaa", merge_rules(b"aa"))] == [
        (b"aa", b"a", b"a", b"a"),
        (b"aa", b"aa", b"a"),
    ]


@pytest.mark.parametrize("text", [b"", b"x", b"\xff\xfe", b"xyz"])
def test_text_without_merges_has_no_steps(text):
    assert merge_steps(text, merge_rules()) == []


def test_explicit_pair_ranks_override_ids():
    ids = {token: token_id for token_id, token in enumerate([*BYTES, b"ab", b"bc", b"abc"])}
    rules = MergeRules(ids, {(b"b", b"c"): 0, (b"a", b"bc"): 1, (b"a", b"b"): 2})
    steps = merge_steps(b"abc", rules)
    assert [(step.pieces, step.token_id) for step in steps] == [((b"a", b"bc"), 257), ((b"abc",), 258)]
    assert merge_steps(b"abc", MergeRules(ids, {(b"a", b"b"): 0}))[-1].pieces == (b"ab", b"c")  # no pair makes the rest


def test_character_level_merges_start_with_characters():
    ids = {piece.encode(): token_id for token_id, piece in enumerate([" ", "é", "t", " é", " ét"])}
    rules = MergeRules(ids, {(b" ", "é".encode()): 0, (" é".encode(), b"t"): 1}, is_character_level=True)
    assert rules.initial_pieces(" ét".encode()) == (b" ", "é".encode(), b"t")
    assert [step.pieces for step in merge_steps(" ét".encode(), rules)] == [(" é".encode(), b"t"), (" ét".encode(),)]
    assert rules.initial_pieces(b"\xc3") == (b"\xc3",)  # part of a character
