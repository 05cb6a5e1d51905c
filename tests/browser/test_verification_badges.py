"""Verification badges: a tick if numbers are right, a warning if they are wrong, otherwise neither."""

import re
from dataclasses import replace

import numpy as np
import pytest
from playwright.sync_api import Locator, expect

from explorer.tracing.model_library import ModelLibrary
from explorer.tracing.trace import Trace
from tests.exhaustive import first_in_core

from .person import Person

WRONG_TAP = "blocks.1.attn.pattern"
SIGN = "mark => getComputedStyle(mark, '::before').content"
# Colours of a badge's text and of its background, as [red, green, blue] from 0 to 255.
COLOURS = r"""mark => {
  const drawn = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const behind = [];
  for (let at = mark; at; at = at.parentElement) behind.unshift(getComputedStyle(at).backgroundColor);
  const painted = (...colours) => {
    drawn.clearRect(0, 0, 1, 1);
    for (const colour of colours) { drawn.fillStyle = colour; drawn.fillRect(0, 0, 1, 1); }
    return [...drawn.getImageData(0, 0, 1, 1).data].slice(0, 3);
  };
  return [painted(...behind, getComputedStyle(mark).color), painted("white", ...behind)];
}"""


@pytest.fixture
def wrong_pattern(monkeypatch):
    """Make the second layer's pattern 1 % too large in every run of the test."""
    right = ModelLibrary.trace_model

    def trace_with_error(*args) -> Trace:
        trace = right(*args)
        return replace(trace, values=trace.values | {WRONG_TAP: trace[WRONG_TAP] * np.float32(1.01)})

    monkeypatch.setattr(ModelLibrary, "trace_model", trace_with_error)


def get_badge(person: Person, figure: str) -> Locator:
    return person.page.locator(f"#{figure} .evidence-mark")


def contrast_ratio(colours: list[list[int]]) -> float:
    """Contrast of two colours (WCAG 2.2, 1.4.3)."""
    channels = np.array(colours) / 255
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    darker, lighter = sorted(linear @ (0.2126, 0.7152, 0.0722))
    return (lighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize("scheme", first_in_core(["light", "dark"]))
def test_wrong_number_is_flagged_below_every_figure_using_it(open_new_page, wrong_pattern, scheme):
    text = f"Wrong in the {scheme}"  # a prompt without a cached answer
    person = open_new_page(color_scheme=scheme).open(view="attention", layer=0, text=text)
    for figure, sign, words in (
        ("attention-heads", "⚠", f"Wrong numbers: {WRONG_TAP} is off by 0.0"),
        ("attention-pattern", "✓", "recomputed, largest error"),
    ):
        badge = get_badge(person, figure)
        expect(badge).to_contain_text(words)
        assert sign in badge.evaluate(SIGN)
        assert contrast_ratio(badge.evaluate(COLOURS)) >= 4.5, (figure, badge.evaluate(COLOURS))
    warning, tick = get_badge(person, "attention-heads"), get_badge(person, "attention-pattern")
    assert warning.evaluate("it => parseFloat(getComputedStyle(it).borderTopWidth)") > 0
    assert warning.evaluate(COLOURS)[1] != tick.evaluate(COLOURS)[1]
    for badge, is_greenish in ((tick, True), (warning, False)):
        red, green, _blue = badge.evaluate(COLOURS)[0]
        assert (green > red) is is_greenish
    tick.evaluate("mark => mark.append(' more words'.repeat(20))")
    tick.hover()  # its text, of several lines, is above the figure
    box, figure = tick.bounding_box(), person.pattern.bounding_box()
    assert box["height"] > 30 and box["y"] + box["height"] <= figure["y"] + 20  # its margin
    with person.wait_for_redraw(person.pattern):
        person.chooser("layer").select_option("1")
    expect(get_badge(person, "attention-pattern")).to_have_attribute("data-state", "off")


@pytest.mark.exhaustive
def test_unverified_figure_has_no_tick(open_new_page):
    person = open_new_page(color_scheme="dark").open(view="tokens")
    badge = get_badge(person, "tokens-merges")
    expect(badge).to_have_text(re.compile("^nothing to check: "))
    assert badge.evaluate(SIGN) == "none"
    assert contrast_ratio(badge.evaluate(COLOURS)) >= 4.5
