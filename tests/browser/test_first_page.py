"""What a visitor sees before doing anything."""

import re

import pytest
from playwright.sync_api import expect

from explorer.web.events.run_events import FIRST_PROMPT
from tests.exhaustive import first_of


@pytest.mark.parametrize(
    "seen",
    first_of(
        [
            ("pieces", "#pieces-expected .plot", "#guess .guess"),
            ("overview", "#overview-map .map", "#next-token .distribution"),
        ]
    ),
)
def test_a_captured_example_is_drawn_at_once(newcomer, seen):
    view, *pictures = seen
    person = newcomer().open(view=view)
    expect(person.strip).to_have_text(FIRST_PROMPT)
    for drawing in map(person.page.locator, pictures):
        expect(drawing).to_be_visible()
        expect(drawing).to_have_attribute("data-draws", re.compile(r"\d"))
    expect(person.prompt).to_have_value(FIRST_PROMPT)
    expect(person.picker).to_have_value("tiny")


def test_what_is_pressed_before_the_page_is_there_waits_for_it(newcomer):
    person, held = newcomer(), []
    joins = "**/gradio_api/queue/join*"  # what the state comes from
    person.page.route(joins, lambda route: held.append(route), times=1)
    with person.page.expect_request(joins):
        person.page.goto(f"{person.address}?view=overview")
    step = person.page.get_by_role("button", name="Step")
    step.click()
    expect(step).to_be_focused()
    expect(person.strip).to_be_visible()
    expect(person.page.locator("#strip-b")).to_be_hidden()  # where a second run's tokens would be
    held[0].continue_()
    expect(person.chips.and_(person.page.locator(".generated"))).to_have_count(1)
    expect(person.story.locator(".prompt")).to_have_text(FIRST_PROMPT)
    assert not person.warning.count()
