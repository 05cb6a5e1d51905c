"""Byte-level BPE tokenizer: text to token ids and back, the merges of a word; and the messages of a conversation."""

import base64
import binascii
import itertools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import tiktoken

from model.errors import ModelError


@dataclass(frozen=True, eq=False)
class MergeRules:
    """The merges of a byte-pair encoding (Sennrich et al. 2016), with their order.

    Attributes:
        ids: bytes of each piece -> its id.
        ranks: two pieces -> the rank of their merge. None if any two pieces merge that make a piece together,
            whose id is then the rank, as in `tiktoken`.
        is_character_level: whether a text is split into characters first, as by SentencePiece, or into bytes.
        word_start: mark at the start of a word, part of its first piece; empty if there is none.
        word_end: mark at the end of a word, part of its last piece; empty if there is none.
    """

    ids: Mapping[bytes, int]
    ranks: Mapping[tuple[bytes, bytes], int] | None = None
    is_character_level: bool = False
    word_start: bytes = b""
    word_end: bytes = b""

    @cached_property
    def pieces(self) -> dict[int, bytes]:
        """Bytes of each id."""
        return {token_id: piece for piece, token_id in self.ids.items()}

    def rank(self, left: bytes, right: bytes) -> int | None:
        """Return the rank of the merge of two neighbours, the lowest is made first; None if they do not merge."""
        return self.ids.get(left + right) if self.ranks is None else self.ranks.get((left, right))

    def initial_pieces(self, text: bytes) -> tuple[bytes, ...]:
        """Return the pieces of a word before any merge."""
        if self.is_character_level:
            start = self.word_start if text.startswith(self.word_start) else b""
            end = self.word_end if text.endswith(self.word_end) else b""
            try:
                characters = [character.encode() for character in text[len(start) : len(text) - len(end)].decode()]
            except UnicodeDecodeError:  # part of a character: no merges apply
                characters = []
            if characters:
                characters[0] = start + characters[0]
                characters[-1] += end
                return tuple(characters)
        return tuple(bytes([byte]) for byte in text)


@dataclass(frozen=True)
class MergeStep:
    """One merge.

    Attributes:
        pieces: the whole text after it, piece by piece.
        index: of the merged piece in `pieces`.
        pair: the two pieces that were merged.
        token_id: id of the merged piece.
    """

    pieces: tuple[bytes, ...]
    index: int
    pair: tuple[bytes, bytes]
    token_id: int


def merge_steps(text: bytes, rules: MergeRules) -> list[MergeStep]:
    """Return the merges that turn the initial pieces into tokens.

    Each step merges the neighbours of the lowest rank, the leftmost of equals, until no two neighbours merge. The
    last step's `pieces` are the tokens; a text without merges has no steps.

    Args:
        text: a word, within which all neighbours may be merged.
    """
    pieces = rules.initial_pieces(text)
    steps = []
    while True:
        ranks = [rules.rank(*pair) for pair in zip(pieces, pieces[1:], strict=False)]
        candidates = [(rank, index) for index, rank in enumerate(ranks) if rank is not None]
        if not candidates:
            return steps
        _rank, index = min(candidates)
        pair = pieces[index], pieces[index + 1]
        merged = pair[0] + pair[1]
        pieces = (*pieces[:index], merged, *pieces[index + 2 :])
        steps.append(MergeStep(pieces, index, pair, rules.ids[merged]))


END_OF_TEXT = "<|endoftext|>"

# How text is cut into words before any merge: GPT-2's pattern (Radford et al. 2019), in tiktoken's faster spelling.
WORD_PATTERN = r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"""

# White space in a row is cut before its last character, as WORD_PATTERN does: `tiktoken` panics at a million of them.
WHITE_SPACE = r"\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
LONG_SPACE = re.compile(f"(?<![{WHITE_SPACE}])[{WHITE_SPACE}]{{100000,}}(?=[^{WHITE_SPACE}])")


def replace_surrogates(text: str) -> str:
    """Return the text with U+FFFD for each lone half of a surrogate pair, and the character for two halves.

    JSON can hold halves, UTF-8 cannot.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def call_tokenizer_library(function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """Call a function of a tokenizer library and return its result.

    Raises:
        ModelError: it fails on a text, or panics, as Rust code does at an unexpected error.
    """
    try:
        return function(*arguments, **options)
    except BaseException as error:
        # `tokenizers` raises nothing narrower than Exception, `tiktoken` ValueErrors, and a panic is no Exception.
        if type(error) not in (Exception, ValueError) and type(error).__name__ != "PanicException":
            raise
        raise ModelError("the tokenizer fails at this text: {why}", why=str(error)) from error


class TokenizerBase:
    """Base of tokenizers of all models, which have `encode`, `decode`, `token_bytes` and `merge_rules` of their own.

    Attributes:
        bos_ids: ids that the model expects before every text.
        eos_ids: ids that end a text.
        adds_space: whether a space is added before a text.
        special_tokens: text of each special token -> its id.
        vocab_size: number of ids.
    """

    bos_ids: tuple[int, ...] = ()
    eos_ids: tuple[int, ...]
    adds_space: bool = False
    special_tokens: dict[str, int]
    vocab_size: int
    _specials: frozenset[int]  # ids of the special tokens

    @property
    def beginning(self) -> tuple[int, ...]:
        """Earlier name of `bos_ids`."""
        return self.bos_ids

    @property
    def end_of_text(self) -> int | None:
        return self.eos_ids[0] if self.eos_ids else None

    def encode_continuation(self, text: str) -> list[int]:
        """Return the ids of a text that continues another; errors as in `encode`."""
        return self.encode(text)

    def decode_continuation(self, ids: Sequence[int], before: Sequence[int] = ()) -> str:
        """Return the text that ids add to the text of the ids `before`; errors as in `decode`."""
        return self.decode(ids)

    @cached_property
    def bytes_of_ids(self) -> tuple[bytes | None, ...]:
        """`token_bytes` of every id; None for a special token."""
        ids = range(self.vocab_size)
        return tuple(None if token_id in self._specials else self.token_bytes(token_id) for token_id in ids)

    def token_text(self, token_id: int) -> str:
        r"""Return a token's display text: its text, hex values of bytes that are part of a character, or "<id>".

        "é" cut in two is "\\xc3" and "\\xa9", four characters each, so that the two differ.
        """
        token = self.token_bytes(token_id)
        if not token:
            return f"<{token_id}>"
        try:
            return token.decode("utf-8")
        except UnicodeDecodeError:
            return "".join(f"\\x{byte:02x}" for byte in token)

    @cached_property
    def vocabulary(self) -> tuple[str, ...]:
        """`token_text` of every id."""
        return tuple(map(self.token_text, range(self.vocab_size)))


class Tokenizer(TokenizerBase):
    """A byte-level byte-pair encoding (Sennrich et al. 2016), run by `tiktoken`.

    Every text can be encoded, since single bytes are tokens. The special token `<|endoftext|>` separates documents
    in training; in a text, special tokens are ordinary text.

    Args:
        ranks: bytes of each ordinary token -> its id; merges are applied in the order of the ids.
        special_tokens: texts of the special tokens, `<|endoftext|>` among them; their ids follow the ordinary
            ones.

    Raises:
        ValueError: special tokens are empty, contain white space or repeat, or `<|endoftext|>` is not among them.
    """

    def __init__(self, ranks: dict[bytes, int], special_tokens: Sequence[str] = (END_OF_TEXT,)):
        first = max(ranks.values()) + 1
        self.special_tokens = {text: first + i for i, text in enumerate(special_tokens)}
        if len(self.special_tokens) < len(special_tokens) or END_OF_TEXT not in self.special_tokens:
            raise ModelError(
                "special tokens are each named once and {end} is one, got {got}", end=END_OF_TEXT, got=special_tokens
            )
        if not all(text and not re.search(r"\s", text) for text in special_tokens):
            raise ModelError("special tokens have no white space, got {got}", got=special_tokens)
        self._specials = frozenset(self.special_tokens.values())
        self.eos_ids = (self.special_tokens[END_OF_TEXT],)
        self.encoding = tiktoken.Encoding(
            name="explorer", pat_str=WORD_PATTERN, mergeable_ranks=ranks, special_tokens=self.special_tokens
        )
        self._ranks = ranks

    @property
    def vocab_size(self) -> int:
        return self.encoding.n_vocab

    def encode(self, text: str) -> list[int]:
        """Return the token ids of a text; errors as of `call_tokenizer_library`."""
        text = replace_surrogates(text)
        cuts = [match.end() - 1 for match in LONG_SPACE.finditer(text)]
        ids = []
        for start, end in itertools.pairwise((0, *cuts, len(text))):
            ids += call_tokenizer_library(self.encoding.encode_ordinary, text[start:end])
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of ids; bytes that are not UTF-8 become U+FFFD.

        Raises:
            ValueError: an id is not in the vocabulary.
        """
        return b"".join(map(self.token_bytes, ids)).decode("utf-8", errors="replace")

    def token_bytes(self, token_id: int) -> bytes:
        """Return the exact bytes of a token.

        Raises:
            ValueError: the id is not in the vocabulary.
        """
        try:
            return self.encoding.decode_single_token_bytes(token_id)
        except (KeyError, OverflowError, TypeError):
            raise ValueError(f"token ids are integers from 0 to {self.vocab_size - 1}, got {token_id!r}") from None

    @cached_property
    def merge_rules(self) -> MergeRules:
        """Merges of the byte-pair encoding, in order."""
        return MergeRules(self._ranks)

    @cached_property
    def merges(self) -> tuple[tuple[bytes, bytes], ...]:
        """Pairs of tokens that each merge joins, in the order they are applied.

        Raises:
            ValueError: a token cannot be made by merges, so that no text has it.
        """
        pairs = []
        for token in sorted(self._ranks, key=self._ranks.__getitem__):
            if len(token) > 1:
                steps = merge_steps(token, self.merge_rules)
                if not steps or steps[-1].pieces != (token,):
                    raise ValueError(f"no merge makes the token {token!r}")
                pairs.append(steps[-1].pair)
        return tuple(pairs)

    def save(self, path: Path) -> None:
        """Write tiktoken's own format: a line per token with its bytes in base64 and its id.

        If `<|endoftext|>` is not the only special token, a line with a third word, "special", follows for each of
        them.
        """
        lines = [f"{base64.b64encode(token).decode()} {rank}\n" for token, rank in self._ranks.items()]
        if tuple(self.special_tokens) != (END_OF_TEXT,):
            special = self.special_tokens.items()
            lines += [f"{base64.b64encode(text.encode()).decode()} {rank} special\n" for text, rank in special]
        path.write_text("".join(lines), encoding="ascii")

    @classmethod
    def load(cls, path: Path) -> "Tokenizer":
        """Read a tokenizer from the file that `save` wrote.

        Raises:
            OSError: the file cannot be read.
            ValueError: it is not in tiktoken's format.
        """
        ranks, special = {}, {}
        try:
            for line in path.read_text(encoding="ascii").splitlines():
                token, rank, *kind = line.split()
                if kind not in ([], ["special"]):
                    raise ModelError("{got!r} is no kind of token", got=kind[0])
                (special if kind else ranks)[base64.b64decode(token, validate=True)] = int(rank)
            texts = [token.decode() for token in special] or [END_OF_TEXT]
        except (ValueError, binascii.Error) as error:
            raise ModelError(
                "{file} is not a tiktoken vocabulary (base64 token and rank a line): {why}", file=path.name, why=error
            ) from None
        if sorted(ranks.values()) != list(range(len(ranks))) or not all(bytes([b]) in ranks for b in range(256)):
            raise ModelError(
                "{file} is incomplete: ids must run from 0 without a gap and cover all 256 bytes", file=path.name
            )
        if list(special.values()) != list(range(len(ranks), len(ranks) + len(special))):
            raise ModelError(
                "{file} is incomplete: the ids of special tokens must follow all others in order", file=path.name
            )
        return cls(ranks, texts)


ROLES = ("system", "user", "assistant", "tool")
Message = Mapping[str, Any]  # "role": one of `ROLES`; "content": a text


def check_messages(messages: Sequence[Message]) -> list[dict[str, str]]:
    """Return messages as plain dictionaries of texts; ModelError unless each has a role and a content."""
    if not isinstance(messages, Sequence) or isinstance(messages, str) or not messages:
        raise ModelError("messages are a list of objects with role and content, at least one")
    plain = []
    for message in messages:
        role, content = (message.get(name) if isinstance(message, Mapping) else None for name in ("role", "content"))
        if role not in ROLES or not isinstance(content, str):
            raise ModelError(
                "a message has a role ({known}) and a text as its content, got {got!r}",
                known=", ".join(ROLES),
                got=str(message)[:100],
            )
        plain.append({"role": role, "content": content})
    return plain
