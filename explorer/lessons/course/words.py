"""A lesson's Markdown as a small tree of plain data, which the page builds of text alone: no HTML is in it.

A block is {"kind": "paragraph", "parts"}, {"kind": "list", "ordered", "items"}, {"kind": "table", "head", "rows"} or
{"kind": "code", "text"}; items and cells are parts. A part is a text, {"kind": "code", "text"}, {"kind": "strong" or
"emphasis", "parts"}, or {"kind": "value", "name"}, a number that is worked out when it is told.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any

Part = str | dict[str, Any]
Block = dict[str, Any]

BULLET, NUMBERED = re.compile(r"[-*] +"), re.compile(r"\d+[.)] +")
ROW, RULE = re.compile(r"\|.*\|\s*$"), re.compile(r"\|[\s|:-]+\|\s*$")
INLINE = re.compile(
    r"`(?P<code>[^`]+)`|\*\*(?P<strong>\S(?:.*?\S)?)\*\*|(?<![\w*])\*(?P<emphasis>\S(?:.*?\S)?)\*(?![\w*])"
    r"|(?<!\w)_(?P<underscored>\S(?:.*?\S)?)_(?!\w)|\{(?P<value>\w+)\}"
)
FENCE = "```"


def tree(markdown: str) -> list[Block]:
    """The blocks of a text."""
    found, lines = [], markdown.split("\n")
    while lines:
        if not lines[0].strip():
            lines.pop(0)
        elif lines[0].startswith(FENCE):
            lines.pop(0)
            code = _while(lines, lambda line: not line.startswith(FENCE))
            found.append({"kind": "code", "text": "\n".join(code)})
            del lines[:1]
        elif ROW.match(lines[0]):
            head, *rows = [_cells(line) for line in _while(lines, ROW.match) if not RULE.match(line)] or [[]]
            found.append({"kind": "table", "head": head, "rows": rows})
        elif marker := next((marker for marker in (BULLET, NUMBERED) if marker.match(lines[0])), None):
            items = _items(lines, marker)
            found.append({"kind": "list", "ordered": marker is NUMBERED, "items": [parts(item) for item in items]})
        else:
            text = [lines.pop(0), *_while(lines, lambda line: line.strip() and not _begins_a_block(line))]
            found.append({"kind": "paragraph", "parts": parts(" ".join(map(str.strip, text)))})
    return found


def parts(text: str) -> list[Part]:
    """Of a line: what stands out in it, and the rest as text."""
    found, end = [], 0
    for match in INLINE.finditer(text):
        if match.start() > end:
            found.append(text[end : match.start()])
        kind, inner, end = match.lastgroup.replace("underscored", "emphasis"), match[match.lastgroup], match.end()
        own = {"code": {"text": inner}, "value": {"name": inner}}.get(kind) or {"parts": parts(inner)}
        found.append({"kind": kind} | own)
    return [*found, text[end:]] if end < len(text) else found


def values_in(blocks: Any) -> Iterator[str]:
    """The names of all numbers that a tree tells."""
    if isinstance(blocks, dict):
        if blocks.get("kind") == "value":
            yield blocks["name"]
        blocks = list(blocks.values())
    if isinstance(blocks, list):
        for inner in blocks:
            yield from values_in(inner)


def with_values(blocks: Any, told: Callable[[str], str]) -> Any:
    """The tree with every number as text."""
    if isinstance(blocks, list):
        return [with_values(inner, told) for inner in blocks]
    if not isinstance(blocks, dict):
        return blocks
    if blocks.get("kind") == "value":
        return {"kind": "number", "text": told(blocks["name"])}
    return {name: with_values(inner, told) for name, inner in blocks.items()}


def _begins_a_block(line: str) -> bool:
    return line.startswith(FENCE) or any(begin.match(line) for begin in (BULLET, NUMBERED, ROW))


def _while(lines: list[str], goes_on: Callable[[str], Any]) -> list[str]:
    """The first lines, which are taken away."""
    count = next((i for i, line in enumerate(lines) if not goes_on(line)), len(lines))
    first, lines[:] = lines[:count], lines[count:]
    return first


def _items(lines: list[str], marker: re.Pattern[str]) -> list[str]:
    """A list's items: indented lines go on with the item before."""
    items = []
    for line in _while(lines, lambda line: marker.match(line) or line.startswith("  ")):
        if begin := marker.match(line):
            items.append(line[begin.end() :])
        else:
            items[-1] += " " + line.strip()
    return items


def _cells(line: str) -> list[list[Part]]:
    return [parts(cell.strip()) for cell in line.strip().strip("|").split("|")]
