"""Lesson part of an answer: the correct answer only after a reply, and nothing without a lesson."""

import json
from pathlib import Path

import pytest

from explorer.lessons.lesson import LessonLibrary
from explorer.state.page_state import PageState
from explorer.tracing.model_library import ModelLibrary
from explorer.tracing.run_service import RunService
from explorer.views import VIEWS
from explorer.web.actions.page_actions import LessonStepStates
from explorer.web.actions.page_state_builder import PageStateBuilder
from explorer.web.browser_api.endpoints import BrowserEndpoints
from explorer.web.browser_api.lesson_endpoints import ELEMENT_IDS, LessonContents, LessonEndpoints
from explorer.web.shared_constants import LESSON, NEXT_TOKEN, element_id
from tests.subtest_loops import subtest_each

FRONT = "---\ntitle: T\nfor: x\nminutes: 1\nmodel: {model}\nagainst: b\n---\n"
STEP = """
## {title}

```state
text: the fox asked the owl
view: attention
layer: 1
head: 0
query: {query}
key: 0
```
"""
NUMBER = """
```ask
number: How many?
from: 0
to: 20
hides: [attention-pattern]
```

```check
number: {{of: {{of: tokens}}, within: {within}}}
values: {{count: {{of: tokens}}}}
```

There are {{count}}, told *after*.
"""
TASK = "\n```check\nfind_head: {score: self, at_least: 2}\n```\n\nNever told.\n"
NEXT = "\n```ask\ntoken: Which?\nhides: [next-token]\n```\n\n```check\ntop_token: {rank: 1}\n```\n"


@pytest.fixture
def lesson_library(tmp_path) -> LessonLibrary:
    folder = tmp_path / "own"
    folder.mkdir()
    steps = [
        STEP.format(title="One", query=1) + NUMBER.format(within=0),
        STEP.format(title="Two", query=2) + NUMBER.format(within=9),
        STEP.format(title="Three", query=3) + TASK,
        STEP.format(title="Four", query=4) + NEXT,
        STEP.format(title="Five", query=4) + "\nOnly words.\n",
    ]
    (folder / "mine.md").write_text(FRONT.format(model="rope") + "".join(steps), encoding="utf-8")
    (folder / "gone.md").write_text(FRONT.format(model="no-such-model") + steps[0], encoding="utf-8")
    return LessonLibrary(folder, ELEMENT_IDS, bundled=tmp_path)


@pytest.fixture
def answers(lesson_library, library, builder) -> LessonContents:
    return LessonContents(lesson_library, builder.runs, builder.state_from_query)


@pytest.fixture
def num_tokens(builder) -> int:
    """Number of tokens of the lesson's text."""
    return len(builder.create_run("rope", "the fox asked the owl").prompt)


@pytest.fixture
def get_content(answers):
    """Function that returns the lesson's content at a step, with a reply: `get_content(2, "2:5")`."""

    def lesson_content(step: int, reply: str = "", lesson: str = "mine", about: str = "show", **change):
        page_state, settings = LessonStepStates(answers).go_to_step(
            {"checkpoint": "rope", "prompt": "1.2"}, {"lesson": lesson, "step": step}
        )
        state = page_state.as_dict() | {"reply": reply} | change
        return answers.contents(PageState.parse(state), state, about).get(LESSON)

    return lesson_content


def test_page_without_lesson_has_no_lesson_content(answers, page_state):
    assert answers.contents(page_state, page_state.as_dict(), "show") == {}


def test_step_has_content_of_its_file(get_content):
    content = get_content(1)
    assert (content["title"], content["heading"], content["step"], content["steps"]) == ("T", "One", 1, 5)
    assert content["question"] == {"words": "How many?", "kind": "number", "is_count": True, "lowest": 0, "highest": 20}


def test_correct_answer_is_absent_before_reply(get_content):
    for step in (1, 2, 4):
        content = get_content(step)
        assert not content.keys() & {"judged", "after"} and content["hides"]
        assert "told" not in json.dumps(content).replace("untold", "")


def test_reply_is_checked_and_explanation_follows(get_content, num_tokens):
    right, wrong = get_content(1, f"1:{num_tokens}"), get_content(1, f"1:{num_tokens + 1}")
    assert (right["judged"]["is_right"], wrong["judged"]["is_right"]) == (True, False)
    assert right["judged"]["reply"] == str(num_tokens) and right["judged"]["truth"]["truth"] == num_tokens
    (paragraph,) = right["after"]
    emphasis = {"kind": "emphasis", "parts": ["after"]}
    assert paragraph["parts"] == ["There are ", {"kind": "number", "text": str(num_tokens)}, ", told ", emphasis, "."]
    assert "hides" not in right


@subtest_each("reply", ["1:5", "3:5", "5", ":5", "2:", "2:x", "2:five", "22:5"])
def test_reply_to_another_step_or_malformed_reply_is_ignored(get_content, reply):
    content = get_content(2, reply)
    assert "judged" not in content and content["hides"]["ids"]


def test_correct_answer_can_be_requested_without_reply(get_content):
    content = get_content(1, "1:?")
    assert content["judged"]["is_right"] is None and content["judged"]["reply"] is None and content["after"]


def test_correct_answer_ignores_user_changes(get_content, num_tokens):
    content = get_content(1, f"1:{num_tokens}", prompt="1.2.3", edits="blocks.0.attn.z.0*zero", layer=0)
    assert content["judged"]["is_right"] is True


def test_task_is_checked_on_page_and_explained_once_done(get_content):
    content = get_content(3)
    assert content["task"]["is_done"] is False and "after" not in content
    assert "layer 1 head 0" in content["task"]["words"]
    assert "layer 0 head 1" in get_content(3, layer=0, head=1, about="pick")["task"]["words"]


def test_step_without_question_is_complete(get_content):
    assert get_content(5)["before"] and get_content(5)["after"] == []


def test_unchanged_lesson_content_is_not_sent_again(get_content):
    assert get_content(1, about="pick") is None and get_content(1, about="token") is None
    assert get_content(3, about="pick")


def test_revealing_elements_are_hidden_in_every_tab(get_content):
    first_step, next_token = get_content(1)["hides"], get_content(4)["hides"]
    assert first_step["view"] == "attention" and "attention-pattern" in first_step["ids"]
    assert NEXT_TOKEN not in first_step["ids"]
    assert {NEXT_TOKEN, "next-token-words", "guess", "brief", "why-token"} <= set(next_token["ids"])


def test_every_figure_has_element_id():
    assert {element_id(view.name, panel.name) for view in VIEWS for panel in view.panels} <= ELEMENT_IDS


def test_missing_model_is_reported_and_replacement_offered(get_content, answers, num_tokens):
    offered, checkpoints = answers.fallback_model, answers.runs.library.checkpoints
    assert offered in checkpoints
    content = get_content(1, lesson="gone", checkpoint=next(name for name in checkpoints if name != offered))
    assert content["missing"]["offered"] == offered and "no-such-model" in content["missing"]["words"]
    assert "question" not in content
    with_offered_model = get_content(1, f"1:{num_tokens}", lesson="gone", checkpoint=offered)
    assert (
        "missing" not in with_offered_model
        and "no-such-model" in with_offered_model["note"]
        and with_offered_model["judged"]["is_right"]
    )


def test_unknown_lesson_is_reported(answers, page_state):
    state = page_state.as_dict() | {"lesson": "<b>none</b>", "step": 1}
    content = answers.contents(PageState.parse(state), state, "show")[LESSON]
    assert "<b>none</b>" in content["problem"]


def test_list_has_all_lessons(answers, builder):
    listed = LessonEndpoints(builder.runs, answers).listed_lessons({})
    assert [(entry["name"], entry["steps"]) for entry in listed] == [("gone", 1), ("mine", 5)]
    assert LessonEndpoints(builder.runs, None).listed_lessons({}) == []


def test_answer_has_lesson_before_figures(answers, builder):
    page_state, _settings = LessonStepStates(answers).go_to_step(
        {"checkpoint": "rope", "prompt": "1.2"}, {"lesson": "mine", "step": 1}
    )
    contents = BrowserEndpoints(builder.runs, answers).answer("show", page_state.as_dict())["contents"]
    names = list(contents)
    assert names.index(LESSON) < names.index("attention-pattern")


def test_teachers_lesson_overrides_bundled_lesson(tmp_path):
    for folder, title in (("ours", "Ours"), ("own", "Own")):
        (tmp_path / folder).mkdir()
        text = FRONT.format(model="rope").replace("title: T", f"title: {title}") + STEP.format(title="A", query=0)
        (tmp_path / folder / "same.md").write_text(text, encoding="utf-8")
    lesson_library = LessonLibrary(tmp_path / "own", bundled=Path(tmp_path / "ours"))
    assert [lesson.title for lesson in lesson_library.lessons.values()] == ["Own"]


def test_listing_lessons_needs_no_run():
    answers = LessonContents(
        LessonLibrary(figure_ids=ELEMENT_IDS),
        RunService(ModelLibrary("cpu")),
        PageStateBuilder(RunService(ModelLibrary("cpu"))).state_from_query,
    )
    assert len(answers.list_lessons()) == 12
