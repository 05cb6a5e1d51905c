import base64
import re

import pytest

from model.errors import ModelError
from model.tokenizer import END_OF_TEXT, LONG_SPACE, Tokenizer, call_tokenizer_library
from tests.byte_pairs import merge_pair
from tests.subtest_loops import subtest_each

UNUSUAL_TEXTS = {
    "empty": "",
    "spaces": "  a   b \t c \n\n d  \r\n ",
    "emoji": "👩🏽‍🚀 and 🏳️‍🌈",
    "combining marks": "e\u0301 a\u0308\u0323 Z͑ͫ̓ͪ̂ͫ",
    "NUL and controls": "a\x00b\x01\x7f\x1b[31m",
    "right to left": "שלום \u202eعالم\u202c",
    "other scripts": "日本語 ไทย हिन्दी",
    "special token": f"before{END_OF_TEXT}after",
    "byte order mark": "\ufefftext",
    "noncharacters": "\uffff\U0010ffff\ufffd",
    "markup": "<script>${1+1}</script>&amp;",
    "contractions": "I'll say it's they've 'S",
    "100 kB": "the owl said “é” 12345 " * 4000,
    "100 kB without a space": "a" * 100_000,
    "a million spaces": "the  " + " " * 1_000_000 + "fox \n" + "\n" * 150_000 + "\t\u3000\x1c",
}


each_unusual_text = subtest_each("text", UNUSUAL_TEXTS.values(), ids=list(UNUSUAL_TEXTS))


@each_unusual_text
def test_text_round_trip(tiny_tokenizer, text):
    ids = tiny_tokenizer.encode(text)
    assert tiny_tokenizer.decode(ids) == text
    assert b"".join(map(tiny_tokenizer.token_bytes, ids)) == text.encode()
    assert all(0 <= token_id < tiny_tokenizer.end_of_text for token_id in ids)


def test_text_has_no_bos_token(tiny_tokenizer):
    assert tiny_tokenizer.beginning == tiny_tokenizer.bos_ids == ()


@pytest.fixture
def tokenizer_with_special_tokens(tiny_tokenizer):
    """Tokenizer with three special tokens."""
    ranks = {token: rank for rank, token in enumerate(tiny_tokenizer.bytes_of_ids[:-1])}
    return Tokenizer(ranks, ["<|user|>", END_OF_TEXT, "<|user|><|long|>"])


def test_special_tokens_follow_ordinary_ones(tokenizer_with_special_tokens):
    assert tokenizer_with_special_tokens.special_tokens == {"<|user|>": 299, END_OF_TEXT: 300, "<|user|><|long|>": 301}
    assert (tokenizer_with_special_tokens.end_of_text, tokenizer_with_special_tokens.vocab_size) == (300, 302)
    assert tokenizer_with_special_tokens.vocabulary[299:] == ("<|user|>", END_OF_TEXT, "<|user|><|long|>")


def test_special_tokens_are_read_as_text(tokenizer_with_special_tokens, tiny_tokenizer):
    text = f"<|user|>the fox  {END_OF_TEXT}<|user|>"
    assert tokenizer_with_special_tokens.encode(text) == tiny_tokenizer.encode(text)
    assert tokenizer_with_special_tokens.decode(tokenizer_with_special_tokens.encode(text)) == text


def test_special_tokens_are_saved(tokenizer_with_special_tokens, tmp_path):
    tokenizer_with_special_tokens.save(tmp_path / "tokenizer.tiktoken")
    loaded = Tokenizer.load(tmp_path / "tokenizer.tiktoken")
    assert loaded.special_tokens == tokenizer_with_special_tokens.special_tokens
    assert loaded.vocabulary == tokenizer_with_special_tokens.vocabulary


@pytest.mark.parametrize("special", [[], ["<|user|>"], [END_OF_TEXT] * 2, [END_OF_TEXT, ""], [END_OF_TEXT, "a b"]])
def test_invalid_special_tokens_are_refused(special):
    with pytest.raises(ValueError, match="special tokens"):
        Tokenizer({bytes([b]): b for b in range(256)}, special)


def test_merges_in_order_encode_word(tiny_tokenizer):
    merges = tiny_tokenizer.merges
    assert tuple(map(b"".join, merges)) == tiny_tokenizer.bytes_of_ids[256:-1]
    for word in ("Once", " moon", " nothing", " wwwanted"):
        pieces = [bytes([byte]) for byte in word.encode()]
        for pair in merges:
            pieces = merge_pair(pieces, pair)
        assert pieces == list(map(tiny_tokenizer.token_bytes, tiny_tokenizer.encode(word)))


def test_token_without_merge_is_reported(tiny_tokenizer):
    ranks = {bytes([b]): b for b in range(256)} | {b"abc": 256}
    with pytest.raises(ValueError, match="no merge makes the token b'abc'"):
        Tokenizer(ranks).merges  # noqa: B018 it is a property


@pytest.mark.parametrize(("text", "read"), [("a\ud800b", "a\ufffdb"), ("\ud83d\ude00", "😀")])
def test_lone_surrogates_are_replaced_and_pairs_joined(tiny_tokenizer, text, read):
    assert tiny_tokenizer.decode(tiny_tokenizer.encode(text)) == read


def test_long_white_space_is_split_like_gpt2(tiny_tokenizer, monkeypatch):
    """`tiktoken` panics at a million spaces in a row; any length must work."""
    texts = ["a      the", "      the", "a      ", "a\n\n\n\n\n\nthe the", "a\u3000\x85 \t \r\nb", "a    \x1c     the"]
    expected = [tiny_tokenizer.encode(text) for text in texts]
    monkeypatch.setattr("model.tokenizer.LONG_SPACE", re.compile(LONG_SPACE.pattern.replace("100000", "3")))
    assert [tiny_tokenizer.encode(text) for text in texts] == expected


def test_library_error_or_panic_is_reported(tokenizer_with_special_tokens):
    panicking = tokenizer_with_special_tokens.encoding
    with pytest.raises(ModelError, match="the tokenizer fails at this text: .*stack size"):
        call_tokenizer_library(panicking.encode, " " * 1_000_000 + "x", disallowed_special=())
    with pytest.raises(ModelError, match="the tokenizer fails at this text: .*StackOverflow"):
        call_tokenizer_library(panicking.encode_ordinary, " " * 1_000_000 + "x")


def test_merges_shorten_training_text(tiny_tokenizer):
    ids = tiny_tokenizer.encode("the fox and the moon")
    assert len(ids) < 15
    assert max(ids) >= 256


def test_vocabulary_is_bytes_merges_and_end_of_text(tiny_tokenizer):
    assert tiny_tokenizer.vocab_size == 300
    assert [tiny_tokenizer.token_bytes(i) for i in range(256)] == [bytes([i]) for i in range(256)]
    assert len({tiny_tokenizer.token_bytes(i) for i in range(300)}) == 300
    assert tiny_tokenizer.end_of_text == 299
    assert tiny_tokenizer.token_bytes(299) == END_OF_TEXT.encode()


def test_bytes_of_ids_are_in_order_without_special_tokens(tiny_tokenizer):
    assert tiny_tokenizer.bytes_of_ids == (*map(tiny_tokenizer.token_bytes, range(299)), None)


def test_partial_character_shows_its_bytes(tiny_tokenizer):
    half = [0xC3]  # the first of the two bytes of "é"
    assert tiny_tokenizer.decode(half) == "\ufffd"
    assert tiny_tokenizer.token_text(0xC3) == r"\xc3"
    assert tiny_tokenizer.decode([0xC3, 0xA9]) == "é"


def test_whole_token_shows_its_text(tiny_tokenizer):
    texts = [tiny_tokenizer.token_text(i) for i in tiny_tokenizer.encode("the fox\n")]
    assert "".join(texts) == "the fox\n"


@subtest_each("token_id", [-1, 300, 10**30, "a", None, 1.5])
def test_invalid_token_id_is_refused(tiny_tokenizer, token_id):
    with pytest.raises(ValueError, match="token ids are integers from 0 to 299, got"):
        tiny_tokenizer.token_bytes(token_id)
    with pytest.raises(ValueError, match="token ids are integers from 0 to 299, got"):
        tiny_tokenizer.decode([0, token_id])


def test_saved_tokenizer_loads_unchanged(tiny_tokenizer, tmp_path):
    tiny_tokenizer.save(tmp_path / "tokenizer.tiktoken")
    loaded = Tokenizer.load(tmp_path / "tokenizer.tiktoken")
    assert loaded.vocab_size == tiny_tokenizer.vocab_size
    text = "".join(UNUSUAL_TEXTS.values())
    assert loaded.encode(text) == tiny_tokenizer.encode(text)


def test_saved_file_is_read_by_tiktoken(tiny_tokenizer, tmp_path):
    from tiktoken.load import load_tiktoken_bpe

    tiny_tokenizer.save(tmp_path / "tokenizer.tiktoken")
    ranks = load_tiktoken_bpe(str(tmp_path / "tokenizer.tiktoken"))
    assert ranks == {tiny_tokenizer.token_bytes(i): i for i in range(299)}


def vocabulary_line(token: bytes, rank) -> str:
    return f"{base64.b64encode(token).decode()} {rank}\n"


BYTES = "".join(vocabulary_line(bytes([i]), i) for i in range(256))


@subtest_each(
    ("content", "message"),
    [
        (b"", "is incomplete"),
        (b"\x80\x04K\x01.", "is not a tiktoken vocabulary"),
        ("é 0\n".encode(), "is not a tiktoken vocabulary"),
        (b"Y!Q== 0\n", "is not a tiktoken vocabulary"),
        (b"YQ==\n", "is not a tiktoken vocabulary"),
        (b"YQ== one\n", "is not a tiktoken vocabulary"),
        (BYTES.replace(vocabulary_line(b"a", 97), "").encode(), "is incomplete"),
        ((BYTES + vocabulary_line(b"ab", 257)).encode(), "is incomplete"),
        ((BYTES + vocabulary_line(b"ab", 255)).encode(), "is incomplete"),
        ((BYTES + vocabulary_line(b"ab", -1)).encode(), "is incomplete"),
        ((BYTES + vocabulary_line(b"a", 256)).encode(), "is incomplete"),
    ],
    ids=["empty", "pickle", "not ASCII", "not base64", "no rank", "word as rank", "byte missing", "gap", "rank twice",
         "negative rank", "token twice"],
)  # fmt: skip
def test_damaged_file_is_refused_by_name(tmp_path, content, message):
    path = tmp_path / "tokenizer.tiktoken"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=f"tokenizer.tiktoken {message}"):
        Tokenizer.load(path)


def test_bytes_alone_are_valid_vocabulary(tmp_path):
    path = tmp_path / "tokenizer.tiktoken"
    path.write_text(BYTES)
    assert Tokenizer.load(path).encode("fox") == list(b"fox")


def test_missing_file_raises_os_error(tmp_path):
    with pytest.raises(OSError, match="nowhere"):
        Tokenizer.load(tmp_path / "nowhere")
