"""Vocabularies as students save them: the ids are those of `tokenizers`, whatever alphabet tokens are written in."""

import json
import os
import pickle
import struct

import pytest
import tokenizers
from tokenizers import decoders, models, pre_tokenizers, trainers

from explorer.own_module.own_tokenizer import bytes_tokenizer
from explorer.own_module.vocabulary import read_vocabulary
from explorer.state.errors import UserError
from model import load_checkpoint

END = "<|endoftext|>"
TRAINED_ON = (
    "Once upon a time there was a small fox who wanted the moon. Every night she looked up and said: 12 é! " * 4
)
TEXTS = ["Once upon a time", "The  owl\n\nlaughed\tat é ü 漢字 🙂", f"{END} don't", "   "]
CHARACTERS = sorted(set(TRAINED_ON + "\n"))


@pytest.fixture(scope="module")
def reference():
    return made_reference(TRAINED_ON)


def made_reference(text):
    """The package's own, of bytes in order after the special token, as the course has them."""
    trained = tokenizers.Tokenizer(models.BPE())
    trained.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=300, show_progress=False, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()
    )
    trained.train_from_iterator([text], trainer)
    merges = [tuple(pair) for pair in json.loads(trained.to_str())["model"]["merges"]]
    letters = {character: character.encode("utf-8") for character in pre_tokenizers.ByteLevel.alphabet()}
    order = sorted(letters, key=lambda character: as_bytes(character))
    pieces = [END, *order, *("".join(pair) for pair in merges)]
    made = tokenizers.Tokenizer(models.BPE(vocab={piece: each for each, piece in enumerate(pieces)}, merges=merges))
    made.pre_tokenizer, made.decoder = trained.pre_tokenizer, decoders.ByteLevel()
    return made, pieces, merges


def as_bytes(piece):
    """By GPT-2's table: visible bytes are themselves, the others follow from U+0100."""
    printed = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printed]
    return bytes(ord(each) if ord(each) < 256 else others[ord(each) - 256] for each in piece)


def token(piece):
    return piece.encode() if piece == END else as_bytes(piece)


def plain(piece):
    return token(piece).decode(errors="replace")


def save(folder, name, vocabulary, merges=None):
    text = lambda found: pickle.dumps(found, 2) if name.endswith("pkl") else json.dumps(found).encode()  # noqa: E731
    (folder / name).write_bytes(text(vocabulary))
    if isinstance(merges, str):
        (folder / "merges.txt").write_text(merges, encoding="utf-8")
    elif merges:
        (folder / f"merges.{name.split('.')[1]}").write_bytes(text(merges))


SAVED = {
    "GPT-2's alphabet": lambda folder, pieces, merges: save(
        folder, "vocab.json", {p: i for i, p in enumerate(pieces)}, "#version: 0.2\n" + "\n".join(map(" ".join, merges))
    ),
    "as Python prints bytes": lambda folder, pieces, merges: save(
        folder,
        "vocab.json",
        {i: repr(token(p)) for i, p in enumerate(pieces)},
        "\n".join(f"({token(a)}, {token(b)})" for a, b in merges),
    ),
    "Latin-1": lambda folder, pieces, merges: save(
        folder,
        "vocab.json",
        {token(p).decode("latin-1"): i for i, p in enumerate(pieces)},
        [[token(each).decode("latin-1") for each in pair] for pair in merges],
    ),
    "escaped": lambda folder, pieces, merges: save(
        folder,
        "vocab.json",
        {i: token(p).decode(errors="backslashreplace") for i, p in enumerate(pieces)},
        "\n".join(" ".join(token(each).decode(errors="backslashreplace") for each in pair) for pair in merges),
    ),
    "hexadecimal, with merges in GPT-2's alphabet": lambda folder, pieces, merges: save(
        folder, "vocab.json", {i: token(p).hex() for i, p in enumerate(pieces)}, "\n".join(map(" ".join, merges))
    ),
    "pickles": lambda folder, pieces, merges: save(
        folder, "vocab.pkl", {i: token(p) for i, p in enumerate(pieces)}, [(token(a), token(b)) for a, b in merges]
    ),
    "one pickle": lambda folder, pieces, merges: (folder / "vocab.pkl").write_bytes(
        pickle.dumps(
            {
                "vocab": {i: token(p) for i, p in enumerate(pieces)},
                "merges": [tuple(map(token, pair)) for pair in merges],
            }
        )
    ),
}


@pytest.mark.parametrize("alphabet", SAVED)
@pytest.mark.parametrize("padding", [0, 84])
def test_ids_are_those_of_the_reference(tmp_path, reference, alphabet, padding):
    theirs, pieces, merges = reference
    SAVED[alphabet](tmp_path, pieces, merges)
    ours = read_vocabulary(tmp_path, len(pieces) + padding)
    for text in TEXTS:
        assert ours.encode(text) == theirs.encode(text).ids and ours.decode(ours.encode(text)) == text
    assert ours.end_of_text == 0 and ours.vocab_size == len(ours.vocabulary) == len(pieces) + padding
    assert [ours.token_bytes(each) for each in range(len(pieces))] == list(map(token, pieces))
    assert ours.decode([0, 5, *range(len(pieces), len(pieces) + padding)]) == ours.decode([5])
    with pytest.raises(UserError, match="the vocabulary of another model"):
        read_vocabulary(tmp_path, 200)


@pytest.mark.parametrize("errors", ["replace", "ignore"])
def test_of_plain_text_that_lost_bytes_ascii_alone_is_read(tmp_path, reference, errors):
    """A part of a character has no text: its bytes are told by their places, its merges by nothing."""
    theirs, pieces, merges = reference
    written = [token(piece).decode(errors=errors) for piece in pieces]
    lines = [" ".join(token(each).decode(errors=errors) for each in pair) for pair in merges]
    save(tmp_path, "tokenizer_vocab.json", dict(enumerate(written)))
    (tmp_path / "tokenizer_merges.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    ours = read_vocabulary(tmp_path / "tokenizer_vocab.json", len(pieces))
    for text in filter(str.isascii, (*TEXTS, "two\n\nlines\n", TRAINED_ON.replace("é", "e"))):
        assert ours.encode(text) == theirs.encode(text).ids
    assert [ours.token_bytes(1 + byte) for byte in range(256)] == [bytes([byte]) for byte in range(256)]
    assert "1 merges of tokenizer_vocab.json lost their bytes" in str(ours.note)
    with pytest.raises(UserError, match="no token for 'é'"):
        ours.encode("é")
    (tmp_path / "tokenizer_merges.txt").write_text("\n".join(lines[5:]), encoding="utf-8")
    with pytest.raises(UserError, match="The merges of tokenizer_vocab.json are not"):
        read_vocabulary(tmp_path / "tokenizer_vocab.json", len(pieces))


def test_a_tokenizer_json_and_a_file_of_tiktoken(tmp_path, reference):
    theirs, pieces, _merges = reference
    theirs.save(str(tmp_path / "tokenizer.json"))
    assert [read_vocabulary(tmp_path, 320).encode(text) for text in TEXTS] == [
        theirs.encode(text).ids for text in TEXTS
    ]
    ours = load_checkpoint("llama-fables")[1]
    ours.save(tmp_path / "own.tiktoken")
    for place in (tmp_path / "own.tiktoken", "llama-fables"):
        found = read_vocabulary(place, ours.vocab_size + 32)
        assert [found.encode(text) for text in TEXTS] == [ours.encode(text) for text in TEXTS]
        assert found.ends == ours.ends and found.token_text(ours.vocab_size) == f"<{ours.vocab_size}>"


def test_minbpe_keeps_its_own_pattern(tmp_path, reference):
    theirs, pieces, merges = reference
    pairs = "".join(f"{pieces.index(a) - 1} {pieces.index(b) - 1}\n" for a, b in merges)
    pattern = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
    for written, text in ((pattern, TEXTS[0]), ("", "Once upon")):
        (tmp_path / "own.model").write_text(f"minbpe v1\n{written}\n1\n{END} {len(pieces) - 1}\n{pairs}")
        ids = [each - 1 for each in theirs.encode(text).ids]
        assert read_vocabulary(tmp_path / "own.model", len(pieces)).encode(text) == ids


@pytest.mark.parametrize(
    ("name", "content"),
    [
        (
            "meta.pkl",
            pickle.dumps({"stoi": {c: i for i, c in enumerate(CHARACTERS)}, "itos": dict(enumerate(CHARACTERS))}),
        ),
        ("input.txt", (TRAINED_ON + "\n").encode()),
        ("vocab.json", json.dumps(CHARACTERS).encode()),
        ("stoi.json", json.dumps({c: i for i, c in enumerate(CHARACTERS)}).encode()),
    ],
)
def test_characters(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    found = read_vocabulary(tmp_path / name, len(CHARACTERS))
    assert found.encode("a fox\né") == [CHARACTERS.index(character) for character in "a fox\né"]
    assert found.vocabulary == tuple(CHARACTERS) and found.merge_rules is None
    with pytest.raises(UserError, match="has no token for 'Q'"):
        found.encode("Quick")
    with pytest.raises(UserError, match="has no token for"):
        found.encode("a \ud800")


def message(number, content):
    return bytes([number << 3 | 2]) + length(len(content)) + content


def length(size):
    return bytes([size]) if size < 128 else bytes([size & 127 | 128]) + length(size >> 7)


def test_a_model_of_sentencepiece(tmp_path):
    """Its merges are made by score, as in Llama's."""
    specials = [("<unk>", 0, 2), ("<s>", 0, 3), ("</s>", 0, 3), *((f"<0x{byte:02X}>", 0, 6) for byte in range(256))]
    pieces = [(piece, -rank, 1) for rank, piece in enumerate(["▁t", "he", "▁the", "▁", "t", "h", "e", "n"])]
    content = b"".join(
        message(1, message(1, piece.encode()) + b"\x15" + struct.pack("<f", score) + bytes([24, kind]))
        for piece, score, kind in (*specials, *pieces)
    )
    (tmp_path / "tokenizer.model").write_bytes(content + message(2, b"\x18\x02") + message(3, message(1, b"identity")))
    found = read_vocabulary(tmp_path, 288)
    assert found.encode("then é") == [261, 266, 262, 3 + 0xC3, 3 + 0xA9] and found.beginning == (1,)
    assert found.decode(found.encode("then é")) == "then é" and len(found.vocabulary) == 288
    (tmp_path / "tokenizer.model").write_bytes(content + message(2, b"\x18\x01"))
    with pytest.raises(UserError, match=r"convert it to tokenizer\.json"):
        read_vocabulary(tmp_path, 288)


class Code:
    def __reduce__(self):
        return os.system, ("touch RUN",)


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("meta.pkl", pickle.dumps({"stoi": Code()}), r"posix\.system, which cannot be read without running its code"),
        ("vocab.json", b'{"a": 0, "\xc4\xa0the": 1}', r"needs merges\.txt beside it"),
        ("vocab.json", b"{", r"vocab\.json holds no vocabulary that can be read: JSONDecodeError"),
        ("vocab.json", b'{"a": "b"}', "a list of tokens, or a mapping"),
        ("input.txt", b"abc", "3 different characters in 1 lines, and the model 10 tokens"),
        ("x.model", b"\xff", "holds no vocabulary that can be read"),
    ],
)
def test_what_is_no_vocabulary_is_a_sentence(tmp_path, monkeypatch, name, content, told):
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError, match=told):
        read_vocabulary(name, 10)
    assert not (tmp_path / "RUN").exists()
    with pytest.raises(UserError, match="there is no file 'nowhere'"):
        read_vocabulary("nowhere", 10)


def test_without_a_vocabulary_tokens_are_bytes():
    large, small = bytes_tokenizer(300), bytes_tokenizer(50)
    assert large.decode(large.encode("é <299>")) == "é <299>" and large.token_text(299) == "<299>"
    assert small.encode(small.example) == [48, 49] and len(small.vocabulary) == 50
    with pytest.raises(UserError, match="has no token for 'O'.* such as '01'"):
        small.encode("Once")
    assert "ids beyond 255 have no text" in str(large.note) and "50 tokens" in str(small.note)
