"""Lessons: their steps, their files (the format: docs/teaching.md), and all that are available."""

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from explorer.interventions import parse_interventions
from explorer.lessons.quantities import LessonQuantity, lesson_state_fields, parse_quantities
from explorer.lessons.questions import Question, parse_lesson_question, parse_lesson_task
from explorer.lessons.tasks import Task
from explorer.lessons.yaml_blocks import (
    LessonError,
    ListWithLines,
    MappingWithLines,
    parse_yaml_mapping,
    raise_value_errors_as_lesson_errors,
    validate_mapping_fields,
)
from explorer.state.selection import field_choices, view_names
from explorer.translations import LANGUAGES, current_locale, use_locale

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
    """Parse a lesson's Markdown to blocks of plain data, which the page renders as text, without HTML.

    A block is {"kind": "paragraph", "parts"}, {"kind": "list", "ordered", "items"}, {"kind": "table", "head", "rows"}
    or {"kind": "code", "text"}; items and cells are parts. A part is a text, {"kind": "code", "text"}, {"kind":
    "strong" or "emphasis", "parts"}, or {"kind": "value", "name"}, a number that is computed when it is shown.
    """
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


NEXT_TOKEN = "next-token"  # as a question names the panel beside the tabs


@dataclass(frozen=True)
class LessonStep:
    """A step of a lesson: a page state, text, and a question or a task.

    Attributes:
        title: in a line.
        before: the text before the question or task.
        state: fields of the page's state and their values.
        target: element id of the figure to highlight; "" for none.
        question: the question, if any.
        question_text: the question's text.
        hidden_figures: element ids of figures that would give away the answer.
        task: the task, if there is no question.
        after: the text after a reply, or after the task is done.
        values: quantities shown in `after`, by name.
        line: in the file.
    """

    title: str
    before: list[Block]
    state: Mapping[str, Any]
    target: str = ""
    question: Question | None = None
    question_text: str = ""
    hidden_figures: tuple[str, ...] = ()
    task: Task | None = None
    after: list[Block] = field(default_factory=list)
    values: Mapping[str, LessonQuantity] = field(default_factory=dict)
    line: int = 1


@dataclass(frozen=True)
class Lesson:
    """A lesson: its metadata and its steps.

    Attributes:
        name: in the URL.
        title: its title.
        audience: its intended students.
        minutes: its duration.
        model: the model that it is written for.
        prerequisites: names of the lessons that come before.
        misconception: the misconception that it addresses.
        steps: in order.
    """

    name: str
    title: str
    audience: str
    minutes: int
    model: str
    prerequisites: tuple[str, ...]
    misconception: str
    steps: tuple[LessonStep, ...]

    def step(self, number: int) -> LessonStep:
        """Return the step with this number, from 1, or the nearest one."""
        return self.steps[min(max(number, 1), len(self.steps)) - 1]

    def state(self, number: int, model: str = "") -> dict[str, Any]:
        """Return the raw page state of a step, with the lesson's model or another."""
        return {"checkpoint": model or self.model, **self.step(number).state}


FRONT_MATTER_KINDS = {"title": str, "for": str, "minutes": int, "model": str, "needs": ListWithLines, "against": str}
MAX_STEPS, MAX_BYTES = 12, 200_000
NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,59}")
STATE, ASK, CHECK = BLOCKS = ("state", "ask", "check")
TARGET = "target"  # in a state block, and no name of the address


@dataclass
class _Section:
    """Lines of a file under one heading, from `line` on: text and blocks."""

    title: str
    line: int
    before: list[str] = field(default_factory=list)
    after: list[str] = field(default_factory=list)
    blocks: dict[str, MappingWithLines] = field(default_factory=dict)
    value_lines: dict[str, int] = field(default_factory=dict)  # name in braces -> its first line


def load_lesson(path: Path, figure_ids: Collection[str] = ()) -> Lesson:
    """Load the lesson in a file; the file's name is the lesson's.

    Args:
        figure_ids: element ids of all figures that a step may highlight or hide; none for no check.

    Raises:
        LessonError: the file is no lesson; with the file's name and the line.
    """
    try:
        with raise_value_errors_as_lesson_errors(1):
            if path.stat().st_size > MAX_BYTES:
                raise ValueError(f"a lesson has at most {MAX_BYTES:,} bytes")
            text = path.read_text(encoding="utf-8")
            if not NAME.fullmatch(path.stem):
                raise ValueError("a lesson’s file is named with small letters, digits and hyphens")
            return parse_lesson(path.stem, text, figure_ids)
    except LessonError as error:
        raise LessonError(error.line, error.sentence, path.name) from None


def parse_lesson(name: str, text: str, figure_ids: Collection[str] = ()) -> Lesson:
    """Parse a lesson from its text."""
    lines = text.replace("\r\n", "\n").split("\n")
    if lines[0].strip() != "---" or "---" not in [line.strip() for line in lines[1:]]:
        raise LessonError(1, "a lesson begins with its front matter between two lines of “---”")
    end = [line.strip() for line in lines].index("---", 1)
    front = validate_mapping_fields(
        parse_yaml_mapping("\n".join(lines[1:end]), 2),
        FRONT_MATTER_KINDS,
        ("title", "for", "minutes", "model", "against"),
    )
    needs = front.get("needs", ListWithLines())
    if not all(isinstance(need, str) for need in needs):
        raise LessonError(front.line, "“needs” is a list of names of lessons")
    sections = _split_sections(lines, end + 1)
    if not 1 <= len(sections) <= MAX_STEPS:
        raise LessonError(end + 1, f"a lesson has 1 to {MAX_STEPS} steps, each under a line that begins with “## ”")
    steps = tuple(_parse_step(section, figure_ids) for section in sections)
    values = front["title"], front["for"], front["minutes"], front["model"], tuple(needs), front["against"]
    return Lesson(name, *values, steps)


def _split_sections(lines: list[str], start: int) -> list[_Section]:
    """Split the lines at their headings; the text before the first heading is a comment."""
    sections, i = [], start
    while i < len(lines):
        line, number = lines[i], i + 1
        i += 1
        if line.startswith("## "):
            sections.append(_Section(line[3:].strip(), number))
            continue
        if not sections:
            continue
        section, kind = sections[-1], line[3:].strip()
        text = section.after if ASK in section.blocks or CHECK in section.blocks else section.before
        if not line.startswith("```"):
            text.append(line)
            for value in placeholder_names(parse_markdown(line)):
                section.value_lines.setdefault(value, number)
            continue
        until = next((j for j in range(i, len(lines)) if lines[j].startswith("```")), None)
        if until is None:
            raise LessonError(number, "this block has no end: a line of ``` is missing")
        if kind in section.blocks:
            raise LessonError(number, f"a step has one “{kind}” block, and this is another")
        if kind in BLOCKS:
            section.blocks[kind] = parse_yaml_mapping("\n".join(lines[i:until]), number + 1)
        elif kind:
            raise LessonError(number, f"a block is one of {', '.join(BLOCKS)}, got {kind!r:.40}")
        else:
            text += lines[i - 1 : until + 1]
        i = until + 1
    return sections


def _parse_step(section: _Section, figure_ids: Collection[str]) -> LessonStep:
    if STATE not in section.blocks:
        raise LessonError(section.line, f"the step “{section.title}” has no “state” block")
    state_block, ask, check = (section.blocks.get(name) for name in BLOCKS)
    state = _validate_state(state_block)
    target = state.pop(TARGET, "")
    _check_figure(target, figure_ids, state_block.lines.get(TARGET, state_block.line))
    step_fields = {"title": section.title, "state": state, "target": target, "line": section.line}
    before, after = (parse_markdown("\n".join(text).strip()) for text in (section.before, section.after))
    values = {}
    if check and "values" in check:
        if not isinstance(check["values"], MappingWithLines):
            raise LessonError(check.lines["values"], "“values” is a mapping of names and quantities")
        values = parse_quantities(check["values"])
    unknown = next(
        iter([*placeholder_names(before), *(name for name in placeholder_names(after) if name not in values)]), ""
    )
    if unknown:
        defined = ", ".join(values) or "none"
        raise LessonError(
            section.value_lines.get(unknown, section.line),
            f"“{{{unknown}}}” is told, and is none of the “values” of a check before it: {defined}",
        )
    step_fields |= {"before": before, "after": after, "values": values}
    if ask is None:
        return LessonStep(**step_fields, task=parse_lesson_task(check) if check and set(check) != {"values"} else None)
    kind, step_question = parse_lesson_question(ask, check)
    hidden_figures = ask.get("hides", ListWithLines())
    for name in hidden_figures:
        _check_figure(name, figure_ids, ask.lines["hides"])
    return LessonStep(
        **step_fields, question=step_question, question_text=ask[kind], hidden_figures=tuple(hidden_figures)
    )


def _check_figure(figure_id: object, figure_ids: Collection[str], line: int):
    if not isinstance(figure_id, str):
        raise LessonError(line, f"a figure has a name, got {figure_id!r:.60}")
    if figure_id and figure_ids and figure_id not in figure_ids:
        raise LessonError(line, f"there is no figure “{figure_id}”; there are {', '.join(sorted(figure_ids))}")


def _validate_state(state_block: MappingWithLines) -> dict[str, object]:
    """Validate a state block and return its values as a raw state."""
    validate_mapping_fields(state_block, {TARGET: str, **dict.fromkeys(lesson_state_fields(), (str, int, float))})
    choices = field_choices()
    for name, value in state_block.items():
        with raise_value_errors_as_lesson_errors(state_block.lines[name]):
            if name == "view" and value not in view_names():
                raise ValueError(f"there is no view “{value}”; there are {', '.join(view_names())}")
            if name in choices and value not in choices[name]:
                raise ValueError(f"“{name}” is one of {', '.join(map(str, choices[name]))}, got {value!r:.60}")
            if name.endswith("edits"):
                parse_interventions(str(value))
    if not isinstance(state_block.get("text"), str) or not state_block["text"]:
        raise LessonError(state_block.line, "“text” is missing: the text that the model reads")
    if "view" not in state_block:
        raise LessonError(state_block.line, "“view” is missing: the tab that is open")
    return dict(state_block)


BUNDLED = Path(__file__).parent
ORDER = (  # of those beside this folder; a teacher's own come after, by their names
    "tokens-and-merges",
    "vectors-and-meaning",
    "who-looks-at-whom",
    "the-mask",
    "many-heads",
    "order",
    "residual-stream",
    "norms",
    "feed-forward",
    "choosing-the-next-word",
    "learning-to-copy",
    "silencing",
)


@dataclass(frozen=True)
class LessonLibrary:
    """Lessons by name, in the user's language where there is a translation, loaded at the first use.

    Attributes:
        teacher_folder: a folder with a teacher's lessons, which replace bundled ones of the same name.
        figure_ids: element ids of the figures that a lesson may name.
        bundled: the folder with the bundled lessons.
    """

    teacher_folder: Path | None = None
    figure_ids: Collection[str] = ()
    bundled: Path = BUNDLED
    _by_language: dict[str, dict[str, Lesson]] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def lessons(self) -> dict[str, Lesson]:
        """All lessons by name, in the order in which they are listed, in the current locale's language.

        Raises:
            LessonError: a file is no lesson.
        """
        language = current_locale()
        if language not in self._by_language:
            self._by_language[language] = self._load(language)
        return self._by_language[language]

    def _load(self, language: str) -> dict[str, Lesson]:
        paths = {
            path.stem: path for folder in (self.bundled, self.teacher_folder) if folder for path in lesson_files(folder)
        }
        first = [name for name in ORDER if name in paths]
        names = [*first, *sorted(paths.keys() - {*first})]
        return {name: load_lesson(translated_path(paths[name], language), self.figure_ids) for name in names}

    def check(self):
        """Load all lessons in all languages.

        Raises:
            LessonError: a file is no lesson.
            FileNotFoundError: the teacher's folder has none.
        """
        if self.teacher_folder and not lesson_files(self.teacher_folder):
            raise FileNotFoundError(f"there are no lessons, files that end with .md, in {self.teacher_folder}")
        for language in LANGUAGES:
            with use_locale(language):
                _all = self.lessons


def translated_path(path: Path, language: str) -> Path:
    """Return the path of a lesson's translation, `zh_CN/NAME.md` beside it, or its own if there is none."""
    translation = path.parent / language.replace("-", "_") / path.name
    return translation if translation.is_file() else path


def lesson_files(folder: Path) -> list[Path]:
    """Return the lesson files in a folder: all Markdown files except its README."""
    return [path for path in sorted(folder.glob("*.md")) if path.stem.lower() != "readme"]
