"""Lessons on the static page: each available step has the questions and the feedback of the served page."""

import json
from typing import Any

import pytest

from explorer.lessons.lesson import LessonLibrary
from explorer.state.page_state import PageState
from explorer.tracing.model_library import ModelLibrary
from explorer.tracing.run_service import RunService
from explorer.translations import use_locale
from explorer.web.actions.page_actions import LessonStepStates
from explorer.web.actions.page_state_builder import PageStateBuilder
from explorer.web.browser_api.lesson_endpoints import REVEAL_ANSWER, LessonContents, LessonEndpoints
from explorer.web.shared_constants import LESSON
from explorer.web.static_page import lesson_files
from tests.exhaustive import exhaustive

from .test_static_page import LONG, find_difference, first_page, make_state, open_url, sites, unpack  # noqa: F401

pytestmark = pytest.mark.slow
PACKED = json.loads(lesson_files()["lessons.en.js"].removeprefix("export const LESSONS = ").removesuffix(";\n"))
STEPS = {lesson["name"]: [step["is_here"] for step in lesson["steps"]] for lesson in PACKED}
CORE = {"choosing-the-next-word", "many-heads"}  # these have every kind of question and task
OFFERED = [name for name, are_here in STEPS.items() if are_here]
# The state of a step as the page opens it, and its contents with each reply
STEP_CONTENTS = """async ([lesson, step, state, replies]) => {
  const own = (path) => import(new URL(`../../explorer/web/without_server/${path}`, document.baseURI));
  const { applyAction, openRun } = await own("actions.js");
  const { packLesson } = await own("lessons.js");
  const change = lesson ? (await applyAction({ kind: "lesson", lesson, step }, state)).change : {}, told = [];
  for (const reply of replies) told.push(await packLesson("show", await openRun({ ...state, ...change, reply })));
  return JSON.stringify([change, ...told]);
}"""


@pytest.fixture(scope="module")
def contents() -> LessonContents:
    runs = RunService(ModelLibrary("cpu"))
    return LessonContents(LessonLibrary(), runs, PageStateBuilder(runs).state_from_query)


def make_replies(question: dict[str, Any], truth: dict[str, Any]) -> list[str]:
    """Return a right and a wrong reply, by the payloads of the question and of its correct answer."""
    if question["kind"] == "choice":
        wrong = next(number for number in range(1, 9) if number not in truth["right"])
        return [str(truth["right"][0]), str(wrong)]
    if question["kind"] == "token":
        return [truth["bars"][truth["right"]]["token"], truth["bars"][truth["right"] - 1]["token"]]
    if question["kind"] == "cell":
        last = len(question["rows"]) - 1, len(question["columns"]) - 1
        return ["_".join(map(str, cell)) for cell in (truth["right"], last if truth["right"] != [*last] else (0, 0))]
    numbers = truth["truth"] if isinstance(truth["truth"], list) else [truth["truth"]]
    numbers = [number.replace("−", "-") if isinstance(number, str) else f"{number:.4g}" for number in numbers]
    return ["_".join(numbers), "_".join(["777", *numbers[1:]])]


def lesson_contents(contents: LessonContents, state: dict[str, Any], reply: str) -> dict[str, Any]:
    """Return Python's contents of the lesson widget, converted to JSON and back."""
    state = state | {"reply": reply}
    return json.loads(json.dumps(contents.contents(PageState.parse(state), state, "show")))


@pytest.mark.parametrize("name", [name if name in CORE else exhaustive(name) for name in OFFERED])
def test_lesson_content_matches_python(first_page, contents, name):  # noqa: F811
    steps, wrong = [number for number, is_here in enumerate(STEPS[name], 1) if is_here], []
    before = first_page.evaluate("window.explorer.state")
    for number in steps:
        page_state, settings = LessonStepStates(contents).go_to_step(before, {"lesson": name, "step": number})
        state = page_state.as_dict() | settings.as_dict()
        revealed = f"{number}:{REVEAL_ANSWER}"
        payload = lesson_contents(contents, state, revealed)[LESSON]
        replies = make_replies(payload["question"], payload["judged"]["truth"]) if "judged" in payload else []
        replies = ["", revealed, *(f"{number}:{reply}" for reply in [*replies, "none"] if "judged" in payload)]
        change, *payloads = json.loads(first_page.evaluate(STEP_CONTENTS, [name, number, before, replies]))
        opened = {field: state[field] for field in change.keys() & state.keys() - {"turn"}}
        wrong.append(
            find_difference({field: change[field] for field in opened}, json.loads(json.dumps(opened)), "state")
        )
        pairs = zip(replies, payloads, strict=True)
        wrong += [
            find_difference(ours, lesson_contents(contents, state, reply), f"{number} {reply}") for reply, ours in pairs
        ]
        verdicts = [one[LESSON]["judged"]["is_right"] for one in payloads[2:-1]]
        assert verdicts in ([], [True, False])
    assert steps and not list(filter(None, wrong))


# A task's lesson and step, and state changes that complete it
COMPLETED_TASKS = [
    ("who-looks-at-whom", 10, {"layer": 5, "head": 5}),
    ("tokens-and-merges", 6, {"text": "cat moon The zebra"}),
]


def test_completed_task_is_recognised_in_another_language(open_url, sites, contents):  # noqa: F811
    page, done = open_url(f"{sites['docs/try/']}?lang=zh-CN&depth=numbers"), []
    with use_locale("zh-CN"):
        for name, number, change in COMPLETED_TASKS:
            before = page.evaluate("window.explorer.state")
            page_state, settings = LessonStepStates(contents).go_to_step(before, {"lesson": name, "step": number})
            state = make_state(page, page_state.as_dict() | settings.as_dict() | change)
            _change, ours = json.loads(page.evaluate(STEP_CONTENTS, ["", 0, state, [""]]))
            assert not find_difference(ours, lesson_contents(contents, state, ""), name)
            done.append(ours[LESSON]["task"]["is_done"])
    assert all(done)


CALL = """async ([name, ...given]) => {
  const { callServer } = await import(new URL("../../explorer/web/without_server/answers.js", document.baseURI));
  return JSON.stringify(await callServer(name, given));
}"""
# A walkthrough, and changes of the state
WALKS = [
    ("attention", {"layer": 2, "head": 1, "query": 5, "key": 3}),
    ("attention", {"text": LONG, "layer": 4, "head": 3, "query": 40, "key": 6}),
    ("attention", {"edits": "blocks.1.attn.z.0*zero", "layer": 1, "head": 0, "checkpoint": "llama-fables-gpt"}),
    ("rotation", {"layer": 1, "head": 3, "query": 9, "key": 7}),
    ("rotation", {"text": LONG, "query": 45, "key": 0}),
    ("layers", {"query": 9}),
    ("layers", {"checkpoint": "llama-fables-gpt", "query": 0}),
]


def test_walkthroughs_and_lesson_sheet_match_python(first_page, contents):  # noqa: F811
    endpoints, differences = LessonEndpoints(contents.runs, contents), []
    for name, change in WALKS:
        state = make_state(first_page, {"layer": 0, "head": 0} | change)
        ours = json.loads(first_page.evaluate(CALL, ["walk", state, name]))
        differences.append(find_difference(ours, json.loads(json.dumps(endpoints.walk(state, name))), name))
    for step in (("who-looks-at-whom", 2), ("choosing-the-next-word", 6), ("choosing-the-next-word", 10)):
        ours = json.loads(first_page.evaluate(CALL, ["lesson_sheet", state, *step]))
        sheets = [ours, json.loads(json.dumps(endpoints.lesson_sheet(state, *step)))]
        figures = [unpack(sheet["figure"].pop("content")) for sheet in sheets if sheet["figure"]]
        differences += [find_difference(*sheets), find_difference(*figures) if figures else None]
    assert not list(filter(None, differences))
