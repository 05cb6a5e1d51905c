"""Vocabulary files as students save them, compared with `tokenizers`, in every notation of tokens."""

import json
import os
import pickle
import struct

import pytest
import tokenizers
from tokenizers import decoders, models, pre_tokenizers, trainers

from explorer.diagnosis.custom_tokenizer import bytes_tokenizer
from explorer.diagnosis.vocabulary import read_vocabulary
from explorer.errors import UserError
from model import load_checkpoint
from tests.subtest_loops import subtest_each

END = "<|endoftext|>"
TRAINING_TEXT = (
    "Once upon a time there was a small fox who wanted the moon. Every night she looked up and said: 12 é! " * 4
)
TEXTS = ["Once upon a time", "The  owl\n\nlaughed\tat é ü 漢字 🙂", f"{END} don't", "   "]
CHARACTERS = sorted(set(TRAINING_TEXT + "\n"))


@pytest.fixture(scope="module")
def reference():
    return train_reference(TRAINING_TEXT)


def train_reference(text):
    """Train a byte-level BPE with `tokenizers`; ids are the special token, bytes in order, merges."""
    trained = tokenizers.Tokenizer(models.BPE())
    trained.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=300, show_progress=False, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()
    )
    trained.train_from_iterator([text], trainer)
    merges = [tuple(pair) for pair in json.loads(trained.to_str())["model"]["merges"]]
    letters = {character: character.encode("utf-8") for character in pre_tokenizers.ByteLevel.alphabet()}
    order = sorted(letters, key=lambda character: decode_byte_level(character))
    pieces = [END, *order, *("".join(pair) for pair in merges)]
    tokenizer = tokenizers.Tokenizer(
        models.BPE(vocab={piece: token_id for token_id, piece in enumerate(pieces)}, merges=merges)
    )
    tokenizer.pre_tokenizer, tokenizer.decoder = trained.pre_tokenizer, decoders.ByteLevel()
    return tokenizer, pieces, merges


def decode_byte_level(piece):
    """Return the bytes of a token in GPT-2's alphabet: visible bytes are themselves, others start at U+0100."""
    printed = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printed]
    return bytes(ord(character) if ord(character) < 256 else others[ord(character) - 256] for character in piece)


def token_bytes(piece):
    return piece.encode() if piece == END else decode_byte_level(piece)


def lossy_text(piece):
    return token_bytes(piece).decode(errors="replace")


def save_vocabulary(folder, name, vocabulary, merges=None):
    serialise = lambda value: pickle.dumps(value, 2) if name.endswith("pkl") else json.dumps(value).encode()  # noqa: E731
    (folder / name).write_bytes(serialise(vocabulary))
    if isinstance(merges, str):
        (folder / "merges.txt").write_text(merges, encoding="utf-8")
    elif merges:
        (folder / f"merges.{name.split('.')[1]}").write_bytes(serialise(merges))


SAVE_BY_FORMAT = {
    "GPT-2's alphabet": lambda folder, pieces, merges: save_vocabulary(
        folder, "vocab.json", {p: i for i, p in enumerate(pieces)}, "#version: 0.2\n" + "\n".join(map(" ".join, merges))
    ),
    "as Python prints bytes": lambda folder, pieces, merges: save_vocabulary(
        folder,
        "vocab.json",
        {i: repr(token_bytes(p)) for i, p in enumerate(pieces)},
        "\n".join(f"({token_bytes(a)}, {token_bytes(b)})" for a, b in merges),
    ),
    "Latin-1": lambda folder, pieces, merges: save_vocabulary(
        folder,
        "vocab.json",
        {token_bytes(p).decode("latin-1"): i for i, p in enumerate(pieces)},
        [[token_bytes(each).decode("latin-1") for each in pair] for pair in merges],
    ),
    "escaped": lambda folder, pieces, merges: save_vocabulary(
        folder,
        "vocab.json",
        {i: token_bytes(p).decode(errors="backslashreplace") for i, p in enumerate(pieces)},
        "\n".join(" ".join(token_bytes(each).decode(errors="backslashreplace") for each in pair) for pair in merges),
    ),
    "hexadecimal, with merges in GPT-2's alphabet": lambda folder, pieces, merges: save_vocabulary(
        folder, "vocab.json", {i: token_bytes(p).hex() for i, p in enumerate(pieces)}, "\n".join(map(" ".join, merges))
    ),
    "pickles": lambda folder, pieces, merges: save_vocabulary(
        folder,
        "vocab.pkl",
        {i: token_bytes(p) for i, p in enumerate(pieces)},
        [(token_bytes(a), token_bytes(b)) for a, b in merges],
    ),
    "one pickle": lambda folder, pieces, merges: (folder / "vocab.pkl").write_bytes(
        pickle.dumps(
            {
                "vocab": {i: token_bytes(p) for i, p in enumerate(pieces)},
                "merges": [tuple(map(token_bytes, pair)) for pair in merges],
            }
        )
    ),
}


@subtest_each("alphabet", SAVE_BY_FORMAT)
@subtest_each("padding", [0, 84])
def test_token_ids_match_reference(tmp_path, reference, alphabet, padding):
    reference_tokenizer, pieces, merges = reference
    SAVE_BY_FORMAT[alphabet](tmp_path, pieces, merges)
    tokenizer = read_vocabulary(tmp_path, len(pieces) + padding)
    for text in TEXTS:
        assert (
            tokenizer.encode(text) == reference_tokenizer.encode(text).ids
            and tokenizer.decode(tokenizer.encode(text)) == text
        )
    assert tokenizer.end_of_text == 0 and tokenizer.vocab_size == len(tokenizer.vocabulary) == len(pieces) + padding
    assert [tokenizer.token_bytes(token_id) for token_id in range(len(pieces))] == list(map(token_bytes, pieces))
    assert tokenizer.decode([0, 5, *range(len(pieces), len(pieces) + padding)]) == tokenizer.decode([5])
    with pytest.raises(UserError, match="the vocabulary of another model"):
        read_vocabulary(tmp_path, 200)


@pytest.mark.parametrize("errors", ["replace", "ignore"])
def test_lossy_text_vocabulary_reads_ascii_only(tmp_path, reference, errors):
    """Partial characters have no text: their bytes follow from their ids, but their merges are lost."""
    reference_tokenizer, pieces, merges = reference
    lossy_tokens = [token_bytes(piece).decode(errors=errors) for piece in pieces]
    lines = [" ".join(token_bytes(piece_of_pair).decode(errors=errors) for piece_of_pair in pair) for pair in merges]
    save_vocabulary(tmp_path, "tokenizer_vocab.json", dict(enumerate(lossy_tokens)))
    (tmp_path / "tokenizer_merges.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    tokenizer = read_vocabulary(tmp_path / "tokenizer_vocab.json", len(pieces))
    for text in filter(str.isascii, (*TEXTS, "two\n\nlines\n", TRAINING_TEXT.replace("é", "e"))):
        assert tokenizer.encode(text) == reference_tokenizer.encode(text).ids
    assert [tokenizer.token_bytes(1 + byte) for byte in range(256)] == [bytes([byte]) for byte in range(256)]
    assert "1 merges of tokenizer_vocab.json lost their bytes" in str(tokenizer.note)
    with pytest.raises(UserError, match="no token for 'é'"):
        tokenizer.encode("é")
    (tmp_path / "tokenizer_merges.txt").write_text("\n".join(lines[5:]), encoding="utf-8")
    with pytest.raises(UserError, match="Some merges of tokenizer_vocab.json do not join"):
        read_vocabulary(tmp_path / "tokenizer_vocab.json", len(pieces))


def test_tokenizer_json_and_tiktoken_are_read(tmp_path, reference):
    reference_tokenizer, pieces, _merges = reference
    reference_tokenizer.save(str(tmp_path / "tokenizer.json"))
    assert [read_vocabulary(tmp_path, 320).encode(text) for text in TEXTS] == [
        reference_tokenizer.encode(text).ids for text in TEXTS
    ]
    bundled = load_checkpoint("llama-fables")[1]
    bundled.save(tmp_path / "own.tiktoken")
    for path in (tmp_path / "own.tiktoken", "llama-fables"):
        tokenizer = read_vocabulary(path, bundled.vocab_size + 32)
        assert [tokenizer.encode(text) for text in TEXTS] == [bundled.encode(text) for text in TEXTS]
        assert (
            tokenizer.eos_ids == bundled.eos_ids
            and tokenizer.token_text(bundled.vocab_size) == f"<{bundled.vocab_size}>"
        )


def test_minbpe_keeps_its_pattern(tmp_path, reference):
    reference_tokenizer, pieces, merges = reference
    pairs = "".join(f"{pieces.index(a) - 1} {pieces.index(b) - 1}\n" for a, b in merges)
    pattern = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
    for pattern_line, text in ((pattern, TEXTS[0]), ("", "Once upon")):
        (tmp_path / "own.model").write_text(f"minbpe v1\n{pattern_line}\n1\n{END} {len(pieces) - 1}\n{pairs}")
        ids = [token_id - 1 for token_id in reference_tokenizer.encode(text).ids]
        assert read_vocabulary(tmp_path / "own.model", len(pieces)).encode(text) == ids


@pytest.mark.parametrize(
    ("name", "content"),
    [
        (
            "meta.pkl",
            pickle.dumps({"stoi": {c: i for i, c in enumerate(CHARACTERS)}, "itos": dict(enumerate(CHARACTERS))}),
        ),
        ("input.txt", (TRAINING_TEXT + "\n").encode()),
        ("vocab.json", json.dumps(CHARACTERS).encode()),
        ("stoi.json", json.dumps({c: i for i, c in enumerate(CHARACTERS)}).encode()),
    ],
)
def test_character_vocabulary_is_read(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    tokenizer = read_vocabulary(tmp_path / name, len(CHARACTERS))
    assert tokenizer.encode("a fox\né") == [CHARACTERS.index(character) for character in "a fox\né"]
    assert tokenizer.vocabulary == tuple(CHARACTERS) and tokenizer.merge_rules is None
    with pytest.raises(UserError, match="has no token for 'Q'"):
        tokenizer.encode("Quick")
    with pytest.raises(UserError, match="has no token for"):
        tokenizer.encode("a \ud800")


def encode_field(number, content):
    return bytes([number << 3 | 2]) + encode_length(len(content)) + content


def encode_length(size):
    return bytes([size]) if size < 128 else bytes([size & 127 | 128]) + encode_length(size >> 7)


def test_sentencepiece_model_is_read(tmp_path):
    """Merges follow from the scores, as in Llama's tokenizer."""
    specials = [("<unk>", 0, 2), ("<s>", 0, 3), ("</s>", 0, 3), *((f"<0x{byte:02X}>", 0, 6) for byte in range(256))]
    pieces = [(piece, -rank, 1) for rank, piece in enumerate(["▁t", "he", "▁the", "▁", "t", "h", "e", "n"])]
    content = b"".join(
        encode_field(1, encode_field(1, piece.encode()) + b"\x15" + struct.pack("<f", score) + bytes([24, kind]))
        for piece, score, kind in (*specials, *pieces)
    )
    (tmp_path / "tokenizer.model").write_bytes(
        content + encode_field(2, b"\x18\x02") + encode_field(3, encode_field(1, b"identity"))
    )
    tokenizer = read_vocabulary(tmp_path, 288)
    assert tokenizer.encode("then é") == [261, 266, 262, 3 + 0xC3, 3 + 0xA9] and tokenizer.bos_ids == (1,)
    assert tokenizer.decode(tokenizer.encode("then é")) == "then é" and len(tokenizer.vocabulary) == 288
    (tmp_path / "tokenizer.model").write_bytes(content + encode_field(2, b"\x18\x01"))
    with pytest.raises(UserError, match=r"convert it to tokenizer\.json"):
        read_vocabulary(tmp_path, 288)


class MaliciousPickle:
    def __reduce__(self):
        return os.system, ("touch RUN",)


@subtest_each(
    ("name", "content", "told"),
    [
        (
            "meta.pkl",
            pickle.dumps({"stoi": MaliciousPickle()}),
            r"posix\.system, which cannot be read without running its code",
        ),
        ("vocab.json", b'{"a": 0, "\xc4\xa0the": 1}', r"needs merges\.txt beside it"),
        ("vocab.json", b"{", r"vocab\.json holds no vocabulary that can be read: JSONDecodeError"),
        ("vocab.json", b'{"a": "b"}', "a list of tokens, or a mapping"),
        ("input.txt", b"abc", "3 different characters in 1 lines, and the model 10 tokens"),
        ("x.model", b"\xff", "holds no vocabulary that can be read"),
    ],
)
def test_invalid_vocabulary_is_refused(tmp_path, monkeypatch, name, content, told):
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError, match=told):
        read_vocabulary(name, 10)
    assert not (tmp_path / "RUN").exists()
    with pytest.raises(UserError, match="there is no file 'nowhere'"):
        read_vocabulary("nowhere", 10)


def test_without_vocabulary_tokens_are_bytes():
    large, small = bytes_tokenizer(300), bytes_tokenizer(50)
    assert large.decode(large.encode("é <299>")) == "é <299>" and large.token_text(299) == "<299>"
    assert small.encode(small.example) == [48, 49] and len(small.vocabulary) == 50
    with pytest.raises(UserError, match="has no token for 'O'.* such as '01'"):
        small.encode("Once")
    assert "ids beyond 255 have no text" in str(large.note) and "50 tokens" in str(small.note)
