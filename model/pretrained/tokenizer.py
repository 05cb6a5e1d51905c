"""The tokenizers of models that others trained."""

import json
import re
from collections.abc import Callable, Collection, Sequence
from functools import cached_property
from pathlib import Path
from typing import ClassVar

import tokenizers

from model.errors import ModelError
from model.reading import MOST_TOKENIZER_BYTES, readable

SPACE = "▁"  # SentencePiece's mark for a space
BYTE = re.compile(r"<0x([0-9A-F]{2})>")  # a piece that stands for a byte alone
PRINTED = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
# Byte-level pieces are written with a visible character a byte (Radford et al. 2019, `encoder.py`).
BYTE_OF = {chr(byte): byte for byte in PRINTED} | {
    chr(256 + i): byte for i, byte in enumerate(byte for byte in range(256) if byte not in PRINTED)
}


class PretrainedTokenizer:
    """A tokenizer that came with a model, run by the `tokenizers` package. Special tokens are never read from a text.

    Args:
        tokenizer: of the package.
        bytes_of: from a piece, as its vocabulary writes it, to the bytes that it stands for.
        specials: ids of the special tokens, which stand for no text.
        beginning: ids that the model expects before every text.
        ends: ids after which a text is over.
        vocab_size: of the model, which may have more ids than there are pieces; None: as many.
    """

    merged_bytes: ClassVar[tuple[bytes, ...]] = ()  # its merges are of characters, or not told

    def __init__(
        self,
        tokenizer: tokenizers.Tokenizer,
        bytes_of: Callable[[str], bytes],
        specials: Collection[int],
        beginning: Sequence[int] = (),
        ends: Sequence[int] = (),
        vocab_size: int | None = None,
    ):
        tokenizer.encode_special_tokens = True  # as text
        self._tokenizer, self._bytes_of, self._specials = tokenizer, bytes_of, frozenset(specials)
        self.beginning, self.ends = tuple(beginning), tuple(ends)
        self.vocab_size = vocab_size or tokenizer.get_vocab_size()
        letter = self.encode("a")
        self._adds_space = bool(letter) and self.token_bytes(letter[0]).startswith(b" ")

    @property
    def end_of_text(self) -> int | None:
        return self.ends[0] if self.ends else None

    @cached_property
    def special_tokens(self) -> dict[str, int]:
        return {self._tokenizer.id_to_token(token_id): token_id for token_id in sorted(self._specials)}

    def encode(self, text: str) -> list[int]:
        """The ids of a text, with the space that some put before it, and without `beginning`."""
        return self._tokenizer.encode(text, add_special_tokens=False).ids if text else []

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ids from its beginning: without special tokens, and without a space that was put before it.

        Raises:
            ValueError: an id is not in the vocabulary.
        """
        text = self.continuation(ids)
        return text[1:] if self._adds_space and text.startswith(" ") else text

    def continuation(self, ids: Sequence[int]) -> str:
        """The text of ids that follow others, whose first space is their own."""
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
        return piece.encode() if token_id in self._specials else self._bytes_of(piece)

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
    return bytes(BYTE_OF[character] for character in piece)


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
    if tokenizer.get_vocab_size() > vocab_size:
        raise ModelError(
            "the tokenizer has {tokens} tokens, the model {known}", tokens=tokenizer.get_vocab_size(), known=vocab_size
        )
    specials = [token["id"] for token in found.get("added_tokens", []) if token.get("special")]
    is_byte_level = '"ByteLevel"' in json.dumps([found.get("pre_tokenizer"), found.get("decoder")])
    with_specials, plain = (tokenizer.encode("a", add_special_tokens=special).ids for special in (True, False))
    beginning = with_specials[: with_specials.index(plain[0])] if plain and plain[0] in with_specials else []
    bytes_of = of_visible_bytes if is_byte_level else of_marked_spaces
    return PretrainedTokenizer(tokenizer, bytes_of, specials, beginning, ends, vocab_size)
