"""Tokenizers of all kinds against the `tokenizers` package itself."""

import json
import random

import pytest
from tokenizers import Tokenizer

from model.pretrained.tokenizer import read_tokenizer_json
from model.tokenizer import merge_steps
from tests.model.pretrained.tokenizer_kinds import KINDS, TEXT, tokenizer_of
from tests.model.test_tokenizer import NASTY_TEXTS

TEXTS = [
    *(text[:400] for text in NASTY_TEXTS.values()),
    TEXT[:300],
    " the fox's day!",
    "un known zebras , 7",
    "\n\n",
    "Ｆｏｘ ﬁ Å ё",
]


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


@pytest.fixture
def theirs(kind):
    return Tokenizer.from_str(tokenizer_of(kind))


@pytest.fixture
def ours(kind, tmp_path):
    (tmp_path / "tokenizer.json").write_text(tokenizer_of(kind))
    size = Tokenizer.from_str(tokenizer_of(kind)).get_vocab_size()
    return read_tokenizer_json(tmp_path / "tokenizer.json", size, [])


def test_a_text_has_the_packages_ids_and_they_its_text(ours, theirs):
    for text in TEXTS:
        ids = theirs.encode(text, add_special_tokens=False).ids
        assert ours.encode(text) == ids, text
        if not {*ids} <= {*ours.special_tokens.values()}:
            assert ours.decode(ids) == theirs.decode(ids), text


def test_any_ids_have_the_packages_text(ours, theirs):
    rng = random.Random(0)
    for _ in range(200):
        ids = [rng.randrange(ours.vocab_size) for _ in range(rng.randrange(1, 12))]
        if not {*ids} <= {*ours.special_tokens.values()}:
            assert ours.decode(ids) == theirs.decode(ids), ids
    # Empty also where the package panics without ids.
    assert ours.decode([]) == ours.decode([*ours.special_tokens.values()]) == ""


def test_what_the_package_puts_before_a_text_is_its_beginning(ours, theirs):
    encoding = theirs.encode("the fox")
    assert (*ours.bos_ids, *ours.encode("the fox")) == tuple(
        encoding.ids[: len(encoding.ids) - encoding.special_tokens_mask[-1]]
    )


def test_a_text_that_comes_token_by_token_is_the_same_text(ours):
    for text in [*TEXTS, "the café"]:
        ids = ours.encode(text)[:40]
        for count in range(1, len(ids)):
            before, token, rest = ids[:count], ids[count : count + 1], ids[count:]
            for added in (token, rest):
                start, whole = ours.decode(before), ours.decode(before + added)
                if not start.endswith("\ufffd") and not whole.endswith("\ufffd"):  # part of a character
                    assert start + ours.decode_continuation(added, before) == whole


def test_tokens_are_shown_as_the_text_that_they_are_a_part_of(ours):
    ids = ours.encode("there was a fox who wanted the")
    text = "".join(ours.vocabulary[token_id] for token_id in ids)
    assert text.strip() == ours.decode(ids).strip()
    assert b"".join(map(ours.token_bytes, ids)).decode() == text


def test_merges_build_the_tokens_of_a_word(ours, theirs):
    rules = ours.merge_rules
    assert (rules is None) == (json.loads(theirs.to_str())["model"]["type"] != "BPE")
    for token_id in set(ours.encode("the fox wanted the moon")) if rules else ():
        piece = rules.pieces[token_id]
        steps = merge_steps(piece, rules)
        assert (steps[-1].pieces if steps else rules.initial_pieces(piece)) == (piece,)
        assert rules.ids[piece] == token_id
