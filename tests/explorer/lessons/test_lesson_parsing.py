"""Parsing of lesson files, and error messages with the line of the mistake."""

import re

import pytest

from explorer.lessons.lesson import MAX_STEPS, load_lesson, parse_lesson
from explorer.lessons.yaml_blocks import LessonError
from tests.subtest_loops import subtest_each

from .conftest import FRONT, STATE, STATE_LINE, TEACHING, lesson_text

CHOICE = """
```ask
choice: Which?
options:
  - says: more
    when: {more: [{of: tokens}, 3]}
  - says: less
    when: {less: [{of: tokens}, 3]}
hides: [attention-pattern]
```
"""
CHECK = "\n```check\n%s\n```\n"
TOP = "\n```ask\ntoken: Which?\n```\n"
NUMBER = "\n```ask\nnumber: How much?\nfrom: 0\nto: 1\n```\n"


def test_lesson_has_front_matter_and_steps():
    text = lesson_text(f"Before, *so*.\n{CHOICE}\nAfter.\n") + f"\n## Another\n{STATE}"
    lesson = parse_lesson("a-name", text)
    assert (lesson.name, lesson.title, lesson.audience, lesson.minutes) == ("a-name", "A lesson", "testers", 1)
    assert (lesson.model, lesson.misconception, lesson.prerequisites) == ("llama-fables", "nothing", ())
    first, second = lesson.steps
    assert (first.title, first.question_text, first.hidden_figures) == ("A step", "Which?", ("attention-pattern",))
    assert first.before == [{"kind": "paragraph", "parts": ["Before, ", {"kind": "emphasis", "parts": ["so"]}, "."]}]
    assert first.after == [{"kind": "paragraph", "parts": ["After."]}]
    assert [option.text for option in first.question.options] == ["more", "less"]
    assert (second.title, second.question, second.task, second.after) == ("Another", None, None, [])
    assert lesson.state(2) == {"checkpoint": "llama-fables", **second.state}
    assert second.state["layer"] == 0 and second.state["view"] == "attention"


def test_step_number_is_clamped():
    lesson = parse_lesson("a", lesson_text() + f"\n## Another\n{STATE}")
    assert [lesson.step(number).title for number in (0, 1, 2, 3)] == ["A step", "A step", "Another", "Another"]


MISTAKES = {  # mistake -> (file, reported line, part of the message)
    "no front matter": ("## A step\n", 1, "front matter"),
    "an unknown name in it": (FRONT.replace("for:", "four:"), 3, "“four” is unknown"),
    "a missing name": (FRONT.replace("minutes: 1\n", "") + "## A\n" + STATE, 2, "“minutes” is missing"),
    "minutes in words": (FRONT.replace("minutes: 1", "minutes: one"), 4, "“minutes” must be integer"),
    "no step": (FRONT, 7, "1 to 12 steps"),
    "too many": (FRONT + f"\n## A\n{STATE}" * (MAX_STEPS + 1), 7, "1 to 12 steps"),
    "a step without a state": (f"{FRONT}\n## A step\n", 9, "“A step” has no “state”"),
    "two states": (lesson_text(STATE), STATE_LINE + 7, "one “state” block"),
    "a block that is none": (lesson_text("\n```python\n1\n```\n"), STATE_LINE + 8, "'python'"),
    "a block without an end": (lesson_text("\n```ask\nchoice: x\n"), STATE_LINE + 8, "has no end"),
    "a number that is not worked out": (
        lesson_text(CHECK % "values:\n  some: {of: tokens}" + "\nThere are {some}.\nThere are {more} of them.\n"),
        STATE_LINE + 14,
        "“{more}” is told, and is none of the “values” of a check before it: some",
    ),
    "no YAML": (lesson_text(CHECK % "a: [1"), STATE_LINE + 9, "this is no YAML"),
    "no character": (lesson_text(CHECK % 'a: "\\U00110000"'), STATE_LINE + 9, "chr()"),
    "an endless number": (lesson_text(TOP + CHECK % f"top_token: {{rank: 0x{'f' * 5000}}}"), 1, "4300 digits"),
    "a list for a mapping": (lesson_text(CHECK % "- 1"), STATE_LINE + 9, "a block is a mapping"),
    "a name twice": (lesson_text(state=STATE.replace("head: 0", "layer: 1")), STATE_LINE + 3, "“layer” is there twice"),
    "an unknown name in a state": (lesson_text(state=STATE.replace("head", "had")), STATE_LINE + 3, "“had” is unknown"),
    "no such view": (
        lesson_text(state=STATE.replace("attention", "heads")),
        STATE_LINE + 1,
        "there is no view “heads”",
    ),
    "no text": (lesson_text(state=STATE.replace("text", "find")), STATE_LINE, "“text” is missing"),
    "no such change": (lesson_text(state=STATE.replace("key: 7", "edits: x*zero")), STATE_LINE + 5, ""),
    "no such figure": (lesson_text(CHOICE.replace("attention-pattern", "a-map")), STATE_LINE + 15, "“a-map”"),
    "a question of no kind": (lesson_text("\n```ask\nguess: x\n```\n"), STATE_LINE + 9, "of one kind"),
    "one option": (lesson_text("\n```ask\nchoice: x\noptions: []\n```\n"), STATE_LINE + 9, "2 to 6"),
    "an option that says not when": (
        lesson_text(CHOICE.replace("when: {more", "then: {more")),
        STATE_LINE + 12,
        "then",
    ),
    "no such condition": (lesson_text(CHOICE.replace("{more", "{most")), STATE_LINE + 12, "“most” is no condition"),
    "no such quantity": (
        lesson_text(CHOICE.replace("of: tokens", "of: words", 1)),
        STATE_LINE + 12,
        "“words” is no quan",
    ),
    "no such argument": (
        lesson_text(CHOICE.replace("of: tokens", "of: tokens, of_what: 1", 1)),
        STATE_LINE + 12,
        "of_what",
    ),
    "three to compare": (lesson_text(CHOICE.replace(", 3]", ", 3, 4]", 1)), STATE_LINE + 12, "2 quantities"),
    "a check that has no place": (
        lesson_text(CHOICE + CHECK % "top_token: {rank: 1}"),
        STATE_LINE + 19,
        "has no place",
    ),
    "another’s check": (
        lesson_text(TOP + CHECK % "number: {of: {of: tokens}, within: 1}"),
        STATE_LINE + 13,
        "top_",
    ),
    "a question without its check": (lesson_text(TOP), STATE_LINE + 9, "“top_token”, got none"),
    "rank 0": (lesson_text(TOP + CHECK % "top_token: {rank: 0}"), STATE_LINE + 13, "1 to 20"),
    "a slider without ends": (
        lesson_text(NUMBER.replace("from: 0\n", "") + CHECK % "number: {of: {of: tokens}, within: 1}"),
        STATE_LINE + 9,
        "“from” is missing",
    ),
    "ends the wrong way": (
        lesson_text(NUMBER.replace("to: 1", "to: -1") + CHECK % "number: {of: {of: tokens}, within: 1}"),
        STATE_LINE + 11,
        "below",
    ),
    "no such score": (
        lesson_text(NUMBER + CHECK % "number: {of: {of: head_score, score: copying}, within: 1}"),
        STATE_LINE + 15,
        "“score” of “head_score” is one of",
    ),
    "a token and a rank": (
        lesson_text(NUMBER + CHECK % "number: {of: {of: probability, token: a, rank: 1}, within: 1}"),
        STATE_LINE + 15,
        "either “token” or “rank”",
    ),
    "no such task": (lesson_text(CHECK % "find_neuron: {at_least: 1}"), STATE_LINE + 9, "find_head"),
    "a task without arguments": (
        lesson_text(CHECK % "find_head: {score: induction}"),
        STATE_LINE + 9,
        "at_least",
    ),
    "no such working": (
        lesson_text("\n```ask\nblanks: x\n```\n" + CHECK % "working: {of: layernorm, blanks: one}"),
        STATE_LINE + 13,
        "“layernorm” is no working",
    ),
    "blanks of no kind": (
        lesson_text("\n```ask\nblanks: x\n```\n" + CHECK % "working: {of: score, blanks: two}"),
        STATE_LINE + 13,
        "one of none, one, all",
    ),
    "a number that nobody works out": (lesson_text(CHOICE + "It is {share}.\n"), STATE_LINE + 17, "“{share}”"),
    "a number told before the question": (lesson_text("It is {share}.\n"), STATE_LINE + 7, "“{share}”"),
}


@subtest_each(("text", "line", "sentence"), MISTAKES.values(), ids=MISTAKES)
def test_mistake_is_reported_with_line(tmp_path, text, line, sentence):
    file = tmp_path / "a-lesson.md"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(LessonError) as error:
        load_lesson(file, figure_ids={"attention-pattern"})
    assert str(error.value).startswith(f"a-lesson.md:{line}: "), error.value
    assert sentence in str(error.value)


def test_invalid_lesson_name_is_refused(tmp_path):
    file = tmp_path / "A lesson.md"
    file.write_text(lesson_text(), encoding="utf-8")
    with pytest.raises(LessonError, match="small letters"):
        load_lesson(file)


def test_recursive_yaml_is_refused():
    with pytest.raises(LessonError, match="holds itself"):
        parse_lesson("a", lesson_text(CHECK % "values: &a\n  x: *a"))


def test_example_lesson_in_guide_is_valid():
    page = TEACHING.read_text(encoding="utf-8")
    (whole,) = re.findall(r"````markdown\n(.*?)````", page, re.DOTALL)
    assert [step.title for step in parse_lesson("whole", whole).steps] == [
        "A head with a habit",
        "Where does it look?",
        "Find another",
    ]
