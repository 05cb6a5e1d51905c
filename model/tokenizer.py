"""Text to token ids and back."""

import base64
import binascii
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

import tiktoken

END_OF_TEXT = "<|endoftext|>"

# How text is cut into words before any merge: GPT-2's pattern (Radford et al. 2019), in tiktoken's faster spelling.
WORD_PATTERN = r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"""


class Tokenizer:
    """A byte-level byte-pair encoding (Sennrich et al. 2016), run by `tiktoken`.

    Every text can be encoded: what no longer token covers falls back to single bytes. The special token
    `<|endoftext|>` separates documents in training; as text it is ordinary text.

    Args:
        ranks: bytes of each ordinary token -> its id; merges are applied in the order of the ids.
    """

    def __init__(self, ranks: dict[bytes, int]):
        self.end_of_text = max(ranks.values()) + 1
        self.encoding = tiktoken.Encoding(
            name="explorer",
            pat_str=WORD_PATTERN,
            mergeable_ranks=ranks,
            special_tokens={END_OF_TEXT: self.end_of_text},
        )
        self._ranks = ranks

    @property
    def vocab_size(self) -> int:
        return self.encoding.n_vocab

    def encode(self, text: str) -> list[int]:
        """Token ids of the text; nothing in it is read as a special token."""
        return self.encoding.encode_ordinary(text)

    def decode(self, ids: Sequence[int]) -> str:
        """Text of the ids; bytes that are not UTF-8 become U+FFFD.

        Raises:
            ValueError: an id is not in the vocabulary.
        """
        return b"".join(map(self.token_bytes, ids)).decode("utf-8", errors="replace")

    def token_bytes(self, token_id: int) -> bytes:
        """The exact bytes a token stands for.

        Raises:
            ValueError: the id is not in the vocabulary.
        """
        try:
            return self.encoding.decode_single_token_bytes(token_id)
        except (KeyError, OverflowError, TypeError):
            raise ValueError(f"token ids are integers from 0 to {self.vocab_size - 1}, got {token_id!r}") from None

    @cached_property
    def merged_bytes(self) -> tuple[bytes, ...]:
        """The bytes of every ordinary id: single bytes, then what each merge made, in the order they are applied."""
        return tuple(sorted(self._ranks, key=self._ranks.__getitem__))

    def token_text(self, token_id: int) -> str:
        """How a token is shown: its text or, where its bytes are only part of a character, their hex values.

        "é" cut in two is "\\xc3" and "\\xa9", four characters each, so that the two can be told apart.
        """
        token = self.token_bytes(token_id)
        try:
            return token.decode("utf-8")
        except UnicodeDecodeError:
            return "".join(f"\\x{byte:02x}" for byte in token)

    @cached_property
    def vocabulary(self) -> tuple[str, ...]:
        """`token_text` of every id."""
        return tuple(self.token_text(token_id) for token_id in range(self.vocab_size))

    def save(self, path: Path) -> None:
        """Write tiktoken's own format: a line a token, its bytes in base64 and its id."""
        lines = (f"{base64.b64encode(token).decode()} {rank}\n" for token, rank in self._ranks.items())
        path.write_text("".join(lines), encoding="ascii")

    @classmethod
    def load(cls, path: Path) -> "Tokenizer":
        """Read what `save` wrote.

        Raises:
            OSError: the file cannot be read.
            ValueError: it is not in tiktoken's format.
        """
        ranks = {}
        try:
            for line in path.read_text(encoding="ascii").splitlines():
                token, rank = line.split()
                ranks[base64.b64decode(token, validate=True)] = int(rank)
        except (ValueError, binascii.Error) as error:
            raise ValueError(
                f"{path.name} is not a tiktoken vocabulary (base64 token and rank a line): {error}"
            ) from None
        if sorted(ranks.values()) != list(range(len(ranks))) or not all(bytes([b]) in ranks for b in range(256)):
            raise ValueError(f"{path.name} is incomplete: ids must run from 0 without a gap and cover all 256 bytes")
        return cls(ranks)
