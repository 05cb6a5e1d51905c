"""The bytes of tokens and of merges, from the ways in which people write them as text."""

import ast
import base64
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from explorer.language import _
from explorer.own_module.own_tokenizer import BYTES
from explorer.state.errors import UserError
from model.pretrained.tokenizer import BYTE_OF

SPECIAL = re.compile(r"<\|[^|]*\|>|<(?:s|/s|pad|unk|bos|eos)>|\[(?:PAD|UNK|BOS|EOS|CLS|SEP|MASK)\]")
PRINTED = r"b'(?:[^'\\]|\\.)*'|b\"(?:[^\"\\]|\\.)*\""  # as Python prints bytes
ESCAPED = re.compile(r"\\x([89a-f][0-9a-f])")  # of "backslashreplace"
LOST = "\N{REPLACEMENT CHARACTER}"
MAX_LINES = 8  # of one merge, whose tokens may hold line breaks


def _from_escaped(text: str) -> bytes:
    parts = ESCAPED.split(text)
    return b"".join(bytes.fromhex(part) if place % 2 else part.encode() for place, part in enumerate(parts))


def _is_printed(texts: Collection[str]) -> bool:
    return all(re.fullmatch(PRINTED, text, re.DOTALL) for text in texts)


def _is_visible(texts: Collection[str]) -> bool:
    characters = {character for text in texts for character in text}
    return characters <= BYTE_OF.keys() and ("Ġ" in characters or set(texts) >= BYTE_OF.keys())


def _from_visible(text: str) -> bytes:
    """Return the bytes of a piece of GPT-2's alphabet; KeyError of one that is written otherwise."""
    return bytes(map(BYTE_OF.__getitem__, text))


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
class Written:
    """A vocabulary as it was written.

    Attributes:
        tokens: the bytes of each id, b"" of one whose bytes are not known.
        ways: from a text to bytes, the likeliest first.
        is_lossy: whether bytes that are no characters were left out or replaced.
    """

    tokens: list[bytes]
    ways: tuple[Callable[[str], bytes], ...]
    is_lossy: bool


def read_tokens(written: Sequence[Any]) -> Written:
    """Return the bytes of tokens: of texts in any alphabet, of bytes, or of lists of bytes."""
    texts = [text for text in written if isinstance(text, str) and text and not SPECIAL.fullmatch(text)]
    fitting = [way for is_written_so, way in ALPHABETS if not texts or is_written_so(texts)]
    tokens = [_to_bytes(token, fitting[0]) for token in written]
    decoded = list(tokens)
    first = written.index("a") - ord("a") if "a" in written else -1
    if first >= 0 and list(written[first + 32 : first + 127]) == list(map(chr, range(32, 127))):
        for byte in range(128, BYTES):  # no characters: they are known by their places
            tokens[first + byte : first + byte + 1] = [bytes([byte])]
    seen = set()
    for token_id, token in enumerate(tokens):
        if token in seen or LOST.encode() in token:
            tokens[token_id] = b""
        seen.add(token)
    return Written(tokens, (*fitting, _from_visible), tokens != decoded)


def _to_bytes(token: Any, way: Callable[[str], bytes]) -> bytes:
    if isinstance(token, str):
        return token.encode() if SPECIAL.fullmatch(token) else way(token)
    return bytes(token)


def read_pairs(merges: Any, written: Written, name: str) -> tuple[list[tuple[bytes, bytes]], int]:
    """Return the two tokens of each merge, in order, and how many are left out since they lost their bytes.

    Args:
        merges: a text with a merge a line, or a sequence of pairs of tokens, or of ids.

    Raises:
        UserError: one is not of two tokens that make a third, or it cannot be told which were lost.
    """
    wrong = None
    for way in written.ways:
        found = list(_pairs(merges, written, way))
        unread = [merge for merge, pair in found if pair is None]
        pairs = [pair for _merge, pair in found if pair is not None]
        made = {left + right for left, right in pairs}
        # Each merge makes a token of its own: where all ASCII tokens are made, none of their merges was lost.
        missing = [token for token in written.tokens if len(token) > 1 and token.isascii() and token not in made]
        missing = [token for token in missing if not SPECIAL.fullmatch(token.decode())]
        if not unread or (written.is_lossy and not missing):
            return pairs, len(unread)
        wrong = wrong or unread[0]
    raise UserError(
        _(
            "The merges of {file} are not of two tokens each that make a third, such as {merge!r}: save them as JSON, "
            "a list of pairs, in GPT-2’s alphabet.",
            file=name,
            merge=wrong,
        )
    )


def _pairs(
    merges: Any, written: Written, way: Callable[[str], bytes]
) -> Iterator[tuple[Any, tuple[bytes, bytes] | None]]:
    """Each merge with its two tokens, None where they cannot be told."""
    known = set(written.tokens) - {b""}

    def fitting(choices: Sequence[Sequence[bytes]]) -> tuple[bytes, bytes] | None:
        pairs = [tuple(pair) for pair in choices if len(pair) == 2 and {*pair, b"".join(pair)} <= known]
        return pairs[0] if pairs else None

    if isinstance(merges, str):
        lines, at = merges.removesuffix("\n").split("\n"), 0
        at = 1 if lines[0].startswith("#version") else 0
        while at < len(lines):
            tried = [(count, "\n".join(lines[at : at + count])) for count in range(1, MAX_LINES + 1)]
            count, pair = next(
                ((count, pair) for count, text in tried if (pair := fitting(_cuts(text, way)))), (1, None)
            )
            if pair or lines[at].strip("\r"):
                yield lines[at], pair
            at += count
        return
    for merge in merges:
        if isinstance(merge, str):
            yield merge, fitting(_cuts(merge, way))
        elif all(isinstance(each, int) for each in merge):
            yield merge, fitting([[written.tokens[each] for each in merge if each < len(written.tokens)]])
        else:
            yield merge, fitting([[_of(each, way) for each in merge]])


def _of(token: Any, way: Callable[[str], bytes]) -> bytes:
    try:
        return _to_bytes(token, way)
    except (ValueError, KeyError, SyntaxError):  # not written in this way
        return b""


def _cuts(line: str, way: Callable[[str], bytes]) -> list[list[bytes]]:
    """The two tokens that a line may be of: a space parts them, and others may be in them."""
    if re.match(r"[(\[]?b['\"]", line):
        return [[ast.literal_eval(part) for part in re.findall(PRINTED, line)]]
    line = line.removesuffix("\r")
    cuts = [place for place, character in enumerate(line) if character in " \t" and 0 < place < len(line) - 1]
    return [[_of(line[:place], way), _of(line[place + 1 :], way)] for place in cuts]
