"""Tokenizers of all kinds against the `tokenizers` package itself."""

import json
import random
from pathlib import Path

import pytest
from tokenizers import Tokenizer

from model.pretrained.tokenizer import read_tokenizer_json
from model.tokenizer import merge_steps
from tests.model.pretrained.tokenizer_kinds import KINDS, TEXT, tokenizer_json
from tests.model.test_tokenizer import UNUSUAL_TEXTS
from tests.subtest_loops import subtest_each

TEXTS = [
    *(text[:400] for text in UNUSUAL_TEXTS.values()),
    TEXT[:300],
    " the fox's day!",
    "un known zebras , 7",
    "\n\n",
    "Ｆｏｘ ﬁ Å ё",
]


each_kind = subtest_each("kind", KINDS)


@pytest.fixture(scope="module")
def tokenizers(tmp_path_factory) -> dict[str, tuple]:
    """Our tokenizer of each kind, and that of the package."""
    return {kind: read_both(kind, tmp_path_factory.mktemp("tokenizer")) for kind in KINDS}


def read_both(kind: str, folder: Path) -> tuple:
    hf_tokenizer = Tokenizer.from_str(tokenizer_json(kind))
    (folder / "tokenizer.json").write_text(tokenizer_json(kind))
    return read_tokenizer_json(folder / "tokenizer.json", hf_tokenizer.get_vocab_size(), []), hf_tokenizer


@each_kind
def test_ids_and_text_match_tokenizers_package(tokenizers, kind):
    our_tokenizer, hf_tokenizer = tokenizers[kind]
    for text in TEXTS:
        ids = hf_tokenizer.encode(text, add_special_tokens=False).ids
        assert our_tokenizer.encode(text) == ids, text
        if not {*ids} <= {*our_tokenizer.special_tokens.values()}:
            assert our_tokenizer.decode(ids) == hf_tokenizer.decode(ids), text


@each_kind
def test_random_ids_decode_like_tokenizers_package(tokenizers, kind):
    our_tokenizer, hf_tokenizer = tokenizers[kind]
    rng = random.Random(0)
    for _ in range(200):
        ids = [rng.randrange(our_tokenizer.vocab_size) for _ in range(rng.randrange(1, 12))]
        if not {*ids} <= {*our_tokenizer.special_tokens.values()}:
            assert our_tokenizer.decode(ids) == hf_tokenizer.decode(ids), ids
    # Also empty where the package panics without ids.
    assert our_tokenizer.decode([]) == our_tokenizer.decode([*our_tokenizer.special_tokens.values()]) == ""


@each_kind
def test_bos_ids_match_tokenizers_package(tokenizers, kind):
    our_tokenizer, hf_tokenizer = tokenizers[kind]
    encoding = hf_tokenizer.encode("the fox")
    assert (*our_tokenizer.bos_ids, *our_tokenizer.encode("the fox")) == tuple(
        encoding.ids[: len(encoding.ids) - encoding.special_tokens_mask[-1]]
    )


@each_kind
def test_decoding_by_token_matches_whole_text(tokenizers, kind):
    our_tokenizer, _hf_tokenizer = tokenizers[kind]
    for text in [*TEXTS, "the café"]:
        ids = our_tokenizer.encode(text)[:40]
        for count in range(1, len(ids)):
            before, token, rest = ids[:count], ids[count : count + 1], ids[count:]
            for added in (token, rest):
                start, whole = our_tokenizer.decode(before), our_tokenizer.decode(before + added)
                if not start.endswith("\ufffd") and not whole.endswith("\ufffd"):  # part of a character
                    assert start + our_tokenizer.decode_continuation(added, before) == whole


@each_kind
def test_token_texts_join_to_text(tokenizers, kind):
    our_tokenizer, _hf_tokenizer = tokenizers[kind]
    ids = our_tokenizer.encode("there was a fox who wanted the")
    text = "".join(our_tokenizer.vocabulary[token_id] for token_id in ids)
    assert text.strip() == our_tokenizer.decode(ids).strip()
    assert b"".join(map(our_tokenizer.token_bytes, ids)).decode() == text


@each_kind
def test_merge_steps_build_tokens_of_word(tokenizers, kind):
    our_tokenizer, hf_tokenizer = tokenizers[kind]
    rules = our_tokenizer.merge_rules
    assert (rules is None) == (json.loads(hf_tokenizer.to_str())["model"]["type"] != "BPE")
    for token_id in set(our_tokenizer.encode("the fox wanted the moon")) if rules else ():
        piece = rules.pieces[token_id]
        steps = merge_steps(piece, rules)
        assert (steps[-1].pieces if steps else rules.initial_pieces(piece)) == (piece,)
        assert rules.ids[piece] == token_id
