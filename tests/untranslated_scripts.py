"""Checks of the page's scripts for sentences that are not marked for translation, and for unusable marks."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from babel.messages.jslexer import Token, tokenize, unquote_string

from tests.untranslated import MARKS, fields, is_prose

TEMPLATE_VALUE = re.compile(r"\${[^{}]*}")  # a value in a template literal
# Functions whose arguments users do not read: selectors and names of classes.
NON_TEXT_FUNCTIONS = {"closest", "find", "findAll", "matches", "matchMedia", "span"}
OPEN, CLOSED = "([{", ")]}"


@dataclass(frozen=True)
class Text:
    """A string or a template literal.

    Attributes:
        value: its text, with values as {}.
        call: name of the function whose argument it is, or is part of; "" if it is none.
        argument_index: index of that argument, from 0.
        is_alone: whether it is a string and the whole argument.
    """

    value: str
    call: str
    argument_index: int
    is_alone: bool


def find_unmarked(source: str) -> list[str]:
    """Return strings and template literals of two words or more, a value being one, that are no messages of a mark."""
    return [
        text.value
        for text in iter_texts(source)
        if is_prose(text.value)
        and text.call not in NON_TEXT_FUNCTIONS
        and not (text.is_alone and text.argument_index < MARKS.get(text.call, 0))
    ]


def find_misused_marks(source: str) -> list[str]:
    """Return marks of non-literals, or whose fields differ from their values; and other uses of the marks' names."""
    tokens = tokenize_code(source)
    misuses = [f"line {token.lineno} names another thing _" for token in find_shadows(tokens)]
    for i, token in enumerate(tokens):
        if token.value in MARKS and tokens[i + 1].value == "(" and tokens[i - 1].value != "function":
            arguments = split_arguments(tokens[i + 2 : closing_index(tokens, i + 1)])
            count = MARKS[token.value]
            messages = [argument[0] for argument in arguments[:count] if [t.type for t in argument] == ["string"]]
            is_same = len({message.value for message in messages}) < count  # equal singular and plural
            if len(messages) < count or is_same or not has_matching_fields(token.value, messages, arguments[count:]):
                misuses.append(" ".join(t.value for argument in arguments for t in argument))
    return misuses


def has_matching_fields(mark: str, messages: list[Token], other_arguments: list[list[Token]]) -> bool:
    """Return whether the fields of the messages are the names of the values; unknown names count as matching."""
    values = other_arguments[1:] if mark == "ngettext" else other_arguments
    names = {"count"} if mark == "ngettext" else set()
    if values:
        value = values[0]
        if value[0].value != "{" or any(token.value == "..." for token in value):
            return True
        names |= {argument[0].value for argument in split_arguments(value[1:-1])}
    elif mark == "_":
        return True  # a template
    return {name for message in messages for name in fields(unquote_string(message.value))} == names


def iter_texts(source: str) -> Iterator[Text]:
    tokens, calls = tokenize_code(source), [["", 0]]
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
            call, argument_index = calls[-1]
            is_alone = token.type == "string" and before in ("(", ",") and after in (",", ")")
            value = (
                unquote_string(token.value) if token.type == "string" else TEMPLATE_VALUE.sub("{}", token.value[1:-1])
            )
            yield Text(value, call, argument_index, is_alone)


def tokenize_code(source: str) -> list[Token]:
    return [token for token in tokenize(source, jsx=False) if "comment" not in token.type]


def closing_index(tokens: list[Token], i: int) -> int:
    """Return the index of the bracket that closes the one at index i."""
    depth = 0
    for j in range(i, len(tokens)):
        depth += (tokens[j].value in OPEN) - (tokens[j].value in CLOSED)
        if depth == 0:
            return j
    raise ValueError(f"line {tokens[i].lineno}: not closed")


def split_arguments(tokens: list[Token]) -> list[list[Token]]:
    """Split the tokens of arguments, or of an object literal, at its commas."""
    arguments, depth = [[]], 0
    for token in tokens:
        depth += (token.value in OPEN) - (token.value in CLOSED)
        if token.value == "," and depth == 0:
            arguments.append([])
        else:
            arguments[-1].append(token)
    return [argument for argument in arguments if argument]


def find_shadows(tokens: list[Token]) -> list[Token]:
    """Return the tokens where `_` is a first parameter or a variable; the exported mark does not count."""
    indices = (i for i, token in enumerate(tokens) if token.value == "_" and tokens[i + 1].value != "(")
    return [
        tokens[i] for i in indices if tokens[i - 1].value in ("(", "const", "let") and tokens[i - 2].value != "export"
    ]
