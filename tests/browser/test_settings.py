"""Temperature and top-k redraw the distribution and nothing else."""

import pytest
from playwright.sync_api import expect

from .person import draws

BARS = "plot => Array.from(plot._fullData.find(trace => trace.type === 'bar').x)"


@pytest.fixture
def undrawn(person):
    """Fails where the strip or the story was drawn anew, or has other text."""
    drawings = (person.strip, person.story)
    before = [(draws(drawing), drawing.text_content()) for drawing in drawings]
    yield
    assert [(draws(drawing), drawing.text_content()) for drawing in drawings] == before


def test_temperature_redraws_the_distribution_and_resamples_nothing(person, undrawn):
    before = person.prediction.evaluate(BARS)
    with person.redrawn(person.prediction):
        person.set("temperature", 0.3)
    after = person.prediction.evaluate(BARS)
    assert after[0] > before[0]
    person.expect_selected(temperature=0.3)


def test_temperature_zero_leaves_one_token_with_probability_one(person, undrawn):
    with person.redrawn(person.prediction):
        person.slider("temperature").press("Home")
    assert [p for p in person.prediction.evaluate(BARS) if p] == [1]
    expect(person.page.locator("#next-token-words")).to_contain_text("1 of 300")


def test_top_k_keeps_k_tokens(person, undrawn):
    with person.redrawn(person.prediction):
        person.set("top-k", 3)
    bars = person.prediction.evaluate(BARS)
    assert len([p for p in bars if p]) == 3
    assert sum(bars) == pytest.approx(1)
    expect(person.page.locator("#next-token-words")).to_contain_text("3 of 300")
    with person.redrawn(person.prediction):
        person.set("top-k", 0)
    expect(person.page.locator("#next-token-words")).to_contain_text("300 of 300")


def test_a_slider_can_be_put_back(person):
    person.set("temperature", 0)
    words = person.page.locator("#next-token-words")
    expect(words).to_contain_text("1 of 300")
    person.page.get_by_role("button", name="Reset to default").first.click()
    expect(words).to_contain_text("40 of 300")
    person.expect_selected(temperature=0.8)


def test_sliders_and_token_work_together(person):
    person.set("temperature", 0)
    person.chips.nth(5).click()
    words = person.page.locator("#next-token-words")
    expect(words).to_contain_text("position 5")
    expect(words).to_contain_text("1 of 300")
