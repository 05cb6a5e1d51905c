"""Translated lessons: they differ from the English ones only in their texts."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from explorer.lessons.lesson import BUNDLED, Lesson, LessonLibrary, lesson_files, load_lesson, translated_path
from explorer.lessons.questions import ChoiceQuestion, CurveQuestion, Question
from explorer.translations import ENGLISH, LANGUAGES, use_locale
from explorer.web.browser_api.lesson_endpoints import ELEMENT_IDS
from tests.subtest_loops import subtest_each

# Lessons that a language lacks: the page shows them in English.
UNTRANSLATED: dict[str, set[str]] = {"zh-CN": set(), "es": set()}
TRANSLATED = [
    pytest.param(path, language, id=f"{path.stem}-{language}")
    for language in UNTRANSLATED
    for path in lesson_files(BUNDLED)
    if translated_path(path, language) != path
]
ENGLISH_TEXT = {
    "zh-CN": re.compile(r"[A-Za-z]{2,} [a-z]{2,}"),
    "es": re.compile(
        r"(?i)\b(the|of|and|is|are|it|to|in|that|which|with|for|what|how|does|this)\b(?![^“]*”)"
    ),  # not quoted
}


def without_texts(lesson: Lesson) -> Lesson:
    """Return a lesson without its texts: only what the page displays, requests and checks."""
    steps = tuple(
        replace(
            step,
            title="",
            question_text="",
            line=1,
            before=[count_kinds(block) for block in step.before],
            after=[count_kinds(block) for block in step.after],
            question=without_labels(step.question),
        )
        for step in lesson.steps
    )
    return replace(lesson, title="", audience="", misconception="", steps=steps)


def without_labels(question: Question | None) -> Question | None:
    if isinstance(question, ChoiceQuestion):
        return replace(question, options=tuple(replace(option, text="") for option in question.options))
    if isinstance(question, CurveQuestion):
        return replace(question, labels=("",) * len(question.labels))
    return question


def count_kinds(tree: Any) -> Counter[tuple[str, str]]:
    """Count the parts of a block other than plain text: emphasised words, code, placeholders."""
    if isinstance(tree, list):
        return sum(map(count_kinds, tree), Counter())
    if not isinstance(tree, dict):
        return Counter()
    return Counter([(tree.get("kind", ""), tree.get("name", ""))]) + count_kinds(list(tree.values()))


def iter_texts(lesson: Lesson) -> Iterator[str]:
    yield from (lesson.title, lesson.audience, lesson.misconception)
    for step in lesson.steps:
        yield step.title
        yield from iter_plain_texts([step.before, step.after])
        if step.question:
            yield step.question_text
        if isinstance(step.question, ChoiceQuestion):
            yield from (option.text for option in step.question.options)


def iter_plain_texts(tree: Any) -> Iterator[str]:
    """Yield the text of each block, without its markup."""
    if isinstance(tree, list):
        for inner in tree:
            yield from iter_plain_texts(inner)
    elif isinstance(tree, dict) and "parts" in tree:
        yield "".join(part if isinstance(part, str) else "".join(iter_plain_texts([part])) for part in tree["parts"])


@subtest_each(("path", "language"), TRANSLATED)
def test_translation_differs_only_in_texts(path, language):
    lesson, translation = (load_lesson(file, ELEMENT_IDS) for file in (path, translated_path(path, language)))
    assert without_texts(translation) == without_texts(lesson)


@subtest_each(("path", "language"), TRANSLATED)
def test_translation_has_no_english_text(path, language):
    lesson, translation = (load_lesson(file) for file in (path, translated_path(path, language)))
    assert set(iter_texts(translation)) & set(iter_texts(lesson)) == set()
    assert [text for text in iter_texts(translation) if ENGLISH_TEXT[language].search(text)] == []


def test_untranslated_lessons_are_listed():
    """If this fails, translate the lesson, or list it above."""
    names = {path.stem for path in lesson_files(BUNDLED)}
    folders = {language: BUNDLED / language.replace("-", "_") for language in LANGUAGES if language != ENGLISH}
    translated = {language: {path.stem for path in lesson_files(folder)} for language, folder in folders.items()}
    assert {language: names - there for language, there in translated.items()} == UNTRANSLATED
    assert all(there <= names for there in translated.values())


def test_translated_lesson_follows_language():
    library = LessonLibrary()
    assert library.lessons["who-looks-at-whom"].title == "Attention: who looks at whom"
    with use_locale("zh-CN"):
        assert library.lessons["who-looks-at-whom"].title == "注意力：谁看谁"
        order = list(library.lessons)
    assert order == list(library.lessons)
    assert library.lessons["who-looks-at-whom"].title == "Attention: who looks at whom"


def test_untranslated_lesson_is_english(tmp_path):
    write_lesson(tmp_path / "translated.md", "Translated")
    write_lesson(tmp_path / "zh_CN" / "translated.md", "已翻译")
    write_lesson(tmp_path / "untranslated.md", "Untranslated")
    with use_locale("zh-CN"):
        lessons = LessonLibrary(bundled=tmp_path).lessons
        assert {lesson.title for lesson in lessons.values()} == {"已翻译", "Untranslated"}


def write_lesson(path: Path, title: str):
    text = (BUNDLED / "norms.md").read_text(encoding="utf-8")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(re.sub("title: .+", f"title: {title}", text, count=1), encoding="utf-8")


def test_bundled_translation_does_not_replace_own_lesson(tmp_path):
    write_lesson(tmp_path / "ours" / "same.md", "Ours")
    write_lesson(tmp_path / "ours" / "zh_CN" / "same.md", "我们的")
    write_lesson(tmp_path / "own" / "same.md", "Own")
    library = LessonLibrary(tmp_path / "own", bundled=tmp_path / "ours")
    with use_locale("zh-CN"):
        assert [lesson.title for lesson in library.lessons.values()] == ["Own"]
        write_lesson(tmp_path / "own" / "zh_CN" / "same.md", "自己的")
        library = LessonLibrary(tmp_path / "own", bundled=tmp_path / "ours")
        assert [lesson.title for lesson in library.lessons.values()] == ["自己的"]
