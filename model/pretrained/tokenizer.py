"""The tokenizers of models that others trained."""

import json
import re
from collections.abc import Callable, Collection, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import tokenizers

from model.errors import ModelError
from model.merges import MergeRules
from model.reading import MOST_TOKENIZER_BYTES, read_json, readable

TOKENIZER_JSON, VOCAB, MERGES = "tokenizer.json", "vocab.json", "merges.txt"
SETTINGS, NAMED = "tokenizer_config.json", ("bos_token", "eos_token", "unk_token", "pad_token")
SPACE = "▁"  # SentencePiece's mark for a space
BYTE = re.compile(r"<0x([0-9A-F]{2})>")  # a piece that stands for a byte alone
PRINTED = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
# Byte-level pieces are written with a visible character a byte (Radford et al. 2019, `encoder.py`).
BYTE_OF = {chr(byte): byte for byte in PRINTED} | {
    chr(256 + i): byte for i, byte in enumerate(byte for byte in range(256) if byte not in PRINTED)
}
CHARACTER_OF = {byte: character for character, byte in BYTE_OF.items()}


class PretrainedTokenizer:
    """A tokenizer that came with a model, run by the `tokenizers` package. Special tokens are never read from a text.

    Args:
        tokenizer: of the package.
        bytes_of: from a piece, as its vocabulary writes it, to the bytes that it stands for.
        specials: ids of the special tokens, which stand for no text.
        beginning: ids that the model expects before every text.
        ends: ids after which a text is over.
        vocab_size: of the model, which may have more ids than there are pieces; None: as many.
        plain: ids of pieces that are written as the text that they stand for, whatever the vocabulary's way is.
    """

    def __init__(
        self,
        tokenizer: tokenizers.Tokenizer,
        bytes_of: Callable[[str], bytes],
        specials: Collection[int],
        beginning: Sequence[int] = (),
        ends: Sequence[int] = (),
        vocab_size: int | None = None,
        plain: Collection[int] = (),
    ):
        tokenizer.encode_special_tokens = True  # as text
        self._tokenizer, self._bytes_of, self._specials = tokenizer, bytes_of, frozenset(specials)
        self._plain = self._specials | frozenset(plain)
        self.beginning, self.ends = tuple(beginning), tuple(ends)
        self.vocab_size = vocab_size or tokenizer.get_vocab_size()
        letter = self.encode("a")
        self.adds_space = bool(letter) and self.token_bytes(letter[0]).startswith(b" ")

    @property
    def end_of_text(self) -> int | None:
        return self.ends[0] if self.ends else None

    @cached_property
    def special_tokens(self) -> dict[str, int]:
        return {self._tokenizer.id_to_token(token_id): token_id for token_id in sorted(self._specials)}

    def encode(self, text: str) -> list[int]:
        """The ids of a text, with the space that some put before it, and without `beginning`."""
        return self._tokenizer.encode(text, add_special_tokens=False).ids if text else []

    def encode_continuation(self, text: str) -> list[int]:
        """The ids of a text that goes on from another, with no space put before it.

        Where the space cannot be told from the text's first token, it stays.
        """
        if not self.adds_space:
            return self.encode(text)
        if text.startswith(" "):
            return self.encode(text[1:])
        ids, before = self.encode(f"\n{text}"), b""
        for count, token_id in enumerate(ids, start=1):
            before += self.token_bytes(token_id)
            if before == b" \n":
                return ids[count:]
        return self.encode(text)

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ids from its beginning: without special tokens, and without a space that was put before it.

        Raises:
            ValueError: an id is not in the vocabulary.
        """
        text = self.decode_continuation(ids)
        return text[1:] if self.adds_space and text.startswith(" ") else text

    def decode_continuation(self, ids: Sequence[int]) -> str:
        """The text of ids that go on from others, whose first space is their own; errors as `decode`."""
        found = (b"" if token_id in self._specials else self.token_bytes(token_id) for token_id in ids)
        return b"".join(found).decode("utf-8", errors="replace")

    def token_bytes(self, token_id: int) -> bytes:
        """The exact bytes a token stands for, of a special token those of its name; none of an id without a piece.

        Raises:
            ValueError: the id is not in the vocabulary.
        """
        if not 0 <= token_id < self.vocab_size:
            raise ValueError(f"token ids are integers from 0 to {self.vocab_size - 1}, got {token_id!r}")
        piece = self._tokenizer.id_to_token(token_id) or ""
        return piece.encode() if token_id in self._plain else self._bytes_of(piece)

    @cached_property
    def bytes_of_ids(self) -> tuple[bytes | None, ...]:
        """`token_bytes` of every id; None of a special token."""
        ids = range(self.vocab_size)
        return tuple(None if token_id in self._specials else self.token_bytes(token_id) for token_id in ids)

    @cached_property
    def merge_rules(self) -> MergeRules | None:
        """Which pieces are joined, and in which order; None of a tokenizer that is no byte-pair encoding."""
        model = json.loads(self._tokenizer.to_str())["model"]
        if model["type"] != "BPE":
            return None
        pairs = [pair.split(" ") if isinstance(pair, str) else pair for pair in model["merges"]]
        ranks = {(self._bytes_of(left), self._bytes_of(right)): rank for rank, (left, right) in enumerate(pairs)}
        # A piece that stands for a byte alone is no part of a merge: of the same bytes the other has the id.
        pieces = sorted(model["vocab"].items(), key=lambda piece: BYTE.fullmatch(piece[0]) is None)
        ids = {self._bytes_of(piece): token_id for piece, token_id in pieces if token_id not in self._plain}
        return MergeRules(ids, ranks, of_characters=self._bytes_of is of_marked_spaces)

    def to_json(self) -> str:
        """A `tokenizer.json`, which says of special tokens what the package did before they were read as text."""
        return self._tokenizer.to_str(pretty=True)

    def token_text(self, token_id: int) -> str:
        """How a token is shown: its text, or the hexadecimal values of bytes that are a part of a character."""
        token = self.token_bytes(token_id)
        try:
            return token.decode("utf-8")
        except UnicodeDecodeError:
            return "".join(f"\\x{byte:02x}" for byte in token)

    @cached_property
    def vocabulary(self) -> tuple[str, ...]:
        """`token_text` of every id."""
        return tuple(map(self.token_text, range(self.vocab_size)))


def of_marked_spaces(piece: str) -> bytes:
    """Of a SentencePiece vocabulary (Kudo & Richardson 2018), where `<0x0A>` is a byte."""
    byte = BYTE.fullmatch(piece)
    return bytes.fromhex(byte[1]) if byte else piece.replace(SPACE, " ").encode()


def of_visible_bytes(piece: str) -> bytes:
    """Of a byte-level vocabulary."""
    return bytes(map(BYTE_OF.__getitem__, piece))


def read_tokenizer(folder: Path, vocab_size: int, ends: Sequence[int]) -> PretrainedTokenizer:
    """The tokenizer of a folder: of `tokenizer.json`, or else of GPT-2's `vocab.json` and `merges.txt`.

    Args:
        vocab_size: of its model.
        ends: ids after which a text is over.

    Raises:
        ModelError: a file cannot be read, or has more tokens than the model.
    """
    if (folder / TOKENIZER_JSON).exists() or not (folder / VOCAB).exists():
        return read_tokenizer_json(folder / TOKENIZER_JSON, vocab_size, ends)
    for name in (VOCAB, MERGES):
        readable(folder / name, MOST_TOKENIZER_BYTES)
    try:
        bpe = tokenizers.models.BPE.from_file(str(folder / VOCAB), str(folder / MERGES))
    except Exception as error:  # the package raises no narrower one
        raise ModelError("its {file} cannot be read: {why}", file=f"{VOCAB}, {MERGES}", why=error) from None
    tokenizer = tokenizers.Tokenizer(bpe)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    check_size(tokenizer, vocab_size)
    said = read_json(folder / SETTINGS) if (folder / SETTINGS).exists() else {}
    specials = {name: tokenizer.token_to_id(text_of(said[name])) for name in NAMED if said.get(name)}
    begins = said.get("add_bos_token") is True and specials.get("bos_token") is not None
    known = {token_id for token_id in specials.values() if token_id is not None} | set(ends)
    beginning = [specials["bos_token"]] if begins else []
    return PretrainedTokenizer(tokenizer, of_visible_bytes, known, beginning, ends, vocab_size)


def text_of(token: Any) -> str:
    """Of a special token, which files name by its text or by an object that has it."""
    return str(token.get("content") if isinstance(token, dict) else token)


def check_size(tokenizer: tokenizers.Tokenizer, vocab_size: int):
    if tokenizer.get_vocab_size() > vocab_size:
        raise ModelError(
            "the tokenizer has {tokens} tokens, the model {known}", tokens=tokenizer.get_vocab_size(), known=vocab_size
        )


def in_visible_bytes(token: bytes) -> str:
    """A piece of a byte-level vocabulary."""
    return "".join(CHARACTER_OF[byte] for byte in token)


def read_tokenizer_json(path: Path, vocab_size: int, ends: Sequence[int]) -> PretrainedTokenizer:
    """The tokenizer of a `tokenizer.json`.

    Args:
        vocab_size: of its model.
        ends: ids after which a text is over.

    Raises:
        ModelError: it cannot be read, or has more tokens than the model.
    """
    try:
        content = readable(path, MOST_TOKENIZER_BYTES).read_text(encoding="utf-8")
        found, tokenizer = json.loads(content), tokenizers.Tokenizer.from_str(content)
    except ModelError:
        raise
    except Exception as error:  # the package raises no narrower one
        raise ModelError("its {file} cannot be read: {why}", file=path.name, why=error) from None
    check_size(tokenizer, vocab_size)
    specials = [token["id"] for token in found.get("added_tokens", []) if token.get("special")]
    is_byte_level = '"ByteLevel"' in json.dumps([found.get("pre_tokenizer"), found.get("decoder")])
    with_specials, plain = (tokenizer.encode("a", add_special_tokens=special).ids for special in (True, False))
    beginning = with_specials[: with_specials.index(plain[0])] if plain and plain[0] in with_specials else []
    bytes_of = of_visible_bytes if is_byte_level else of_marked_spaces
    # What was added to a byte-level vocabulary, such as two spaces, is looked for in the text before it is cut.
    added = [token["id"] for token in found.get("added_tokens", []) if is_byte_level]
    return PretrainedTokenizer(tokenizer, bytes_of, specials, beginning, ends, vocab_size, added)
