"""A lesson's file as a lesson. The format: explorer/lessons/README.md."""

import re
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

from explorer.lessons.course.blocks import Fields, Items, LessonError, at, fields, taken
from explorer.lessons.course.lesson import Lesson, Step
from explorer.lessons.course.look import NAMES
from explorer.lessons.course.quantities import quantities
from explorer.lessons.course.questions import question, task
from explorer.lessons.course.words import tree, values_in
from explorer.state.interventions import parse_edits
from explorer.state.selection import TABS, WORDS

FRONT = {"title": str, "for": str, "minutes": int, "model": str, "needs": Items, "against": str}
MOST_STEPS, MOST_BYTES = 12, 200_000
NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,59}")
STATE, ASK, CHECK = BLOCKS = ("state", "ask", "check")
TARGET = "target"  # in a state block, and no name of the address


@dataclass
class _Part:
    """Lines of a file under one heading, from `line` on: text and blocks as they come."""

    title: str
    line: int
    before: list[str] = field(default_factory=list)
    after: list[str] = field(default_factory=list)
    blocks: dict[str, Fields] = field(default_factory=dict)
    told_at: dict[str, int] = field(default_factory=dict)  # name in braces -> its first line


def read_lesson(path: Path, pictures: Collection[str] = ()) -> Lesson:
    """The lesson in a file, which is named like it.

    Args:
        pictures: element ids of all pictures that a step may point out or hide; none for not checking.

    Raises:
        LessonError: the file is no lesson, with its name and the line.
    """
    try:
        with at(1):
            if path.stat().st_size > MOST_BYTES:
                raise ValueError(f"a lesson has at most {MOST_BYTES:,} bytes")
            text = path.read_text(encoding="utf-8")
            if not NAME.fullmatch(path.stem):
                raise ValueError("a lesson’s file is named with small letters, digits and hyphens")
        return lesson_of(path.stem, text, pictures)
    except LessonError as error:
        raise LessonError(error.line, error.sentence, path.name) from None


def lesson_of(name: str, text: str, pictures: Collection[str] = ()) -> Lesson:
    """The lesson in a text."""
    lines = text.replace("\r\n", "\n").split("\n")
    with at(1):
        if lines[0].strip() != "---" or "---" not in [line.strip() for line in lines[1:]]:
            raise ValueError("a lesson begins with its front matter between two lines of “---”")
    end = [line.strip() for line in lines].index("---", 1)
    front = taken(fields("\n".join(lines[1:end]), 2), FRONT, ("title", "for", "minutes", "model", "against"))
    needs = front.get("needs", Items())
    with at(front.line):
        if not all(isinstance(need, str) for need in needs):
            raise ValueError("“needs” is a list of names of lessons")
    parts = _parts(lines, end + 1)
    with at(end + 1):
        if not 1 <= len(parts) <= MOST_STEPS:
            raise ValueError(f"a lesson has 1 to {MOST_STEPS} steps, each under a line that begins with “## ”")
    steps = tuple(_step(part, pictures) for part in parts)
    told = front["title"], front["for"], front["minutes"], front["model"], tuple(needs), front["against"]
    return Lesson(name, *told, steps)


def _parts(lines: list[str], start: int) -> list[_Part]:
    """What stands under each heading; what stands before the first is for who reads the file."""
    parts, i = [], start
    while i < len(lines):
        line, number = lines[i], i + 1
        i += 1
        if line.startswith("## "):
            parts.append(_Part(line[3:].strip(), number))
            continue
        if not parts:
            continue
        part, kind = parts[-1], line[3:].strip()
        text = part.after if ASK in part.blocks or CHECK in part.blocks else part.before
        if not line.startswith("```"):
            text.append(line)
            for value in values_in(tree(line)):
                part.told_at.setdefault(value, number)
            continue
        until = next((j for j in range(i, len(lines)) if lines[j].startswith("```")), None)
        with at(number):
            if until is None:
                raise ValueError("this block has no end: a line of ``` is missing")
            if kind in part.blocks:
                raise ValueError(f"a step has one “{kind}” block, and this is another")
            if kind in BLOCKS:
                part.blocks[kind] = fields("\n".join(lines[i:until]), number + 1)
            elif kind:
                raise ValueError(f"a block is one of {', '.join(BLOCKS)}, got {kind!r:.40}")
            else:
                text += lines[i - 1 : until + 1]
        i = until + 1
    return parts


def _step(part: _Part, pictures: Collection[str]) -> Step:
    with at(part.line):
        if STATE not in part.blocks:
            raise ValueError(f"the step “{part.title}” has no “state” block")
    given, ask, check = (part.blocks.get(name) for name in BLOCKS)
    state = _state(given)
    target = state.pop(TARGET, "")
    with at(given.lines.get(TARGET, given.line)):
        _known(target, pictures)
    told = {"title": part.title, "state": state, "target": target, "line": part.line}
    before, after = (tree("\n".join(text).strip()) for text in (part.before, part.after))
    values = {}
    if check and "values" in check:
        with at(check.lines["values"]):
            if not isinstance(check["values"], Fields):
                raise ValueError("“values” is a mapping of names and quantities")
        values = quantities(check["values"])
    unknown = next(iter([*values_in(before), *(name for name in values_in(after) if name not in values)]), "")
    with at(part.told_at.get(unknown, part.line)):
        if unknown:
            there = ", ".join(values) or "none"
            raise ValueError(f"“{{{unknown}}}” is told, and is none of the “values” of a check before it: {there}")
    told |= {"before": before, "after": after, "values": values}
    if ask is None:
        return Step(**told, task=task(check) if check and set(check) != {"values"} else None)
    kind, asked = question(ask, check)
    hides = ask.get("hides", Items())
    for name in hides:
        with at(ask.lines["hides"]):
            _known(name, pictures)
    return Step(**told, question=asked, asks=ask[kind], hides=tuple(hides))


def _known(picture: object, pictures: Collection[str]):
    if not isinstance(picture, str):
        raise ValueError(f"a picture has a name, got {picture!r:.60}")
    if picture and pictures and picture not in pictures:
        raise ValueError(f"there is no picture “{picture}”; there are {', '.join(sorted(pictures))}")


def _state(given: Fields) -> dict[str, object]:
    """A state block's values, as the address has them."""
    taken(given, {TARGET: str, **dict.fromkeys(NAMES, (str, int, float))})
    for name, value in given.items():
        with at(given.lines[name]):
            if name == "view" and value not in TABS:
                raise ValueError(f"there is no view “{value}”; there are {', '.join(TABS)}")
            if name in WORDS and value not in WORDS[name]:
                raise ValueError(f"“{name}” is one of {', '.join(WORDS[name])}, got {value!r:.60}")
            if name.endswith("edits"):
                parse_edits(str(value))
    with at(given.line):
        if not isinstance(given.get("text"), str) or not given["text"]:
            raise ValueError("“text” is missing: the text that the model reads")
        if "view" not in given:
            raise ValueError("“view” is missing: the tab that is open")
    return dict(given)
