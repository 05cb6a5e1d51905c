"""Tokenizers for models with a custom vocabulary, and tokens and merges from the usual textual forms."""

import ast
import base64
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from explorer.errors import UserError
from explorer.explain.notation import END_OF_TEXT_TOKENS
from explorer.translations import N_, _
from model.errors import LoadingNote
from model.pretrained.tokenizer import VISIBLE_TO_BYTE
from model.tokenizer import MergeRules, TokenizerBase

BYTES = 256


class CustomTokenizer(TokenizerBase):
    """A custom vocabulary: a table of the tokens' bytes, and a function that splits a text into them.

    Args:
        tokens: bytes of each id, b"" for one without a text.
        encode: text -> ids.
        specials: ids of special tokens, which stand for no text; those that the model lacks are ignored.
        vocab_size: of the model, which may have more ids.
        merge_rules: of a byte-pair encoding.
    """

    note: LoadingNote | None = None  # on how texts are cut

    def __init__(
        self,
        tokens: Sequence[bytes],
        encode: Callable[[str], list[int]],
        vocab_size: int,
        specials: Collection[int] = (),
        merge_rules: MergeRules | None = None,
    ):
        self._tokens = [*tokens, *[b""] * (vocab_size - len(tokens))][:vocab_size]
        self._encode = encode
        self._specials = frozenset(token_id for token_id in specials if token_id < vocab_size)
        self.vocab_size, self.merge_rules = vocab_size, merge_rules
        self.special_tokens = {
            self._tokens[token_id].decode(errors="replace"): token_id for token_id in sorted(self._specials)
        }
        self.eos_ids = tuple(self.special_tokens[text] for text in END_OF_TEXT_TOKENS if text in self.special_tokens)

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text; a lone surrogate is read as U+FFFD.

        Raises:
            UserError: the vocabulary has no tokens for some of it.
        """
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        ids = self._encode(text)
        if max(ids, default=0) >= self.vocab_size or b"".join(map(self.token_bytes, ids)) != text.encode():
            missing = next((character for character in text if not self._can_encode(character)), text[:20])
            raise UserError(
                _(
                    "The model’s vocabulary has no token for {what!r}: type what its {size} tokens can spell, such as "
                    "{example!r}.",
                    what=missing,
                    size=self.vocab_size,
                    example=self.example,
                )
            )
        return ids

    def _can_encode(self, character: str) -> bool:
        ids = self._encode(character)
        return b"".join(self._tokens[token_id] for token_id in ids if token_id < self.vocab_size) == character.encode()

    @cached_property
    def example(self) -> str:
        """A short text that can be encoded."""
        letters = [token.decode(errors="ignore") for token in self._tokens if len(token) == 1]
        return "".join(
            [letter for letter in letters if letter.isalnum()][:4]
            or [letter for letter in letters if letter.strip()][:4]
        )

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of ids, without special tokens.

        Raises:
            ValueError: an id is not in the vocabulary.
        """
        token_bytes = (self.token_bytes(token_id) for token_id in ids if token_id not in self._specials)
        return b"".join(token_bytes).decode("utf-8", errors="replace")

    def token_bytes(self, token_id: int) -> bytes:
        """Return the bytes of a token.

        Raises:
            ValueError: there is no such id.
        """
        if not 0 <= token_id < self.vocab_size:
            raise ValueError(f"token ids are integers from 0 to {self.vocab_size - 1}, got {token_id!r}")
        return self._tokens[token_id]


def bytes_tokenizer(vocab_size: int) -> CustomTokenizer:
    """Return a tokenizer for a model without a vocabulary: ids up to 255 are bytes, others "<id>"."""
    tokens = [bytes([byte]) for byte in range(min(BYTES, vocab_size))]
    tokens += [f"<{token_id}>".encode() for token_id in range(BYTES, vocab_size)]
    tokenizer = CustomTokenizer(tokens, greedy_encoder(tokens), vocab_size)
    if vocab_size > BYTES:
        tokenizer.note = LoadingNote(
            N_("No vocabulary was given (--tokenizer): tokens are bytes, and ids beyond {last} have no text"),
            last=BYTES - 1,
        )
    else:
        tokenizer.note = LoadingNote(
            N_("No vocabulary was given (--tokenizer): its {count} tokens are read as bytes, and have no other text"),
            count=vocab_size,
        )
    return tokenizer


def greedy_encoder(tokens: Sequence[bytes]) -> Callable[[str], list[int]]:
    """Return an encoder that takes the longest matching token from the left; an unknown byte ends it."""
    ids = {token: token_id for token_id, token in reversed(list(enumerate(tokens))) if token}
    lengths = sorted({len(token) for token in ids}, reverse=True)

    def encode(text: str) -> list[int]:
        content, position, token_ids = text.encode(), 0, []
        while position < len(content):
            length = next((length for length in lengths if content[position : position + length] in ids), 0)
            if not length:
                break
            token_ids.append(ids[content[position : position + length]])
            position += length
        return token_ids

    return encode


SPECIAL = re.compile(r"<\|[^|]*\|>|<(?:s|/s|pad|unk|bos|eos)>|\[(?:PAD|UNK|BOS|EOS|CLS|SEP|MASK)\]")
PRINTED = r"b'(?:[^'\\]|\\.)*'|b\"(?:[^\"\\]|\\.)*\""  # as Python prints bytes
ESCAPED = re.compile(r"\\x([89a-f][0-9a-f])")  # of "backslashreplace"
LOST = "\N{REPLACEMENT CHARACTER}"
MAX_LINES = 8  # of one merge, whose tokens may hold line breaks


def _from_escaped(text: str) -> bytes:
    parts = ESCAPED.split(text)
    return b"".join(bytes.fromhex(segment) if index % 2 else segment.encode() for index, segment in enumerate(parts))


def _is_printed(texts: Collection[str]) -> bool:
    return all(re.fullmatch(PRINTED, text, re.DOTALL) for text in texts)


def _is_visible(texts: Collection[str]) -> bool:
    characters = {character for text in texts for character in text}
    return characters <= VISIBLE_TO_BYTE.keys() and ("Ġ" in characters or set(texts) >= VISIBLE_TO_BYTE.keys())


def _from_visible(text: str) -> bytes:
    """Return the bytes of a piece in GPT-2's alphabet.

    Raises:
        KeyError: it has other characters.
    """
    return bytes(map(VISIBLE_TO_BYTE.__getitem__, text))


def _is_latin(texts: Collection[str]) -> bool:
    return {chr(byte) for byte in range(BYTES)} <= set(texts) and max(map(ord, "".join(texts))) < BYTES


ALPHABETS: tuple[tuple[Callable[[Collection[str]], bool], Callable[[str], bytes]], ...] = (
    (_is_printed, ast.literal_eval),
    (lambda texts: {f"{byte:02x}" for byte in range(BYTES)} <= set(texts), bytes.fromhex),
    (lambda texts: "AA==" in texts and "/w==" in texts, lambda text: base64.b64decode(text, validate=True)),
    (_is_visible, _from_visible),  # GPT-2's
    (_is_latin, lambda text: text.encode("latin-1")),
    (lambda texts: r"\x80" in texts, _from_escaped),
    (lambda texts: True, lambda text: text.encode("utf-8", "surrogateescape")),
)


@dataclass(frozen=True)
class DecodedVocabulary:
    """A vocabulary decoded from its textual form.

    Attributes:
        tokens: the bytes of each id, b"" where unknown.
        decoders: functions from a text to bytes, the likeliest first.
        is_lossy: whether bytes that are no characters were omitted or replaced.
    """

    tokens: list[bytes]
    decoders: tuple[Callable[[str], bytes], ...]
    is_lossy: bool


def decode_tokens(raw_tokens: Sequence[Any]) -> DecodedVocabulary:
    """Decode tokens to bytes: from texts in any alphabet, bytes, or lists of bytes."""
    texts = [text for text in raw_tokens if isinstance(text, str) and text and not SPECIAL.fullmatch(text)]
    fitting = [decode for is_alphabet, decode in ALPHABETS if not texts or is_alphabet(texts)]
    tokens = [_to_bytes(token, fitting[0]) for token in raw_tokens]
    decoded = list(tokens)
    first = raw_tokens.index("a") - ord("a") if "a" in raw_tokens else -1
    if first >= 0 and list(raw_tokens[first + 32 : first + 127]) == list(map(chr, range(32, 127))):
        for byte in range(128, BYTES):  # no characters: they are known by their places
            tokens[first + byte : first + byte + 1] = [bytes([byte])]
    distinct = set()
    for token_id, token in enumerate(tokens):
        if token in distinct or LOST.encode() in token:
            tokens[token_id] = b""
        distinct.add(token)
    return DecodedVocabulary(tokens, (*fitting, _from_visible), tokens != decoded)


def _to_bytes(token: Any, decode: Callable[[str], bytes]) -> bytes:
    if isinstance(token, str):
        return token.encode() if SPECIAL.fullmatch(token) else decode(token)
    return bytes(token)


def decode_merges(merges: Any, vocabulary: DecodedVocabulary, name: str) -> tuple[list[tuple[bytes, bytes]], int]:
    """Return the two tokens of each merge, in order, and the number of merges omitted for lost bytes.

    Args:
        merges: a text with a merge a line, or a sequence of pairs of tokens, or of ids.

    Raises:
        UserError: one is not of two tokens that make a third, or it is unclear which were lost.
    """
    wrong = None
    for decode in vocabulary.decoders:
        merge_pairs = list(_merge_pairs(merges, vocabulary, decode))
        unread = [merge for merge, pair in merge_pairs if pair is None]
        pairs = [pair for _merge, pair in merge_pairs if pair is not None]
        merged = {left + right for left, right in pairs}
        # Each merge makes a token of its own: where all ASCII tokens are made, none of their merges was lost.
        missing = [token for token in vocabulary.tokens if len(token) > 1 and token.isascii() and token not in merged]
        missing = [token for token in missing if not SPECIAL.fullmatch(token.decode())]
        if not unread or (vocabulary.is_lossy and not missing):
            return pairs, len(unread)
        wrong = wrong or unread[0]
    raise UserError(
        _(
            "Some merges of {file} do not join two tokens into a third, such as {merge!r}: save them as JSON, a list "
            "of pairs, in GPT-2’s alphabet.",
            file=name,
            merge=wrong,
        )
    )


def _merge_pairs(
    merges: Any, vocabulary: DecodedVocabulary, decode: Callable[[str], bytes]
) -> Iterator[tuple[Any, tuple[bytes, bytes] | None]]:
    """Yield each merge with its two tokens, None where they are ambiguous."""
    known_tokens = set(vocabulary.tokens) - {b""}

    def fitting(choices: Sequence[Sequence[bytes]]) -> tuple[bytes, bytes] | None:
        pairs = [tuple(pair) for pair in choices if len(pair) == 2 and {*pair, b"".join(pair)} <= known_tokens]
        return pairs[0] if pairs else None

    if isinstance(merges, str):
        lines, line_index = merges.removesuffix("\n").split("\n"), 0
        line_index = 1 if lines[0].startswith("#version") else 0
        while line_index < len(lines):
            tried = [(count, "\n".join(lines[line_index : line_index + count])) for count in range(1, MAX_LINES + 1)]
            count, pair = next(
                ((count, pair) for count, text in tried if (pair := fitting(_split_candidates(text, decode)))),
                (1, None),
            )
            if pair or lines[line_index].strip("\r"):
                yield lines[line_index], pair
            line_index += count
        return
    for merge in merges:
        if isinstance(merge, str):
            yield merge, fitting(_split_candidates(merge, decode))
        elif all(isinstance(token, int) for token in merge):
            yield merge, fitting([[vocabulary.tokens[token] for token in merge if token < len(vocabulary.tokens)]])
        else:
            yield merge, fitting([[_to_bytes_or_empty(token, decode) for token in merge]])


def _to_bytes_or_empty(token: Any, decode: Callable[[str], bytes]) -> bytes:
    try:
        return _to_bytes(token, decode)
    except (ValueError, KeyError, SyntaxError):  # not written in this way
        return b""


def _split_candidates(line: str, decode: Callable[[str], bytes]) -> list[list[bytes]]:
    """Return the pairs of tokens that a line can be split into, at each space or tab."""
    if re.match(r"[(\[]?b['\"]", line):
        return [[ast.literal_eval(part) for part in re.findall(PRINTED, line)]]
    line = line.removesuffix("\r")
    cuts = [index for index, character in enumerate(line) if character in " \t" and 0 < index < len(line) - 1]
    return [[_to_bytes_or_empty(line[:index], decode), _to_bytes_or_empty(line[index + 1 :], decode)] for index in cuts]
