"""Presenting and printing lessons."""

import re

import pytest
from playwright.sync_api import TimeoutError, expect

from ..legibility import ALL_DRAWN, BEAMER, assert_accessible, assert_fits, assert_legible
from .steps import CORE_LESSON, LESSONS, PHONE, find_lesson, open_lesson, open_next_step

PAGE_TIMEOUT_MS = 40_000  # milliseconds


@pytest.mark.exhaustive
def test_lesson_is_accessible_and_terms_are_explained(open_new_page, bundled_address):
    person = open_new_page(address=bundled_address, viewport=PHONE, color_scheme="dark", reduced_motion="reduce")
    page = person.page
    open_lesson(page, bundled_address, lesson=CORE_LESSON, step=1)
    term = find_lesson(page).locator(".before .term").first
    expect(term).to_have_text("token")
    term.focus()
    expect(page.locator("#definition")).to_contain_text("a piece of text")
    for _step in range(3):  # a text, a question, a derivation
        assert_accessible(page, "#lesson")
        open_next_step(page)
        page.wait_for_function(ALL_DRAWN)


STAGE_POSITION = "() => [document.querySelector('#stage .at').textContent, document.body.dataset.page]"


TWO_ROWS_OF_CLOCKS = """() => {
  const names = [...document.querySelectorAll(".presented .annotation-text")];
  const tops = names.map((name) => Math.round(name.getBoundingClientRect().y));
  return tops.length === 16 && new Set(tops).size === 2 && tops.filter((top) => top === tops[0]).length === 8;
}"""


WITHIN_PAPER = """(drawings) => drawings.length > 0 && drawings.every((drawing) =>
  drawing.getBoundingClientRect().right <= drawing.closest("section").getBoundingClientRect().right + 1)"""


def test_figure_has_full_width_below_short_text_and_above_sheet(open_new_page, bundled_address):
    page = open_new_page(address=bundled_address, viewport=BEAMER, reduced_motion="reduce").page
    open_lesson(page, bundled_address, lesson="order", step=2)
    page.wait_for_function(ALL_DRAWN)
    figure, sheet = page.locator("#positions-clocks .plot").bounding_box(), find_lesson(page).bounding_box()
    assert figure["y"] > 0 and figure["y"] + figure["height"] <= sheet["y"]
    page.keyboard.press("p")
    expect(page.locator("#stage h2")).to_have_text("One rotation: an example")
    page.keyboard.press("PageDown")
    expect(page.locator("body")).to_have_attribute("data-page", "after")
    page.wait_for_function("document.querySelector('.presented').getBoundingClientRect().width > 900")
    page.wait_for_function(ALL_DRAWN)
    assert_legible(page)
    words = find_lesson(page).locator(".after").bounding_box()
    assert words["y"] + words["height"] <= page.locator(".presented").bounding_box()["y"]
    page.wait_for_function(TWO_ROWS_OF_CLOCKS)  # the figure may be redrawn in its final size
    open_lesson(page, bundled_address, lesson="choosing-the-next-word", step=10)
    page.wait_for_function(ALL_DRAWN)
    page.keyboard.press("p")
    page.locator("#prompt textarea").fill("Once upon a")
    page.locator("#run").click()  # it stands between the text and the figure
    expect(page.locator("#lesson .verdict")).to_contain_text("has probability 0.9")
    expect(page.locator("#next-token.presented .distribution")).to_be_visible()
    open_lesson(page, bundled_address, lesson="who-looks-at-whom", step=2)
    page.wait_for_function(ALL_DRAWN)
    page.keyboard.press("p")
    expect(page.locator("body")).to_have_attribute("data-page", "question")
    expect(page.locator("#lesson .before")).to_be_visible()  # with the question, as neither fills a slide
    expect(page.locator("#lesson .question .words .term")).to_be_visible()  # also if it is not underlined


def test_slides_begin_with_question_that_was_tried_before(open_new_page, bundled_address):
    page = open_new_page(address=bundled_address, viewport=BEAMER, reduced_motion="reduce").page
    open_lesson(page, bundled_address, lesson=CORE_LESSON, step=1)
    tried = {CORE_LESSON: {"step": 1, "replies": {"2": "2:1"}}}
    page.wait_for_function(ALL_DRAWN)
    page.evaluate("(tried) => localStorage.setItem('explorer:lessons', JSON.stringify(tried))", tried)
    page.keyboard.press("p")
    expect(page.locator("#stage .at")).to_have_text("1 / 10")
    page.keyboard.press("PageDown")
    expect(page.locator("#stage .at")).to_have_text(re.compile("^2a "))
    expect(find_lesson(page).locator(".verdict")).to_be_empty()
    assert page.evaluate("explorer.state.reply") == ""
    page.keyboard.press("PageDown")
    expect(page.locator("body")).to_have_attribute("data-page", "answer")
    for key, number in (("PageUp", "2"), ("PageUp", "1"), ("PageDown", "2")):  # what the class has seen stays open
        page.keyboard.press(key)
        expect(page.locator("#stage .at")).to_have_text(re.compile(f"^{number}[ab]? "))
    assert page.evaluate("explorer.state.reply").startswith("2:")


@pytest.mark.exhaustive
def test_figure_beside_question_keeps_its_width(open_new_page, bundled_address):
    page = open_new_page(address=bundled_address, viewport=BEAMER, reduced_motion="reduce").page
    for step, is_answered in ((2, True), (9, False)):
        open_lesson(page, bundled_address, lesson=CORE_LESSON, step=step)
        if is_answered:
            find_lesson(page).locator(".option").nth(1).click()
            expect(find_lesson(page).locator(".verdict p")).to_be_visible()
        page.wait_for_function(ALL_DRAWN)
        page.keyboard.press("p")
        expect(page.locator("body")).to_have_attribute("data-page", "question")
        if is_answered:
            expect(page.locator(".presented")).to_have_id("attention-pattern")
            page.wait_for_function(WIDE_CELLS)
        page.keyboard.press("PageDown")
        expect(page.locator("body")).to_have_attribute("data-page", "answer")
        expect(page.locator(".presented")).to_have_id("attention-pattern")
        page.wait_for_function(WIDE_CELLS)
    page.locator(".presented .nsewdrag").click(position={"x": 12, "y": 12})  # the figure still listens
    expect(page.locator(".presented .inspection")).to_be_visible()


# Whether the presented heatmap's axes are at least 200 pixels wide, and all within the screen.
WIDE_CELLS = """() => {
  const axes = document.querySelector(".presented .nsewdrag")?.getBoundingClientRect();
  return axes?.width > 200 && axes.right <= innerWidth;
}"""


def test_every_slide_of_lesson_is_legible(open_new_page, bundled_address):
    name = "norms"
    page = open_new_page(address=bundled_address, viewport=BEAMER, reduced_motion="reduce").page
    open_lesson(page, bundled_address, lesson=name, step=1)
    page.wait_for_function(ALL_DRAWN)
    page.keyboard.press("p")
    page.wait_for_selector("body.presenting")
    lesson, stages = LESSONS[name], []
    count, hiding = (
        len(lesson.steps),
        {i for i, step in enumerate(lesson.steps, 1) if step.target in step.hidden_figures},
    )
    while True:
        assert_legible(page)
        assert_fits(page)
        step_label, stage_part = page.evaluate(STAGE_POSITION)
        stages.append((step_label, stage_part))
        number = int(step_label.partition(" / ")[0].rstrip("abcd"))
        expect(page.locator("#stage h2")).to_have_text(lesson.step(number).title)
        if stage_part == "question" and number in hiding:
            expect(page.locator(".presented")).to_have_count(0)  # revealing figures come after the answer
        page.keyboard.press("PageDown")
        # After the last page nothing changes; wait only briefly where it is known to be the last.
        timeout_ms = PAGE_TIMEOUT_MS if number < count else 300 if stage_part == "after" else 1500
        try:
            page.wait_for_function(
                f"(before) => String(({STAGE_POSITION})()) !== before",
                arg=f"{step_label},{stage_part}",
                timeout=timeout_ms,
            )
        except TimeoutError:
            break
    with_question = {
        i for i, step in enumerate(lesson.steps, 1) if step.question and getattr(step.question, "blanks", "") != "none"
    }
    labels = [step_label for step_label, _shown in stages]
    assert len(set(labels)) == len(labels)  # 3a, 3b: every slide has its own number
    assert {int(re.match(r"\d+", label)[0]) for label in labels} == set(range(1, count + 1))
    assert len([stage_part for _label, stage_part in stages if stage_part == "answer"]) == len(with_question)


def test_printed_lesson_has_answers_on_separate_page(page, bundled_address):
    open_lesson(page, bundled_address, lesson=CORE_LESSON)
    lesson, sheet = LESSONS[CORE_LESSON], page.locator("#sheet")
    find_lesson(page).get_by_role("button", name="Print").click()
    expect(sheet).to_have_attribute("data-ready", "true")
    expect(sheet.locator(".step h2")).to_have_text([f"{i}. {step.title}" for i, step in enumerate(lesson.steps, 1)])
    with_question = [step for step in lesson.steps if step.question and getattr(step.question, "blanks", "") != "none"]
    expect(sheet.locator(".answer")).to_have_count(len(with_question))
    shares = sheet.locator(".step").filter(has_text="all blank").last
    expect(shares.locator(".blank")).to_have_count(9)  # four powers, their sum, four shares
    expect(sheet.locator(".answer").filter(has_text="all blank").last.locator("strong")).to_have_count(9)
    expect(sheet.locator(".step:nth-of-type(2) figure")).to_have_count(0)  # it would reveal the answer
    caption = sheet.locator("figcaption").first.text_content()
    assert re.search(r"\d", caption), caption  # names its head by number
    assert sheet.locator("figure .main-svg").evaluate_all(WITHIN_PAPER)
    expect(shares.locator("th sup").first).to_be_visible()
    with_answers = sheet.get_by_label("with the answers")
    expect(sheet.locator(".answers")).to_be_hidden()
    with_answers.check()
    expect(sheet.locator(".answer").first.locator("figure .main-svg").first).to_be_visible()
    page.emulate_media(media="print")
    assert page.locator("#sheet .paper").bounding_box()["width"] <= 178 / 25.4 * 96 + 1  # pixels of 178 mm
    expect(sheet.get_by_role("button", name="Print")).to_be_hidden()
    expect(page.locator("#title")).to_be_hidden()
    assert sheet.locator(".answers").evaluate("(all) => getComputedStyle(all).breakBefore") == "page"
    assert page.evaluate("document.documentElement.scrollHeight") > 3000  # the whole lesson, not a scrolling box
    page.emulate_media(media="screen")
    page.keyboard.press("Escape")
    expect(sheet).to_have_count(0)
    expect(find_lesson(page).get_by_role("button", name="Print")).to_be_focused()


@pytest.mark.exhaustive
def test_model_map_is_printed_in_light_theme(open_new_page, bundled_address):
    page = open_new_page(address=bundled_address, color_scheme="dark").page
    open_lesson(page, bundled_address, lesson="residual-stream")
    find_lesson(page).get_by_role("button", name="Print").click()
    expect(page.locator("#sheet")).to_have_attribute("data-ready", "true")
    printed_map = page.locator("#sheet .map-on-paper")
    expect(printed_map.locator(".part.head")).to_have_count(36)
    expect(printed_map.locator(".line").first).to_have_css("fill", "none")
    expect(printed_map.locator("svg")).to_have_css("fill", "rgb(17, 17, 17)")
    assert printed_map.evaluate("(map) => map.scrollWidth <= map.clientWidth && map.clientHeight > 200")


# Smallest distance between two tokens of the presented whole model, in pixels of the screen.
TOKEN_DISTANCE = """() => {
  const tops = [...document.querySelectorAll(".presented .token text")].map((text) => text.getBoundingClientRect().y);
  return Math.min(...tops.sort((a, b) => a - b).slice(1).map((top, i) => top - tops[i]));
}"""


def test_whole_model_has_room_for_its_tokens_after_a_pick(open_new_page, bundled_address):
    text = "Once upon a time there was a fox who wanted the moon."
    person = open_new_page(bundled_address, {"width": 1024, "height": 768}).open(view="", text=text)
    page = person.page
    page.locator("#guess .see").click()
    person.prediction.locator("tbody tr").nth(1).click()
    expect(person.chips.last).to_contain_class("generated")
    page.keyboard.press("p")
    picked = person.chips.last.text_content()
    expect(page.locator("#stage .text")).to_have_text(text + picked)
    page.wait_for_function(f"({TOKEN_DISTANCE})() >= 24")  # letters of 20 pixels do not touch
