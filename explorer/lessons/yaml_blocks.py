"""YAML blocks of a lesson's file as plain values with line numbers."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import yaml


class LessonError(Exception):
    """An error in a lesson's file, with its line.

    Attributes:
        line: from 1.
        sentence: the message.
        file: its name; "" until it is known.
    """

    def __init__(self, line: int, sentence: str, file: str = ""):
        super().__init__(f"{file}:{line}: {sentence}")
        self.line, self.sentence, self.file = line, sentence, file


class MappingWithLines(dict):
    """A YAML mapping; `lines` has the line of each key, `line` that of the whole."""

    line: int
    lines: dict[str, int]


class ListWithLines(list):
    """A YAML list; `lines` has the line of each item, `line` that of the whole."""

    line: int
    lines: list[int]


@contextmanager
def raise_value_errors_as_lesson_errors(line: int) -> Iterator[None]:
    """Context manager: raise a ValueError as a `LessonError` with this line; other errors pass unchanged."""
    try:
        yield
    except ValueError as error:
        raise LessonError(line, str(error)) from None


def parse_yaml_mapping(text: str, first_line: int) -> MappingWithLines:
    """Parse a YAML block that is a mapping, with the line of each key.

    Args:
        first_line: of the text within its file.

    Raises:
        LessonError: it is no YAML, or no mapping.
    """
    loader = yaml.SafeLoader(text)
    try:
        with raise_value_errors_as_lesson_errors(first_line):  # of an escaped character that is none
            node = loader.get_single_node()
        if not isinstance(node, yaml.MappingNode):
            raise LessonError(first_line, "a block is a mapping, a name and its value a line, as in “layer: 2”")
        return _plain_value(node, loader, first_line)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        problem = getattr(error, "problem", None) or " ".join(str(error).split())
        raise LessonError(first_line + (mark.line if mark else 0), f"this is no YAML: {problem}") from None
    finally:
        loader.dispose()


def _plain_value(
    node: yaml.Node, loader: yaml.SafeLoader, first_line: int, ancestors: tuple[yaml.Node, ...] = ()
) -> Any:
    line = first_line + node.start_mark.line
    if node in ancestors:
        raise LessonError(line, "a value holds itself")
    ancestors = (*ancestors, node)
    if isinstance(node, yaml.MappingNode):
        mapping = MappingWithLines()
        mapping.line, mapping.lines = line, {}
        for key_node, value in node.value:
            key, key_line = key_node.value, first_line + key_node.start_mark.line
            if not isinstance(key_node, yaml.ScalarNode):
                raise LessonError(key_line, "a name is a text")
            if key in mapping:
                raise LessonError(key_line, f"“{key}” is there twice")
            mapping[key], mapping.lines[key] = _plain_value(value, loader, first_line, ancestors), key_line
        return mapping
    if isinstance(node, yaml.SequenceNode):
        items = ListWithLines(_plain_value(item, loader, first_line, ancestors) for item in node.value)
        items.line, items.lines = line, [first_line + item.start_mark.line for item in node.value]
        return items
    with raise_value_errors_as_lesson_errors(line):
        return loader.construct_object(node)


def validate_mapping_fields(
    spec: MappingWithLines, expected: dict[str, type | tuple[type, ...]], required: tuple[str, ...] = ()
) -> MappingWithLines:
    """Return the fields after checking their names and kinds.

    Raises:
        LessonError: a name is unknown or missing, or a value of another kind.
    """
    for name, value in spec.items():
        if name not in expected:
            raise LessonError(spec.lines[name], f"“{name}” is unknown here; known are {', '.join(expected)}")
        if not is_value_of_kind(value, expected[name]):
            raise LessonError(spec.lines[name], f"“{name}” must be {format_kinds(expected[name])}, got {value!r:.60}")
    if missing := [name for name in required if name not in spec]:
        raise LessonError(spec.line, f"“{missing[0]}” is missing")
    return spec


def is_value_of_kind(value: Any, kind: type | tuple[type, ...]) -> bool:
    """Return whether a value is of a kind: integers are numbers too, but booleans are not."""
    allowed = kind if isinstance(kind, tuple) else (kind,)
    if isinstance(value, bool):
        return bool in allowed
    return isinstance(value, allowed) or (float in allowed and isinstance(value, int))


KINDS = {
    str: "text",
    int: "integer",
    float: "number",
    bool: "boolean",
    ListWithLines: "list",
    MappingWithLines: "mapping",
}


def format_kinds(kind: type | tuple[type, ...]) -> str:
    """Format kinds of values as text."""
    return " or ".join(KINDS[single] for single in (kind if isinstance(kind, tuple) else (kind,)))
