"""Tokenizers of all kinds against the `tokenizers` package itself."""

import json
import random

import pytest
from tokenizers import Tokenizer

from model.pretrained.tokenizer import read_tokenizer_json
from model.tokenizer import merge_steps
from tests.model.pretrained.tokenizer_kinds import KINDS, TEXT, tokenizer_json
from tests.model.test_tokenizer import UNUSUAL_TEXTS

TEXTS = [
    *(text[:400] for text in UNUSUAL_TEXTS.values()),
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
def hf_tokenizer(kind):
    return Tokenizer.from_str(tokenizer_json(kind))


@pytest.fixture
def our_tokenizer(kind, tmp_path):
    (tmp_path / "tokenizer.json").write_text(tokenizer_json(kind))
    size = Tokenizer.from_str(tokenizer_json(kind)).get_vocab_size()
    return read_tokenizer_json(tmp_path / "tokenizer.json", size, [])


def test_ids_and_text_match_tokenizers_package(our_tokenizer, hf_tokenizer):
    for text in TEXTS:
        ids = hf_tokenizer.encode(text, add_special_tokens=False).ids
        assert our_tokenizer.encode(text) == ids, text
        if not {*ids} <= {*our_tokenizer.special_tokens.values()}:
            assert our_tokenizer.decode(ids) == hf_tokenizer.decode(ids), text


def test_random_ids_decode_like_tokenizers_package(our_tokenizer, hf_tokenizer):
    rng = random.Random(0)
    for _ in range(200):
        ids = [rng.randrange(our_tokenizer.vocab_size) for _ in range(rng.randrange(1, 12))]
        if not {*ids} <= {*our_tokenizer.special_tokens.values()}:
            assert our_tokenizer.decode(ids) == hf_tokenizer.decode(ids), ids
    # Also empty where the package panics without ids.
    assert our_tokenizer.decode([]) == our_tokenizer.decode([*our_tokenizer.special_tokens.values()]) == ""


def test_bos_ids_match_tokenizers_package(our_tokenizer, hf_tokenizer):
    encoding = hf_tokenizer.encode("the fox")
    assert (*our_tokenizer.bos_ids, *our_tokenizer.encode("the fox")) == tuple(
        encoding.ids[: len(encoding.ids) - encoding.special_tokens_mask[-1]]
    )


def test_decoding_by_token_matches_whole_text(our_tokenizer):
    for text in [*TEXTS, "the café"]:
        ids = our_tokenizer.encode(text)[:40]
        for count in range(1, len(ids)):
            before, token, rest = ids[:count], ids[count : count + 1], ids[count:]
            for added in (token, rest):
                start, whole = our_tokenizer.decode(before), our_tokenizer.decode(before + added)
                if not start.endswith("\ufffd") and not whole.endswith("\ufffd"):  # part of a character
                    assert start + our_tokenizer.decode_continuation(added, before) == whole


def test_token_texts_join_to_text(our_tokenizer):
    ids = our_tokenizer.encode("there was a fox who wanted the")
    text = "".join(our_tokenizer.vocabulary[token_id] for token_id in ids)
    assert text.strip() == our_tokenizer.decode(ids).strip()
    assert b"".join(map(our_tokenizer.token_bytes, ids)).decode() == text


def test_merge_steps_build_tokens_of_word(our_tokenizer, hf_tokenizer):
    rules = our_tokenizer.merge_rules
    assert (rules is None) == (json.loads(hf_tokenizer.to_str())["model"]["type"] != "BPE")
    for token_id in set(our_tokenizer.encode("the fox wanted the moon")) if rules else ():
        piece = rules.pieces[token_id]
        steps = merge_steps(piece, rules)
        assert (steps[-1].pieces if steps else rules.initial_pieces(piece)) == (piece,)
        assert rules.ids[piece] == token_id
