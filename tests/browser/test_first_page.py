"""What a visitor sees before doing anything."""

import re

from playwright.sync_api import expect

from explorer.web.events.run_events import FIRST_PROMPT


def test_a_captured_example_is_drawn_at_once(newcomer):
    person = newcomer().open(view="")
    expect(person.strip).to_have_text(FIRST_PROMPT)
    for drawing in (person.page.locator("#overview-map .map"), person.prediction):
        expect(drawing).to_be_visible()
        expect(drawing).to_have_attribute("data-draws", re.compile(r"\d"))
    expect(person.prompt).to_have_value(FIRST_PROMPT)
    expect(person.picker).to_have_value("tiny")
