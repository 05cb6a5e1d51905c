"""The YAML in a lesson's file as plain values that know their lines."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import yaml


class LessonError(Exception):
    """What is wrong with a lesson's file, and where.

    Attributes:
        line: from 1.
        sentence: what is wrong.
        file: its name; "" until it is known.
    """

    def __init__(self, line: int, sentence: str, file: str = ""):
        super().__init__(f"{file}:{line}: {sentence}")
        self.line, self.sentence, self.file = line, sentence, file


class Fields(dict):
    """A mapping of YAML; `lines` has the line of each key, `line` that of the whole."""

    line: int
    lines: dict[str, int]


class Items(list):
    """A list of YAML; `lines` has the line of each item, `line` that of the whole."""

    line: int
    lines: list[int]


@contextmanager
def at(line: int) -> Iterator[None]:
    """A ValueError within is a LessonError of that line; one that knows its line already stays as it is."""
    try:
        yield
    except ValueError as error:
        raise LessonError(line, str(error)) from None


def fields(text: str, first_line: int) -> Fields:
    """The values of a block that is a mapping.

    Args:
        first_line: of the text within its file.

    Raises:
        LessonError: it is no YAML, or no mapping.
    """
    loader = yaml.SafeLoader(text)
    try:
        node = loader.get_single_node()
        with at(first_line):
            if not isinstance(node, yaml.MappingNode):
                raise ValueError("a block is a mapping, a name and its value a line, as in “layer: 2”")
        return _plain(node, loader, first_line)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        problem = getattr(error, "problem", None) or " ".join(str(error).split())
        with at(first_line + (mark.line if mark else 0)):
            raise ValueError(f"this is no YAML: {problem}") from None
    finally:
        loader.dispose()


def _plain(node: yaml.Node, loader: yaml.SafeLoader, first_line: int, within: tuple[yaml.Node, ...] = ()) -> Any:
    line = first_line + node.start_mark.line
    with at(line):
        if node in within:
            raise ValueError("a value holds itself")
    within = (*within, node)
    if isinstance(node, yaml.MappingNode):
        found = Fields()
        found.line, found.lines = line, {}
        for key_node, value in node.value:
            key, key_line = key_node.value, first_line + key_node.start_mark.line
            with at(key_line):
                if not isinstance(key_node, yaml.ScalarNode):
                    raise ValueError("a name is a text")
                if key in found:
                    raise ValueError(f"“{key}” is there twice")
            found[key], found.lines[key] = _plain(value, loader, first_line, within), key_line
        return found
    if isinstance(node, yaml.SequenceNode):
        items = Items(_plain(item, loader, first_line, within) for item in node.value)
        items.line, items.lines = line, [first_line + item.start_mark.line for item in node.value]
        return items
    with at(line):
        return loader.construct_object(node)


def taken(given: Fields, wanted: dict[str, type | tuple[type, ...]], needed: tuple[str, ...] = ()) -> Fields:
    """The same fields, once they are known to be of the names and kinds that are wanted.

    Raises:
        LessonError: a name is unknown or missing, or a value of another kind.
    """
    for name, value in given.items():
        with at(given.lines[name]):
            if name not in wanted:
                raise ValueError(f"“{name}” is unknown here; known are {', '.join(wanted)}")
            if not is_a(value, wanted[name]):
                raise ValueError(f"“{name}” must be {kinds(wanted[name])}, got {value!r:.60}")
    with at(given.line):
        if missing := [name for name in needed if name not in given]:
            raise ValueError(f"“{missing[0]}” is missing")
    return given


def is_a(value: Any, kind: type | tuple[type, ...]) -> bool:
    """Whether a value is of a kind: whole numbers are numbers too, and True is none."""
    allowed = kind if isinstance(kind, tuple) else (kind,)
    if isinstance(value, bool):
        return bool in allowed
    return isinstance(value, allowed) or (float in allowed and isinstance(value, int))


KINDS = {str: "text", int: "integer", float: "number", bool: "boolean", Items: "list", Fields: "mapping"}


def kinds(kind: type | tuple[type, ...]) -> str:
    """Kinds of values in words."""
    return " or ".join(KINDS[one] for one in (kind if isinstance(kind, tuple) else (kind,)))
