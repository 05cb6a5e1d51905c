"""Accessibility of the page with low vision or without a mouse."""

import io
import re

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe
from PIL import Image
from playwright.sync_api import expect

from explorer.views import FULL, STORY_VIEWS
from explorer.views.style import DARK, LIGHT

from .checkpoints import FIELDS_FOR_ALL_TABS

IS_DRAWN = """(colour) => [...document.querySelectorAll("#view .plot")]
  .filter((plot) => plot.clientWidth && !plot.hidden)
  .every(({ dataset, clientWidth, _fullLayout: { font, width } = {} }) =>
    dataset.draws && font?.color === colour && width === clientWidth)"""
# Without texts that fade at an edge as a sign that there is more: they are legible once scrolled into view.
TEXTS = """() => [...document.querySelectorAll(".tabitem :is(.plot .main-svg, .map) text")].flatMap((text) => {
  const box = text.getBoundingClientRect(), scrolled = text.closest(".map, .html-container");
  const place = scrolled.getBoundingClientRect(), fade = (side) => (scrolled.dataset.more?.includes(side) ? 32 : 0);
  const seen = text.textContent.trim() && text.checkVisibility({ opacityProperty: true, visibilityProperty: true });
  if (!seen || box.left < place.left + fade("left") || box.right > place.right - fade("right")) return [];
  const { fill, fillOpacity, opacity } = getComputedStyle(text);
  const corners = [box.left + scrollX, box.top + scrollY, box.right + scrollX, box.bottom + scrollY];
  const words = `${text.closest(".block").id}: ${text.textContent}`;
  return [{ words, fill, opacity: fillOpacity * opacity, corners }];
})"""
# The bar at the bottom of a small screen covers some of a figure.
WITHOUT_TEXTS = """#view :is(.plot, .map) text { opacity: 0 !important; }
:is(#bar, .act) { visibility: hidden !important; }"""
# Removes the content of elements; returns a function that restores it.
REMOVE_CHILDREN = """(selector) => {
  const taken = [...document.querySelectorAll(selector)].map((element) => [element, [...element.childNodes]]);
  for (const [element] of taken) element.replaceChildren();
  return () => { for (const [element, nodes] of taken) element.replaceChildren(...nodes); };
}"""
# Off by default because it is new: the visible text must be part of the accessible name.
AXE = {"rules": {"label-content-name-mismatch": {"enabled": True}}}
OVERFLOW = "document.scrollingElement.scrollWidth - innerWidth"
TELEPHONE = {"width": 390, "height": 844}
FOCUSED_TAB = "document.activeElement.closest('#views') && document.activeElement.textContent"


def open_views(open_new_page, views, width: str, theme):
    size = {"width": 1440, "height": 900} if width == "wide" else TELEPHONE
    # no animation, so that no colour is measured in transition
    person = open_new_page(viewport=size, color_scheme="dark" if theme is DARK else "light", reduced_motion="reduce")
    return person.open(view=views[0].name, **(FIELDS_FOR_ALL_TABS if views is FULL else {}))


def violations(person, include=None) -> list[str]:
    """Return descriptions of axe's violations, once no panel is dimmed."""
    expect(person.wait_until_idle().page.locator(".stale:visible")).to_have_count(0)
    return [describe_violation(violation) for violation in Axe().run(person.page, include, AXE).response["violations"]]


def test_phone_buttons_are_named_by_their_text_and_code_scrolls(open_new_page):
    """Speech input users say what they see: the map's components, and the line above the buttons."""
    person = open_views(open_new_page, FULL, "narrow", LIGHT)
    assert not violations(person)
    brief = person.page.locator("#brief").get_by_role("button")
    text, token, probability = (
        brief.locator(selector).text_content() for selector in (".text", ".next", ".probability")
    )
    name_pattern = rf"{re.escape(text)}\s*: next {re.escape(token)}\s*, probability {probability}"
    expect(brief).to_have_accessible_name(re.compile(name_pattern))
    person.page.evaluate("explorer.select({ view: 'attention', depth: 'code' })")
    code = person.wait_until_idle().page.locator("#attention-code .code")
    assert code.evaluate("code => code.scrollHeight > code.clientHeight")
    assert not violations(person, [["#attention-tab"]])


@pytest.mark.exhaustive
def test_scrolling_boxes_are_keyboard_accessible(open_new_page):
    """The generated text has many lines."""
    lines = "10." * 40 + "67"
    person = open_new_page(viewport=TELEPHONE, reduced_motion="reduce").open("attention", prompt=lines)
    assert not violations(person, [["#generation"]])
    expect(person.story).to_have_attribute("tabindex", "0")
    person.run("B")
    expect(person.story).not_to_have_attribute("tabindex", "0")  # its whole text is visible


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("views", "bar", "width", "theme"),
    [(FULL, "#views", "narrow", DARK), (STORY_VIEWS, "#steps", "wide", LIGHT)],
    ids=["numbers on a telephone", "story"],
)
def test_all_text_is_accessible_and_has_contrast(open_new_page, views, bar, width, theme):
    """Axe finds no violations, texts in figures (which axe skips) have enough contrast, and nothing overflows."""
    person = open_views(open_new_page, views, width, theme)
    for view in views:
        person.tab(view.title)
        person.wait_until_idle().page.wait_for_function(IS_DRAWN, arg=theme.text)
        # the page around the tabs never changes; hidden content costs axe time even outside its scope
        include = None if view is views[0] else [[bar], ["#view .tabitem:not([hidden])"]]
        hidden_tabs = person.page.evaluate_handle(REMOVE_CHILDREN, "#view .tabitem[hidden]")
        assert not violations(person, include), view.title
        hidden_tabs.evaluate("(putBack) => putBack()")
        texts = person.page.evaluate(TEXTS)
        hidden = person.page.add_style_tag(content=WITHOUT_TEXTS)
        pixels = np.asarray(Image.open(io.BytesIO(person.page.screenshot(full_page=True))).convert("RGB"))
        hidden.evaluate("style => style.remove()")
        assert texts
        assert person.page.evaluate(OVERFLOW) <= 0, view.title
        assert not [text["words"] for text in texts if contrast_ratio(text, pixels) < 4.5], view.title


def describe_violation(violation: dict) -> str:
    """Describe a violation by axe's findings on its first element."""
    node = violation["nodes"][0]
    return f"{violation['id']}: {node['html'][:160]}: {node['failureSummary']}"


def contrast_ratio(text: dict, pixels: np.ndarray) -> float:
    """Return the contrast (WCAG 2.2), 1 to 21, of a text with the median colour below it."""
    left, top, right, bottom = (max(0, round(corner)) for corner in text["corners"])
    below = np.median(pixels[top:bottom, left:right].reshape(-1, 3), axis=0)
    *ink, alpha = [float(number) for number in re.findall(r"[\d.]+", text["fill"] + ", 1")][:4]
    alpha *= text["opacity"]
    dark, light = sorted(luminance(colour) for colour in (below, np.array(ink) * alpha + below * (1 - alpha)))
    return (light + 0.05) / (dark + 0.05)


def luminance(rgb: np.ndarray) -> float:
    """Return the relative luminance (WCAG 2.2), 0 to 1."""
    share = np.asarray(rgb) / 255
    linear = np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)
    return float(linear @ (0.2126, 0.7152, 0.0722))


def test_tabs_are_single_tab_stop(person):
    tab = person.page.get_by_role("tab", name="Attention")
    expect(tab).to_have_attribute("tabindex", "0")
    tab.focus()
    for key, title in (("ArrowRight", FULL[3].title), ("ArrowLeft", "Attention"), ("Home", FULL[0].title)):
        person.page.keyboard.press(key)
        chosen = person.page.get_by_role("tab", name=title)
        expect(chosen).to_be_focused()
        expect(chosen).to_have_attribute("aria-selected", "true")
    person.expect_selected(view=FULL[0].name)
    person.wait_until_idle()
    expect(person.page.locator(".stale:visible")).to_have_count(0)  # a redraw would lose the focus,
    person.wait_for_terms()  # and so would marking terms
    person.page.keyboard.press("Tab")
    assert not person.page.evaluate(FOCUSED_TAB)
    person.page.keyboard.press("Shift+Tab")
    assert person.page.evaluate(FOCUSED_TAB) == FULL[0].title
