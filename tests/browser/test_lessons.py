"""Each lesson is gone through to its end: asked before it is told, nothing told before, and left where one likes."""

import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from explorer.lessons.course.lesson import Step
from explorer.lessons.course.shelf import Shelf

ROOT = Path(__file__).parents[2]
LESSONS = Shelf().lessons
PHONE = {"width": 390, "height": 844}
WALKED = "who-looks-at-whom"  # in the core suite
HTML = """---
title: A <b>lesson</b>
for: testers
minutes: 1
model: no-such-model
against: <img src=x onerror=alert(1)>
---

## A <i>step</i>

<script>alert(1)</script> {{1+1}} ${1+1}

```state
text: The cat saw the dog.
view: attention
```
"""


@pytest.fixture(scope="module")
def own(tmp_path_factory) -> Path:
    """A teacher's folder."""
    folder = tmp_path_factory.mktemp("own")
    (folder / "of-a-teacher.md").write_text(HTML, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def bundled_address(own) -> Iterator[str]:
    """Where the app answers with the bundled models: the other tests have put theirs in their place."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-u", "app.py", "--port", str(port), "--lessons", str(own)]
    server = subprocess.Popen(command, cwd=ROOT, env=dict(os.environ), stdout=subprocess.PIPE, text=True)
    assert any("Running on local URL" in line for line in server.stdout)
    yield f"http://127.0.0.1:{port}/"
    server.terminate()
    server.wait(timeout=60)


@pytest.fixture
def page(newcomer, bundled_address) -> Page:
    return newcomer(address=bundled_address).page


def column(page: Page) -> Locator:
    return page.locator("#lesson .lesson")


def open_lesson(page: Page, address: str, **query):
    page.goto(address + "?" + "&".join(f"{name}={value}" for name, value in query.items()))
    expect(column(page)).to_be_visible()


def at_step(page: Page, step: Step, place: int, steps: int):
    """The step is on show, its pictures drawn, and what it hides is hidden."""
    expect(column(page).locator("h2")).to_have_text(step.title)
    expect(column(page).locator(".of")).to_contain_text(f"{place} of {steps}")
    page.wait_for_function("!document.querySelector('[data-old-since]')")
    for name in step.hides:
        expect(page.locator(f"#{name} > *").first).to_be_hidden()
    if step.target and step.target not in step.hides:
        expect(page.locator(f"#{step.target}")).to_contain_class("pointed-out")


def reply(page: Page, step: Step):
    """Replies as somebody would who does not know better."""
    question, kind = column(page).locator(".question"), type(step.question).__name__
    if kind in ("Choice", "LargestCell") or (kind == "TopToken" and step.question.options):
        question.locator(".option, .cell").first.click()
    elif kind == "TopToken":
        question.locator("input").fill("moon")
        question.locator("input").press("Enter")
    elif kind in ("Number", "Curve"):
        question.locator(".reply").click()
    elif step.question.blanks == "none":
        return
    else:
        for box in question.locator("input").all():
            box.fill("1")
        question.locator("input").last.press("Enter")
    expect(column(page).locator(".verdict p")).to_have_text(re.compile("^[✓✗]"))
    expect(question.get_by_role("button", name="Ask me again")).to_be_visible()
    for name in step.hides:
        expect(page.locator(f"#{name} > *").first).not_to_have_css("visibility", "hidden")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name == WALKED else pytest.mark.exhaustive) for name in LESSONS]
)
def test_a_lesson_is_gone_through_to_its_end(page, bundled_address, name):
    lesson = LESSONS[name]
    open_lesson(page, bundled_address, lesson=name)
    for place, step in enumerate(lesson.steps, 1):
        at_step(page, step, place, len(lesson.steps))
        if step.question:
            reply(page, step)
        if step.question or not step.task:
            expect(column(page).locator(".after > *")).to_have_count(len(step.after))
        else:
            expect(column(page).locator(".verdict p")).not_to_have_text(re.compile("^✓"))
            expect(column(page).locator(".after > *")).to_have_count(0)
        column(page).get_by_role("button", name="Next" if place < len(lesson.steps) else "Finish").click()
    expect(column(page)).to_be_hidden()
    assert "lesson=" not in page.url or page.wait_for_function("!location.search.includes('lesson=')")


def next_step(page: Page):
    column(page).get_by_role("button", name="Next").click()


def picture(page: Page, name: str) -> Locator:
    return page.locator(f"#{name} .html-container").first


@pytest.mark.exhaustive
def test_what_would_tell_is_covered_in_every_tab_until_there_is_a_reply(page, bundled_address):
    open_lesson(page, bundled_address, lesson=WALKED, step=2)
    step = LESSONS[WALKED].step(2)
    at_step(page, step, 2, len(LESSONS[WALKED].steps))
    page.get_by_role("tab", name="Residual stream").click()
    expect(page.locator("#residual-lengths [data-draws]")).to_have_attribute("data-draws", re.compile(r"\d"))
    expect(picture(page, "residual-lengths")).to_be_hidden()
    expect(page.locator("#residual-formula .formula")).to_be_hidden()
    expect(page.locator("#why-token button")).to_be_hidden()
    expect(page.locator("#next-token .distribution")).to_be_visible()  # which tells nothing of it
    column(page).locator(".cell").first.click()
    expect(picture(page, "residual-lengths")).to_be_visible()
    page.get_by_role("tab", name="Attention").click()
    expect(picture(page, "attention-pattern")).to_be_visible()


def test_the_prediction_is_covered_wherever_it_is_told(page, bundled_address):
    open_lesson(page, bundled_address, lesson="choosing-the-next-word", step=2)
    expect(column(page).locator("input")).to_be_visible()
    for shown in ("#next-token .distribution", "#next-token-words .prose", "#prediction-lens .html-container"):
        expect(page.locator(shown)).to_be_hidden()
    page.set_viewport_size(PHONE)
    expect(page.locator("#brief button")).to_be_hidden()
    column(page).get_by_role("button", name="Show it without my reply").click()
    expect(column(page).locator(".verdict p")).to_contain_text("The run says")
    expect(column(page).locator(".verdict p")).not_to_contain_text(re.compile("[✓✗]"))
    expect(page.locator("#brief button")).to_be_visible()


@pytest.mark.exhaustive
def test_leaving_uncovers_all(page, bundled_address):
    open_lesson(page, bundled_address, lesson=WALKED, step=2)
    expect(picture(page, "attention-pattern")).to_be_hidden()
    column(page).get_by_role("button", name="Leave").click()
    expect(column(page)).to_be_hidden()
    expect(picture(page, "attention-pattern")).to_be_visible()
    expect(page.locator(".pointed-out")).to_have_count(0)
    page.wait_for_function("!/lesson|step=|reply/.test(location.search)")


def test_a_reply_belongs_to_its_step_and_outlives_a_reload(page, bundled_address):
    open_lesson(page, bundled_address, lesson="tokens-and-merges", step=4)
    question = column(page).locator(".question")
    question.locator(".option").nth(2).click()
    expect(column(page).locator(".verdict p")).to_contain_text("✓ Right.")
    expect(question.locator(".is-right")).to_have_text(re.compile("about 4,000.*✓ the run.*your reply"))
    expect(question.locator(".option").nth(2)).to_contain_class("is-yours")
    page.wait_for_function("location.search.includes('reply=4')")
    page.reload()
    expect(column(page).locator(".verdict p")).to_contain_text("✓ Right.")
    next_step(page)
    expect(column(page).locator("h2")).to_have_text(LESSONS["tokens-and-merges"].step(5).title)
    expect(column(page).locator(".verdict")).to_have_text("")
    expect(question.locator("button.option")).to_have_count(3)
    column(page).get_by_role("button", name="Back").click()
    expect(column(page).locator(".verdict p")).to_contain_text("✓ Right.")
    question.get_by_role("button", name="Ask me again").click()
    expect(question.locator("button.option")).to_have_count(4)


def test_the_browsers_back_goes_a_step_back(page, bundled_address):
    open_lesson(page, bundled_address, lesson=WALKED)
    heading, titles = column(page).locator("h2"), [step.title for step in LESSONS[WALKED].steps]
    expect(heading).to_have_text(titles[0])
    next_step(page)
    expect(heading).to_have_text(titles[1])
    next_step(page)
    expect(heading).to_have_text(titles[2])
    page.go_back()
    expect(heading).to_have_text(titles[1])
    page.go_back()
    expect(heading).to_have_text(titles[0])


@pytest.mark.exhaustive
def test_a_lesson_is_left_and_come_back_to_from_the_first_page(page, bundled_address):
    page.goto(bundled_address)
    page.get_by_role("button", name="Lessons").click()
    rows = page.locator("#lessons .one")
    expect(rows).to_have_count(len(LESSONS) + 1)
    rows.filter(has_text="What norms do").click()
    expect(column(page).locator(".of")).to_contain_text("1 of")
    expect(
        page.locator("#residual-lengths .main-svg").first
    ).to_be_visible()  # the tab of the step, from the simple page
    next_step(page)
    expect(column(page).locator(".of")).to_contain_text("2 of")
    column(page).get_by_role("button", name="Leave").click()
    page.get_by_role("button", name="Lessons").click()
    row = rows.filter(has_text="What norms do")
    expect(row).to_contain_text("go on with step 2")
    page.keyboard.press("Escape")
    expect(rows.first).to_be_hidden()
    page.get_by_role("button", name="Lessons").press("Enter")
    row.click()
    expect(column(page).locator(".of")).to_contain_text("2 of")


@pytest.mark.exhaustive
def test_a_lesson_is_text_and_says_that_its_model_is_not_here(page, bundled_address):
    open_lesson(page, bundled_address, lesson="of-a-teacher", checkpoint="llama-fables-gpt")
    expect(column(page).locator(".question p")).to_contain_text("no-such-model, which is not here")
    expect(column(page).locator("h2")).to_have_text("A <i>step</i>")
    expect(column(page).locator(".before p")).to_have_text("<script>alert(1)</script> {{1+1}} ${1+1}")
    expect(column(page).locator(".against")).to_have_text("Against the belief: <img src=x onerror=alert(1)>")
    expect(column(page).locator(":is(img, i, b, script)")).to_have_count(0)
    column(page).get_by_role("button", name="Go through it with llama-fables").click()
    expect(column(page).locator(".note")).to_have_text(
        "no-such-model is not here: all numbers are those of llama-fables."
    )
    expect(page.locator("#picker select")).to_have_value("llama-fables")
    expect(page.locator("#strip .chip")).to_have_count(6)


@pytest.mark.exhaustive
def test_a_head_is_found_by_a_click(page, bundled_address):
    open_lesson(page, bundled_address, lesson=WALKED, step=7)
    verdict = column(page).locator(".verdict p")
    expect(verdict).to_contain_text("You chose layer 0 head 0")
    page.locator("select[data-field=layer]:visible").select_option("5")
    page.locator("select[data-field=head]:visible").select_option("5")
    expect(verdict).to_have_text(re.compile("^✓ You chose layer 5 head 5"))
    expect(column(page).locator(".after p").first).to_be_visible()


@pytest.mark.exhaustive
def test_a_setting_of_a_step_is_on_its_slider(page, bundled_address):
    open_lesson(page, bundled_address, lesson="choosing-the-next-word", step=3)
    expect(column(page).locator(".of")).to_contain_text("3 of")
    next_step(page)
    expect(page.get_by_role("slider", name="temperature")).to_have_value("0.5")


@pytest.mark.exhaustive
def test_on_a_telephone_it_is_a_sheet_that_folds(newcomer, bundled_address):
    page = newcomer(address=bundled_address, viewport=PHONE).page
    open_lesson(page, bundled_address, lesson=WALKED, step=2)
    expect(column(page).locator(".cell").first).to_be_visible()
    assert column(page).bounding_box()["height"] <= 0.53 * PHONE["height"]
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    page.get_by_role("button", name="fold the lesson").click()
    expect(column(page).locator(".cell").first).to_be_hidden()
    assert column(page).bounding_box()["height"] < 60


def test_without_a_lesson_an_address_says_nothing_of_one(newcomer, bundled_address):
    page = newcomer(address=bundled_address).page
    page.goto(bundled_address)
    page.wait_for_function("location.search.includes('checkpoint=')")
    assert not re.search("lesson|step=|reply", page.url)
    expect(column(page)).to_be_hidden()


@pytest.mark.exhaustive
def test_no_chooser_names_the_token_that_is_asked_for(page, bundled_address):
    page.goto(f"{bundled_address}?lesson=silencing&step=1")
    chooser = page.locator("#experiments-choosers [data-field=target]")
    expect(chooser).to_contain_text("Lily")
    expect(chooser).to_be_hidden()
    expect(page.locator("#experiments-what-ifs .what-ifs")).to_be_hidden()
    page.get_by_role("button", name="Show it without my reply").click()
    expect(chooser).to_be_visible()
