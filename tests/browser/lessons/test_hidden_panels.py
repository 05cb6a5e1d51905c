"""Panels that would give the answer away are hidden until the student replies."""

import re

import pytest
from playwright.sync_api import expect

from .steps import CORE_LESSON, LESSONS, PHONE, expect_step, find_lesson, get_figure, open_lesson


@pytest.mark.exhaustive
def test_revealing_panels_are_hidden_in_every_tab_until_reply(page, bundled_address):
    open_lesson(page, bundled_address, lesson=CORE_LESSON, step=2)
    step = LESSONS[CORE_LESSON].step(2)
    expect_step(page, step, 2, len(LESSONS[CORE_LESSON].steps))
    page.evaluate("explorer.select({ view: 'residual' })")
    expect(page.locator("#navigation")).to_be_visible()  # outside the step's view the whole page is visible
    expect(page.locator("#residual-lengths [data-draws]")).to_have_attribute("data-draws", re.compile(r"\d"))
    expect(get_figure(page, "residual-lengths")).to_be_hidden()
    expect(page.locator("#residual-formula .formula")).to_be_hidden()
    expect(page.locator("#why-token button")).to_be_hidden()
    expect(page.locator("#next-token .distribution")).to_be_visible()  # it does not reveal the answer
    find_lesson(page).locator(".question .option").first.click()
    expect(get_figure(page, "residual-lengths")).to_be_visible()
    page.get_by_role("tab", name="Attention").click()
    expect(get_figure(page, "attention-pattern")).to_be_visible()


def test_prediction_is_hidden_in_every_panel(page, bundled_address):
    open_lesson(page, bundled_address, lesson=CORE_LESSON, step=2)
    pattern = page.locator("#attention-pattern .plot")
    for label in ("query", "key"):
        expect(pattern.get_by_text(label)).to_be_visible()  # the axes show what is asked about
    expect(pattern.locator(":is(.hm, .shapelayer path, .colorbar):visible")).to_have_count(0)
    expect(page.locator("#strip .chip.key")).to_have_css("border-top-color", "rgba(0, 0, 0, 0)")
    open_lesson(page, bundled_address, lesson="choosing-the-next-word", step=2)
    expect(find_lesson(page).locator("input")).to_be_visible()
    for selector in (
        "#next-token .distribution",
        "#next-token-more .falls",
        "#next-token-words .prose",
        "#prediction-lens .html-container",
        "#generate",  # would reveal the answer
    ):
        expect(page.locator(selector)).to_be_hidden()
    expect(page.locator("#view :is(.view-tools, .panels > .block):visible")).to_have_count(0)  # it is about tokens
    page.set_viewport_size(PHONE)
    page.evaluate("explorer.select({ view: 'tokens' })")  # where the whole page is visible
    expect(page.locator("#step")).to_be_visible()
    expect(page.locator("#brief button")).to_be_hidden()
    find_lesson(page).get_by_role("button", name="Just show me").click()
    expect(find_lesson(page).locator(".verdict p")).to_contain_text("The model says")
    expect(find_lesson(page).locator(".verdict p")).not_to_contain_text(re.compile("[✓✗]"))
    expect(page.locator("#brief button")).to_be_visible()
    page.set_viewport_size({"width": 1440, "height": 900})
    find_lesson(page).get_by_role("button", name="Next").click()
    find_lesson(page).get_by_role("button", name="Just show me").click()
    for selector in ("#lesson .verdict p", "#next-token .distribution"):
        expect(page.locator(selector)).to_be_in_viewport()
    expect(page.locator("#sampling")).to_be_hidden()  # the step sets none of its sliders
    open_lesson(page, bundled_address, lesson="residual-stream", step=1, depth="story")
    expect(get_figure(page, "overview-map")).to_be_visible()


@pytest.mark.exhaustive
def test_leaving_lesson_shows_hidden_panels(page, bundled_address):
    open_lesson(page, bundled_address, lesson=CORE_LESSON, step=2)
    expect(get_figure(page, "attention-pattern")).to_be_hidden()
    find_lesson(page).get_by_role("button", name="Leave").click()
    expect(find_lesson(page)).to_be_hidden()
    expect(get_figure(page, "attention-pattern")).to_be_visible()
    expect(page.locator(".pointed-out")).to_have_count(0)
    page.wait_for_function("!/lesson|step=|reply/.test(location.search)")


@pytest.mark.exhaustive
def test_chooser_with_answer_is_hidden(page, bundled_address):
    page.goto(f"{bundled_address}?lesson=silencing&step=1")
    chooser = page.locator("#experiments-choosers [data-field=target]")
    expect(chooser).to_contain_text("Lily")
    expect(chooser).to_be_hidden()
    expect(page.locator("#experiments-what-ifs .what-ifs")).to_be_hidden()
    page.get_by_role("button", name="Just show me").click()
    expect(find_lesson(page)).to_contain_text("The model says “·Lily”")
