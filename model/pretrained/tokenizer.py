"""The tokenizers of models that others trained."""

import json
import os
import re
from collections.abc import Collection, Iterator, Sequence
from functools import cached_property, partial
from itertools import islice
from numbers import Integral
from typing import Any

import tokenizers

from model.errors import ModelError
from model.merges import MergeRules
from model.notes import Note
from model.tokenizer import call_library, replace_surrogates

SPACE = "▁"  # SentencePiece's mark for a space
BYTE = re.compile(r"<0x([0-9A-F]{2})>")  # a piece that stands for a byte alone
PRINTED = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
# Byte-level pieces are written with a visible character a byte (Radford et al. 2019, `encoder.py`).
BYTE_OF = {chr(byte): byte for byte in PRINTED} | {
    chr(256 + i): byte for i, byte in enumerate(byte for byte in range(256) if byte not in PRINTED)
}
CHARACTER_OF = {byte: character for character, byte in BYTE_OF.items()}
PRIVATE = range(0xE000, 0xF900)  # characters for private use, that hardly any text has


class PretrainedTokenizer:
    """A tokenizer that came with a model, run by the `tokenizers` package. Special tokens are never read from a text.

    Texts are joined as the package's decoder joins them. A special token stands for no text.

    Args:
        tokenizer: of the package. All its ids are below `vocab_size`.
        specials: ids of the special tokens.
        beginning: ids that the model expects before every text.
        ends: ids after which a text is over.
        vocab_size: of the model, which may have more ids than there are pieces; None: as many.
        notes: on how its files were read.
    """

    def __init__(
        self,
        tokenizer: tokenizers.Tokenizer,
        specials: Collection[int],
        beginning: Sequence[int] = (),
        ends: Sequence[int] = (),
        vocab_size: int | None = None,
        notes: Sequence[Note] = (),
    ):
        tokenizer.encode_special_tokens = True  # as text
        self._tokenizer = tokenizer
        self.vocab_size = vocab_size or tokenizer.get_vocab_size()
        self._specials = frozenset(
            token_id for token_id in specials if token_id < self.vocab_size and tokenizer.id_to_token(token_id)
        )
        self.beginning, self.ends = (
            tuple(token_id for token_id in ids if 0 <= token_id < self.vocab_size) for ids in (beginning, ends)
        )
        self.notes = tuple(notes)
        self._decoder = [part["type"] for part in _components(tokenizer.decoder)]

    @property
    def end_of_text(self) -> int | None:
        return self.ends[0] if self.ends else None

    @cached_property
    def special_tokens(self) -> dict[str, int]:
        return {self._tokenizer.id_to_token(token_id): token_id for token_id in sorted(self._specials)}

    @cached_property
    def adds_space(self) -> bool:
        """Whether a text's first token stands for a space that was put before it."""
        try:
            letter = self.encode("a")
        except ModelError:  # a vocabulary of digits, say
            return False
        return bool(letter) and self.token_bytes(letter[0]).startswith(b" ")

    def encode(self, text: str) -> list[int]:
        """The ids of a text, with the space that some put before it, and without `beginning`.

        Raises:
            ModelError: see `call_library`: there is no token for a part of the text, and none for what is unknown.
        """
        text = replace_surrogates(text)
        return call_library(self._tokenizer.encode, text, add_special_tokens=False).ids if text else []

    def encode_continuation(self, text: str) -> list[int]:
        """The ids of a text that goes on from another, with no space put before it; errors as `encode`.

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
        """The text of ids from its beginning, without special tokens.

        Raises:
            ValueError: an id is not in the vocabulary.
        """
        for token_id in ids:
            self._check_id(token_id)
        own = [token_id for token_id in ids if token_id not in self._specials]
        if self._decoder == ["ByteLevel"]:  # the package would read "é" that was added to the vocabulary as a byte
            return b"".join(map(self.token_bytes, own)).decode("utf-8", errors="replace")
        return call_library(self._tokenizer.decode, list(map(int, own))) if own else ""

    def decode_continuation(self, ids: Sequence[int], before: Sequence[int] = ()) -> str:
        """Return the text that ids add to that of the ids `before`; errors as `decode`.

        Without any before, their first space is their own.
        """
        if not before:
            added = (b"" if token_id in self._specials else self.token_bytes(token_id) for token_id in ids)
            return b"".join(added).decode("utf-8", errors="replace")
        whole = self.decode([*before, *ids])
        return whole[len(os.path.commonprefix([whole, self.decode(before)])) :]  # which part of a character may end

    def token_bytes(self, token_id: int) -> bytes:
        """The bytes that a token adds within a text, of a special token those of its name; none of an id without a
        piece.

        Raises:
            ValueError: the id is not in the vocabulary.
        """
        self._check_id(token_id)
        return self._all_bytes[token_id]

    def _check_id(self, token_id: int):
        if not isinstance(token_id, Integral) or not 0 <= token_id < self.vocab_size:
            raise ValueError(f"token ids are integers from 0 to {self.vocab_size - 1}, got {token_id!r}")

    @cached_property
    def _all_bytes(self) -> list[bytes]:
        """`token_bytes` of every id."""
        pieces = [self._tokenizer.id_to_token(token_id) or "" for token_id in range(self.vocab_size)]
        # What was added to a byte-level vocabulary, such as two spaces, is looked for in the text before it is cut.
        of_bytes = "ByteLevel" in self._decoder
        plain = {*self._specials, *(self._tokenizer.get_added_tokens_decoder() if of_bytes else ())}
        known, decoded = {}, {}
        for token_id, piece in enumerate(pieces):
            if token_id in plain or not piece:
                known[token_id] = piece.encode()
            elif "ByteFallback" in self._decoder and (byte := BYTE.fullmatch(piece)):
                known[token_id] = bytes.fromhex(byte[1])
            elif of_bytes and (data := read_visible_bytes(piece)) is not None:
                known[token_id] = data
            else:
                decoded[token_id] = piece
        texts = self._decode_within_text(list(decoded.values()))
        known |= {token_id: text.encode() for token_id, text in zip(decoded, texts, strict=True)}
        return [known[token_id] for token_id in range(self.vocab_size)]

    def _decode_within_text(self, pieces: list[str]) -> list[str]:
        """Return what each piece adds to a text with others around it: "##ti" is "ti", and of words joined by spaces
        each is one with the space before it."""
        decoder = self._tokenizer.decoder
        decode = partial(call_library, decoder.decode) if decoder else " ".join
        known = "".join(pieces)
        mark, other = islice((character for character in map(chr, PRIVATE) if character not in known), 2)
        between = decode([mark, other]).removeprefix(mark).removesuffix(other)
        row = [text for piece in pieces for text in (mark, piece)]
        texts = decode([*row, mark]).removeprefix(mark).split(between + mark)[:-1]
        if len(texts) != len(pieces):  # a decoder that looks at more than one token
            texts = [decode([piece]) for piece in pieces]
        return texts

    @cached_property
    def bytes_of_ids(self) -> tuple[bytes | None, ...]:
        """`token_bytes` of every id; None of a special token."""
        return tuple(None if token_id in self._specials else data for token_id, data in enumerate(self._all_bytes))

    @cached_property
    def merge_rules(self) -> MergeRules | None:
        """Which pieces are joined, and in which order; None of a tokenizer that is no byte-pair encoding."""
        if not isinstance(self._tokenizer.model, tokenizers.models.BPE):
            return None
        model = json.loads(self._tokenizer.to_str())["model"]
        parts = [*_components(self._tokenizer.normalizer), *_components(self._tokenizer.pre_tokenizer)]
        of_bytes = "ByteLevel" in [*self._decoder, *(part["type"] for part in parts)]
        space = next((part["replacement"] for part in parts if part["type"] == "Metaspace"), SPACE)
        starts, ends = model["continuing_subword_prefix"], model["end_of_word_suffix"]

        def as_bytes(piece: str) -> bytes:
            """As it stands in a word, with a space for the mark of the word's beginning or end."""
            if of_bytes and (data := read_visible_bytes(piece)) is not None:
                return data
            if byte := BYTE.fullmatch(piece):
                return bytes.fromhex(byte[1])
            if starts:
                piece = piece.removeprefix(starts) if piece.startswith(starts) else f" {piece}"
            if ends and piece.endswith(ends):
                piece = f"{piece.removesuffix(ends)} "
            return piece.replace(space, " ").encode()

        pairs = [pair.split(" ") if isinstance(pair, str) else pair for pair in model["merges"]]
        ranks = {(as_bytes(left), as_bytes(right)): rank for rank, (left, right) in enumerate(pairs)}
        # A piece that stands for a byte alone is no part of a merge: of the same bytes the other has the id.
        pieces = sorted(model["vocab"].items(), key=lambda piece: BYTE.fullmatch(piece[0]) is None)
        plain = {*self._specials, *(self._tokenizer.get_added_tokens_decoder() if of_bytes else ())}
        ids = {as_bytes(piece): token_id for piece, token_id in pieces if token_id not in plain}
        marks = {"word_start": b" " if starts else b"", "word_end": b" " if ends else b""}
        return MergeRules(ids, ranks, of_characters=not of_bytes, **marks)

    def to_json(self) -> str:
        """A `tokenizer.json`, which says of special tokens what the package did before they were read as text."""
        return self._tokenizer.to_str(pretty=True)

    def token_text(self, token_id: int) -> str:
        """How a token is shown: its text, or the hexadecimal values of bytes that are a part of a character; an id
        without a piece, which no text has, as "<id>"."""
        token = self.token_bytes(token_id)
        if not token and not self._tokenizer.id_to_token(token_id):
            return f"<{token_id}>"
        try:
            return token.decode("utf-8")
        except UnicodeDecodeError:
            return "".join(f"\\x{byte:02x}" for byte in token)

    @cached_property
    def vocabulary(self) -> tuple[str, ...]:
        """`token_text` of every id."""
        return tuple(map(self.token_text, range(self.vocab_size)))


def write_visible_bytes(token: bytes) -> str:
    """Return the piece of a byte-level vocabulary that stands for the bytes."""
    return "".join(CHARACTER_OF[byte] for byte in token)


def read_visible_bytes(piece: str) -> bytes | None:
    """Return the bytes that a piece of a byte-level vocabulary stands for; None of one that is written otherwise."""
    try:
        return bytes(map(BYTE_OF.__getitem__, piece))
    except KeyError:
        return None


def _components(part: Any) -> Iterator[dict[str, Any]]:
    """Yield what a normalizer, pre-tokenizer or decoder is described by, or each of a sequence, in their order."""
    yield from _flatten(json.loads(part.__getstate__()) if part else None)


def _flatten(described: dict[str, Any] | None) -> Iterator[dict[str, Any]]:
    if not described:
        return
    sequence = next(
        (described[name] for name in ("normalizers", "pretokenizers", "decoders") if name in described), None
    )
    if sequence is None:
        yield described
    else:
        for component in sequence:
            yield from _flatten(component)
