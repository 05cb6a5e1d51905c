"""Tokenizer of a pretrained model."""

import json
import os
import re
from collections.abc import Collection, Iterator, Sequence
from functools import cached_property, partial
from itertools import islice
from numbers import Integral
from typing import Any

import tokenizers

from model.errors import ModelError, Note
from model.tokenizer import MergeRules, call_tokenizer_library, replace_surrogates

SPACE = "▁"  # SentencePiece's mark for a space
BYTE = re.compile(r"<0x([0-9A-F]{2})>")  # a piece that stands for a byte alone
PRINTED = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
# Byte-level pieces are written with a visible character a byte (Radford et al. 2019, `encoder.py`).
VISIBLE_TO_BYTE = {chr(byte): byte for byte in PRINTED} | {
    chr(256 + i): byte for i, byte in enumerate(byte for byte in range(256) if byte not in PRINTED)
}
BYTE_TO_VISIBLE = {byte: character for character, byte in VISIBLE_TO_BYTE.items()}
PRIVATE = range(0xE000, 0xF900)  # characters for private use, that hardly any text has


class PretrainedTokenizer:
    """A pretrained model's tokenizer, run by the `tokenizers` package. Special tokens are never read from a text.

    Texts are joined as the package's decoder joins them. A special token stands for no text.

    Args:
        tokenizer: of the package. All its ids are below `vocab_size`.
        specials: ids of the special tokens.
        bos_ids: ids that the model expects before every text.
        eos_ids: ids that end a text.
        vocab_size: of the model, which may have more ids than there are pieces; None: the number of pieces.
        notes: on how its files were read.
    """

    def __init__(
        self,
        tokenizer: tokenizers.Tokenizer,
        specials: Collection[int],
        bos_ids: Sequence[int] = (),
        eos_ids: Sequence[int] = (),
        vocab_size: int | None = None,
        notes: Sequence[Note] = (),
    ):
        tokenizer.encode_special_tokens = True  # as text
        self._tokenizer = tokenizer
        self.vocab_size = vocab_size or tokenizer.get_vocab_size()
        self._specials = frozenset(
            token_id for token_id in specials if token_id < self.vocab_size and tokenizer.id_to_token(token_id)
        )
        self.bos_ids, self.eos_ids = (
            tuple(token_id for token_id in ids if 0 <= token_id < self.vocab_size) for ids in (bos_ids, eos_ids)
        )
        self.notes = tuple(notes)
        self._decoder = [component["type"] for component in _components(tokenizer.decoder)]

    @property
    def beginning(self) -> tuple[int, ...]:
        """Earlier name of `bos_ids`."""
        return self.bos_ids

    @property
    def end_of_text(self) -> int | None:
        return self.eos_ids[0] if self.eos_ids else None

    @cached_property
    def special_tokens(self) -> dict[str, int]:
        return {self._tokenizer.id_to_token(token_id): token_id for token_id in sorted(self._specials)}

    @cached_property
    def adds_space(self) -> bool:
        """True if a text's first token includes a space that the tokenizer adds before the text."""
        try:
            letter = self.encode("a")
        except ModelError:  # a vocabulary of digits, say
            return False
        return bool(letter) and self.token_bytes(letter[0]).startswith(b" ")

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text, with the space that some tokenizers add before it, and without `bos_ids`.

        Raises:
            ModelError: see `call_tokenizer_library`: a part of the text has no token, and there is no token for unknown
                text.
        """
        text = replace_surrogates(text)
        return call_tokenizer_library(self._tokenizer.encode, text, add_special_tokens=False).ids if text else []

    def encode_continuation(self, text: str) -> list[int]:
        """Return the ids of a text that continues another, without an added space; errors as in `encode`.

        If the space cannot be separated from the text's first token, it stays.
        """
        if not self.adds_space:
            return self.encode(text)
        if text.startswith(" "):
            return self.encode(text[1:])
        ids, prefix = self.encode(f"\n{text}"), b""
        for count, token_id in enumerate(ids, start=1):
            prefix += self.token_bytes(token_id)
            if prefix == b" \n":
                return ids[count:]
        return self.encode(text)

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of ids that begin a text, without special tokens.

        Raises:
            ValueError: an id is not in the vocabulary.
        """
        for token_id in ids:
            self._check_id(token_id)
        ordinary_ids = [token_id for token_id in ids if token_id not in self._specials]
        if self._decoder == ["ByteLevel"]:  # the package would read "é" that was added to the vocabulary as a byte
            return b"".join(map(self.token_bytes, ordinary_ids)).decode("utf-8", errors="replace")
        return call_tokenizer_library(self._tokenizer.decode, list(map(int, ordinary_ids))) if ordinary_ids else ""

    def decode_continuation(self, ids: Sequence[int], before: Sequence[int] = ()) -> str:
        """Return the text that ids add to the text of the ids `before`; errors as in `decode`.

        If `before` is empty, the first space is kept.
        """
        if not before:
            added = (b"" if token_id in self._specials else self.token_bytes(token_id) for token_id in ids)
            return b"".join(added).decode("utf-8", errors="replace")
        text = self.decode([*before, *ids])
        return text[len(os.path.commonprefix([text, self.decode(before)])) :]  # may end within a character

    def token_bytes(self, token_id: int) -> bytes:
        """Return the bytes that a token adds within a text; a special token's name; b"" for an id without a piece.

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
        # Tokens added to a byte-level vocabulary, such as two spaces, are matched in the text before it is split.
        is_byte_level = "ByteLevel" in self._decoder
        literal_ids = {*self._specials, *(self._tokenizer.get_added_tokens_decoder() if is_byte_level else ())}
        bytes_by_id, decoded = {}, {}
        for token_id, piece in enumerate(pieces):
            if token_id in literal_ids or not piece:
                bytes_by_id[token_id] = piece.encode()
            elif "ByteFallback" in self._decoder and (byte := BYTE.fullmatch(piece)):
                bytes_by_id[token_id] = bytes.fromhex(byte[1])
            elif is_byte_level and (data := decode_byte_level_piece(piece)) is not None:
                bytes_by_id[token_id] = data
            else:
                decoded[token_id] = piece
        texts = self._decode_within_text(list(decoded.values()))
        bytes_by_id |= {token_id: text.encode() for token_id, text in zip(decoded, texts, strict=True)}
        return [bytes_by_id[token_id] for token_id in range(self.vocab_size)]

    def _decode_within_text(self, pieces: list[str]) -> list[str]:
        """Return the text that each piece adds between others.

        For example "##ti" is "ti", and a word of a tokenizer that joins words by spaces has the space before it.
        """
        decoder = self._tokenizer.decoder
        decode = partial(call_tokenizer_library, decoder.decode) if decoder else " ".join
        all_characters = "".join(pieces)
        mark, other = islice((character for character in map(chr, PRIVATE) if character not in all_characters), 2)
        between = decode([mark, other]).removeprefix(mark).removesuffix(other)
        row = [text for piece in pieces for text in (mark, piece)]
        texts = decode([*row, mark]).removeprefix(mark).split(between + mark)[:-1]
        if len(texts) != len(pieces):  # a decoder that looks at more than one token
            texts = [decode([piece]) for piece in pieces]
        return texts

    @cached_property
    def bytes_of_ids(self) -> tuple[bytes | None, ...]:
        """`token_bytes` of every id; None for a special token."""
        return tuple(None if token_id in self._specials else data for token_id, data in enumerate(self._all_bytes))

    @cached_property
    def merge_rules(self) -> MergeRules | None:
        """Merges of the byte-pair encoding, in order; None if the tokenizer is of another kind."""
        if not isinstance(self._tokenizer.model, tokenizers.models.BPE):
            return None
        model = json.loads(self._tokenizer.to_str())["model"]
        components = [*_components(self._tokenizer.normalizer), *_components(self._tokenizer.pre_tokenizer)]
        is_byte_level = "ByteLevel" in [*self._decoder, *(component["type"] for component in components)]
        space = next((component["replacement"] for component in components if component["type"] == "Metaspace"), SPACE)
        starts, ends = model["continuing_subword_prefix"], model["end_of_word_suffix"]

        def piece_to_bytes(piece: str) -> bytes:
            """Return a piece as bytes of a word, with a space for the mark of the word's beginning or end."""
            if is_byte_level and (data := decode_byte_level_piece(piece)) is not None:
                return data
            if byte := BYTE.fullmatch(piece):
                return bytes.fromhex(byte[1])
            if starts:
                piece = piece.removeprefix(starts) if piece.startswith(starts) else f" {piece}"
            if ends and piece.endswith(ends):
                piece = f"{piece.removesuffix(ends)} "
            return piece.replace(space, " ").encode()

        pairs = [pair.split(" ") if isinstance(pair, str) else pair for pair in model["merges"]]
        ranks = {(piece_to_bytes(left), piece_to_bytes(right)): rank for rank, (left, right) in enumerate(pairs)}
        # Single-byte fallback pieces take no part in merges: of two pieces with equal bytes, the other's id counts.
        pieces = sorted(model["vocab"].items(), key=lambda piece: BYTE.fullmatch(piece[0]) is None)
        literal_ids = {*self._specials, *(self._tokenizer.get_added_tokens_decoder() if is_byte_level else ())}
        ids = {piece_to_bytes(piece): token_id for piece, token_id in pieces if token_id not in literal_ids}
        marks = {"word_start": b" " if starts else b"", "word_end": b" " if ends else b""}
        return MergeRules(ids, ranks, is_character_level=not is_byte_level, **marks)

    def to_json(self) -> str:
        """Return a `tokenizer.json`; in it special tokens are handled as before they were read as text."""
        return self._tokenizer.to_str(pretty=True)

    def token_text(self, token_id: int) -> str:
        """Return a token's display text: its text, or hex values of bytes that are part of a character.

        An id without a piece, which no text has, is "<id>".
        """
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


def encode_byte_level_piece(token: bytes) -> str:
    """Return bytes as a piece of a byte-level vocabulary, one printable character per byte (as in GPT-2)."""
    return "".join(BYTE_TO_VISIBLE[byte] for byte in token)


def decode_byte_level_piece(piece: str) -> bytes | None:
    """Return the bytes of a piece of a byte-level vocabulary; None if it has other characters."""
    try:
        return bytes(map(VISIBLE_TO_BYTE.__getitem__, piece))
    except KeyError:
        return None


def _components(component: Any) -> Iterator[dict[str, Any]]:
    """Yield the description of a normalizer, pre-tokenizer or decoder, or of each component of a sequence, in order."""
    yield from _flatten(json.loads(component.__getstate__()) if component else None)


def _flatten(description: dict[str, Any] | None) -> Iterator[dict[str, Any]]:
    if not description:
        return
    sequence = next(
        (description[name] for name in ("normalizers", "pretokenizers", "decoders") if name in description), None
    )
    if sequence is None:
        yield description
    else:
        for component in sequence:
            yield from _flatten(component)
