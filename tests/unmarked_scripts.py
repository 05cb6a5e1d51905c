"""Finds sentences in the page's scripts that no translator would see, and marks that none could work with."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from babel.messages.jslexer import Token, tokenize, unquote_string

from tests.unmarked import MARKS, fields, is_prose

FILLED = re.compile(r"\${[^{}]*}")  # a value in a template literal
# What visitors do not read: selectors, names of classes, words of other programs.
UNREAD = {"closest", "find", "findAll", "matches", "matchMedia", "span"}
OPEN, CLOSED = "([{", ")]}"


@dataclass(frozen=True)
class Text:
    """A string or a template literal.

    Attributes:
        value: what it says, values in it as {}.
        call: name of the function whose argument it is, or is part of; "" where it is none.
        place: which argument, from 0.
        is_alone: whether it is all of that argument, and a string.
    """

    value: str
    call: str
    place: int
    is_alone: bool


def unmarked(source: str) -> list[str]:
    """Strings and template literals with two words or more, a value being one, that are no messages of a mark."""
    return [
        text.value
        for text in texts(source)
        if is_prose(text.value)
        and text.call not in UNREAD
        and not (text.is_alone and text.place < MARKS.get(text.call, 0))
    ]


def misused(source: str) -> list[str]:
    """Marks of what is no literal, or that name other values than they are given; and other things called as a mark."""
    tokens = code(source)
    found = [f"line {token.lineno} names another thing _" for token in shadows(tokens)]
    for i, token in enumerate(tokens):
        if token.value in MARKS and tokens[i + 1].value == "(" and tokens[i - 1].value != "function":
            arguments = split(tokens[i + 2 : closing(tokens, i + 1)])
            count = MARKS[token.value]
            messages = [argument[0] for argument in arguments[:count] if [t.type for t in argument] == ["string"]]
            is_same = len({message.value for message in messages}) < count  # a noun that never changes
            if len(messages) < count or is_same or not fits(token.value, messages, arguments[count:]):
                found.append(" ".join(t.value for argument in arguments for t in argument))
    return found


def fits(mark: str, messages: list[Token], rest: list[list[Token]]) -> bool:
    """Whether the messages name the values that are given, as far as those are known here."""
    values = rest[1:] if mark == "ngettext" else rest
    given = {"count"} if mark == "ngettext" else set()
    if values:
        value = values[0]
        if value[0].value != "{" or any(token.value == "..." for token in value):
            return True
        given |= {argument[0].value for argument in split(value[1:-1])}
    elif mark == "_":
        return True  # a template
    return {name for message in messages for name in fields(unquote_string(message.value))} == given


def texts(source: str) -> Iterator[Text]:
    tokens, calls = code(source), [["", 0]]
    for i, token in enumerate(tokens):
        before, after = (tokens[j].value if 0 <= j < len(tokens) else "" for j in (i - 1, i + 1))
        if token.value in OPEN:
            called = before.rpartition(".")[2] if token.value == "(" and tokens[i - 1].type == "name" else ""
            calls.append([called, 0])
        elif token.value in CLOSED:
            calls.pop()
        elif token.value == ",":
            calls[-1][1] += 1
        elif token.type in ("string", "template_string"):
            call, place = calls[-1]
            is_alone = token.type == "string" and before in ("(", ",") and after in (",", ")")
            value = unquote_string(token.value) if token.type == "string" else FILLED.sub("{}", token.value[1:-1])
            yield Text(value, call, place, is_alone)


def code(source: str) -> list[Token]:
    return [token for token in tokenize(source, jsx=False) if "comment" not in token.type]


def closing(tokens: list[Token], i: int) -> int:
    """Where the bracket closes that opens at a place."""
    depth = 0
    for j in range(i, len(tokens)):
        depth += (tokens[j].value in OPEN) - (tokens[j].value in CLOSED)
        if depth == 0:
            return j
    raise ValueError(f"line {tokens[i].lineno}: not closed")


def split(tokens: list[Token]) -> list[list[Token]]:
    """Arguments, or what is in braces, at its commas."""
    found, depth = [[]], 0
    for token in tokens:
        depth += (token.value in OPEN) - (token.value in CLOSED)
        if token.value == "," and depth == 0:
            found.append([])
        else:
            found[-1].append(token)
    return [part for part in found if part]


def shadows(tokens: list[Token]) -> list[Token]:
    """Where `_` is the first parameter of a function, or a variable; the mark itself is exported."""
    places = (i for i, token in enumerate(tokens) if token.value == "_" and tokens[i + 1].value != "(")
    return [
        tokens[i] for i in places if tokens[i - 1].value in ("(", "const", "let") and tokens[i - 2].value != "export"
    ]
