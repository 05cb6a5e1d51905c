"""Parse a lesson's Markdown to a tree of plain data, which the page renders as text, without HTML.

A block is {"kind": "paragraph", "parts"}, {"kind": "list", "ordered", "items"}, {"kind": "table", "head", "rows"}
or {"kind": "code", "text"}; items and cells are parts. A part is a text, {"kind": "code", "text"}, {"kind":
"strong" or "emphasis", "parts"}, or {"kind": "value", "name"}, a number that is computed when it is shown.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any

Part = str | dict[str, Any]
Block = dict[str, Any]

BULLET, NUMBERED = re.compile(r"[-*] +"), re.compile(r"\d+[.)] +")
ROW, RULE = re.compile(r"\|.*\|\s*$"), re.compile(r"\|[\s|:-]+\|\s*$")
INLINE = re.compile(
    r"`(?P<code>[^`]+)`|\*\*(?P<strong>\S(?:.*?\S)??)\*\*"
    r"|(?<!(?a:[\w*]))\*(?P<emphasis>\S(?:.*?\S)??)\*(?!(?a:[\w*]))"  # between Chinese characters too
    r"|(?<!\w)_(?P<underscored>\S(?:.*?\S)??)_(?!\w)|\{(?P<value>\w+)\}"
)
FENCE = "```"


def parse_markdown(markdown: str) -> list[Block]:
    """Parse Markdown to a list of blocks."""
    blocks, lines = [], markdown.split("\n")
    while lines:
        if not lines[0].strip():
            lines.pop(0)
        elif lines[0].startswith(FENCE):
            lines.pop(0)
            code = _take_while(lines, lambda line: not line.startswith(FENCE))
            blocks.append({"kind": "code", "text": "\n".join(code)})
            del lines[:1]
        elif ROW.match(lines[0]):
            head, *rows = [_cells(line) for line in _take_while(lines, ROW.match) if not RULE.match(line)] or [[]]
            blocks.append({"kind": "table", "head": head, "rows": rows})
        elif marker := next((marker for marker in (BULLET, NUMBERED) if marker.match(lines[0])), None):
            items = _items(lines, marker)
            blocks.append(
                {"kind": "list", "ordered": marker is NUMBERED, "items": [parse_inline(item) for item in items]}
            )
        else:
            text = [lines.pop(0), *_take_while(lines, lambda line: line.strip() and not _starts_block(line))]
            blocks.append({"kind": "paragraph", "parts": parse_inline(" ".join(map(str.strip, text)))})
    return blocks


def parse_inline(text: str) -> list[Part]:
    """Parse inline Markdown to parts: marked spans, and the text between them."""
    parts, end = [], 0
    for match in INLINE.finditer(text):
        if match.start() > end:
            parts.append(text[end : match.start()])
        kind, inner, end = match.lastgroup.replace("underscored", "emphasis"), match[match.lastgroup], match.end()
        fields = {"code": {"text": inner}, "value": {"name": inner}}.get(kind) or {"parts": parse_inline(inner)}
        parts.append({"kind": kind} | fields)
    return [*parts, text[end:]] if end < len(text) else parts


def placeholder_names(blocks: Any) -> Iterator[str]:
    """Yield the names of all placeholders, such as {name}, in a tree of blocks."""
    if isinstance(blocks, dict):
        if blocks.get("kind") == "value":
            yield blocks["name"]
        blocks = list(blocks.values())
    if isinstance(blocks, list):
        for inner in blocks:
            yield from placeholder_names(inner)


def fill_placeholders(blocks: Any, format_value: Callable[[str], str]) -> Any:
    """Return the tree of blocks with each placeholder replaced by its formatted value."""
    if isinstance(blocks, list):
        return [fill_placeholders(inner, format_value) for inner in blocks]
    if not isinstance(blocks, dict):
        return blocks
    if blocks.get("kind") == "value":
        return {"kind": "number", "text": format_value(blocks["name"])}
    return {name: fill_placeholders(inner, format_value) for name, inner in blocks.items()}


def _starts_block(line: str) -> bool:
    return line.startswith(FENCE) or any(begin.match(line) for begin in (BULLET, NUMBERED, ROW))


def _take_while(lines: list[str], predicate: Callable[[str], Any]) -> list[str]:
    """Remove and return the first lines that fulfil a predicate."""
    count = next((i for i, line in enumerate(lines) if not predicate(line)), len(lines))
    first, lines[:] = lines[:count], lines[count:]
    return first


def _items(lines: list[str], marker: re.Pattern[str]) -> list[str]:
    """Remove and return a list's items; indented lines continue the item before."""
    items = []
    for line in _take_while(lines, lambda line: marker.match(line) or line.startswith("  ")):
        if begin := marker.match(line):
            items.append(line[begin.end() :])
        else:
            items[-1] += " " + line.strip()
    return items


def _cells(line: str) -> list[list[Part]]:
    return [parse_inline(cell.strip()) for cell in line.strip().strip("|").split("|")]
