"""Presenting and printing lessons."""

import re

import pytest
from playwright.sync_api import TimeoutError, expect

from ..legible import ALL_DRAWN, BEAMER, assert_accessible, assert_fits, assert_legible
from .steps import CORE_LESSON, LESSONS, PHONE, column, next_step, open_lesson

PAGE_TIMEOUT_MS = 40_000  # milliseconds


@pytest.mark.exhaustive
def test_a_lesson_can_be_read_and_its_words_are_explained(newcomer, bundled_address):
    person = newcomer(address=bundled_address, viewport=PHONE, color_scheme="dark", reduced_motion="reduce")
    page = person.page
    open_lesson(page, bundled_address, lesson=CORE_LESSON, step=1)
    term = column(page).locator(".before .term").first
    expect(term).to_have_text("token")
    term.focus()
    expect(page.locator("#definition")).to_contain_text("a piece of text")
    for _step in range(3):  # words, a question, a working
        assert_accessible(page, "#lesson")
        next_step(page)
        page.wait_for_function(ALL_DRAWN)


STAGE_AT = "() => [document.querySelector('#stage .at').textContent, document.body.dataset.page]"


TWO_ROWS_OF_CLOCKS = """() => {
  const names = [...document.querySelectorAll(".presented .annotation-text")];
  const tops = names.map((name) => Math.round(name.getBoundingClientRect().y));
  return tops.length === 16 && new Set(tops).size === 2 && tops.filter((top) => top === tops[0]).length === 8;
}"""


WITHIN_PAPER = """(drawings) => drawings.length > 0 && drawings.every((drawing) =>
  drawing.getBoundingClientRect().right <= drawing.closest("section").getBoundingClientRect().right + 1)"""


def test_few_words_stand_above_a_figure_that_has_the_whole_width_and_a_sheet_covers_none_of_it(
    newcomer, bundled_address
):
    page = newcomer(address=bundled_address, viewport=BEAMER, reduced_motion="reduce").page
    open_lesson(page, bundled_address, lesson="order", step=2)
    page.wait_for_function(ALL_DRAWN)
    figure, sheet = page.locator("#positions-clocks .plot").bounding_box(), column(page).bounding_box()
    assert figure["y"] > 0 and figure["y"] + figure["height"] <= sheet["y"]
    page.keyboard.press("p")
    expect(page.locator("#stage h2")).to_have_text("One rotation: an example")
    page.keyboard.press("PageDown")
    expect(page.locator("body")).to_have_attribute("data-page", "after")
    page.wait_for_function("document.querySelector('.presented').getBoundingClientRect().width > 900")
    page.wait_for_function(ALL_DRAWN)
    assert_legible(page)
    words = column(page).locator(".after").bounding_box()
    assert words["y"] + words["height"] <= page.locator(".presented").bounding_box()["y"]
    page.wait_for_function(TWO_ROWS_OF_CLOCKS)  # the figure may be drawn again in its final size


def test_a_lesson_is_presented_page_by_page_and_each_can_be_read_from_afar(newcomer, bundled_address):
    name = "norms"
    page = newcomer(address=bundled_address, viewport=BEAMER, reduced_motion="reduce").page
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
        step_label, stage_part = page.evaluate(STAGE_AT)
        stages.append((step_label, stage_part))
        number = int(step_label.partition(" / ")[0].rstrip("abcd"))
        expect(page.locator("#stage h2")).to_have_text(lesson.step(number).title)
        if stage_part == "question" and number in hiding:
            expect(page.locator(".presented")).to_have_count(0)  # what would tell is not there before the answer
        page.keyboard.press("PageDown")
        # After the last page nothing comes, which is not waited for long where it is known to be the last.
        timeout_ms = PAGE_TIMEOUT_MS if number < count else 300 if stage_part == "after" else 1500
        try:
            page.wait_for_function(
                f"(before) => String(({STAGE_AT})()) !== before", arg=f"{step_label},{stage_part}", timeout=timeout_ms
            )
        except TimeoutError:
            break
    with_question = {
        i for i, step in enumerate(lesson.steps, 1) if step.question and getattr(step.question, "blanks", "") != "none"
    }
    labels = [step_label for step_label, _shown in stages]
    assert len(set(labels)) == len(labels)  # 3a, 3b: each page has a number of its own
    assert {int(re.match(r"\d+", label)[0]) for label in labels} == set(range(1, count + 1))
    assert len([stage_part for _label, stage_part in stages if stage_part == "answer"]) == len(with_question)


def test_a_lesson_is_printed_with_its_answers_on_a_page_of_their_own(page, bundled_address):
    open_lesson(page, bundled_address, lesson=CORE_LESSON)
    lesson, sheet = LESSONS[CORE_LESSON], page.locator("#sheet")
    column(page).get_by_role("button", name="Print").click()
    expect(sheet).to_have_attribute("data-ready", "true")
    expect(sheet.locator(".step h2")).to_have_text([f"{i}. {step.title}" for i, step in enumerate(lesson.steps, 1)])
    with_question = [step for step in lesson.steps if step.question and getattr(step.question, "blanks", "") != "none"]
    expect(sheet.locator(".answer")).to_have_count(len(with_question))
    shares = sheet.locator(".step").filter(has_text="all blank").last
    expect(shares.locator(".blank")).to_have_count(9)  # four powers, their sum, four shares
    expect(sheet.locator(".answer").filter(has_text="all blank").last.locator("strong")).to_have_count(9)
    expect(sheet.locator(".step:nth-of-type(2) figure")).to_have_count(0)  # it would tell
    expect(sheet.locator(".answer").first.locator("figure .main-svg").first).to_be_visible()
    caption = sheet.locator("figcaption").first.text_content()
    assert re.search(r"\d", caption), caption  # names its head by number
    assert sheet.locator("figure .main-svg").evaluate_all(WITHIN_PAPER)
    page.emulate_media(media="print")
    assert page.locator("#sheet .paper").bounding_box()["width"] <= 178 / 25.4 * 96 + 1  # pixels of 178 mm
    expect(sheet.get_by_role("button", name="Print")).to_be_hidden()
    expect(page.locator("#title")).to_be_hidden()
    assert sheet.locator(".answers").evaluate("(all) => getComputedStyle(all).breakBefore") == "page"
    assert page.evaluate("document.documentElement.scrollHeight") > 3000  # all of it, and no window to scroll in
    page.emulate_media(media="screen")
    page.keyboard.press("Escape")
    expect(sheet).to_have_count(0)
    expect(column(page).get_by_role("button", name="Print")).to_be_focused()


@pytest.mark.exhaustive
def test_the_map_of_the_model_is_printed_as_it_is_on_a_light_page(newcomer, bundled_address):
    page = newcomer(address=bundled_address, color_scheme="dark").page
    open_lesson(page, bundled_address, lesson="residual-stream")
    column(page).get_by_role("button", name="Print").click()
    expect(page.locator("#sheet")).to_have_attribute("data-ready", "true")
    printed_map = page.locator("#sheet .map-on-paper")
    expect(printed_map.locator(".part.head")).to_have_count(36)
    expect(printed_map.locator(".line").first).to_have_css("fill", "none")
    expect(printed_map.locator("svg")).to_have_css("fill", "rgb(17, 17, 17)")
    assert printed_map.evaluate("(map) => map.scrollWidth <= map.clientWidth && map.clientHeight > 200")
