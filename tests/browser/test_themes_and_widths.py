"""Light and dark theme, wide and narrow screens."""

import re
from itertools import pairwise

import pytest
from playwright.sync_api import expect

from explorer.views.style import DARK, LIGHT

FONT = "plot => plot._fullLayout.font.color"
ACCENT = "table => getComputedStyle(table).getPropertyValue('--accent')"
FITS = """() => [...document.querySelectorAll(".plot")]
  .every((plot) => !plot.clientWidth || plot._fullLayout?.width === plot.clientWidth)"""
# Pixels between the cells of a heatmap and its colour bar, in the figure's own size.
SPACE_BEFORE_COLOUR_BAR = """(plot) => {
  const { xaxis } = plot._fullLayout, box = plot.getBoundingClientRect(), scale = box.width / plot.offsetWidth;
  const left = (plot.querySelector(".cbfill").getBoundingClientRect().left - box.left) / scale;
  return left - xaxis._offset - xaxis._length;
}"""
REFERENCES = """() => [...document.querySelectorAll(".plot [clip-path], .plot .cbfill")]
  .map((shape) => shape.getAttribute("clip-path") || shape.style.fill).filter((reference) => /url/.test(reference))"""
SELECTED_TAB = """() => {
  const probe = document.body.appendChild(document.createElement("i"));
  probe.style.color = getComputedStyle(document.querySelector("#views")).getPropertyValue("--accent");
  const accent = getComputedStyle(probe).color;
  probe.remove();
  return [accent, getComputedStyle(document.querySelector("#views button[role=tab][aria-selected=true]")).color];
}"""
LABEL_POSITIONS = """plots => plots.flatMap((plot) => [["x", "e"], ["y", "f"]].map(([axis, moved]) =>
  Array.from(plot.querySelectorAll(`.${axis}tick text`), (word) =>
    [word.transform.baseVal[0].matrix[moved], getComputedStyle(word).visibility === "visible"])))"""
ALL_LABELS_ARE_VISIBLE = """() => [...document.querySelectorAll("[role=tabpanel] .plot .xtick text")]
  .every((word) => !word.checkVisibility() || getComputedStyle(word).visibility === "visible")"""
MIN_LETTER_PX = 10  # pixels
OVERFLOW = "document.scrollingElement.scrollWidth - innerWidth"


def test_theme_changes_page_and_figures(open_new_page):
    person, colours = open_new_page(reduced_motion="reduce").open(), []  # colours change at once
    for theme in (LIGHT, DARK, LIGHT):
        assert (person.pattern.evaluate(FONT), person.prediction.evaluate(ACCENT)) == (theme.text, theme.accent)
        accent, selected_tab = person.page.evaluate(SELECTED_TAB)
        assert selected_tab == accent
        colours.append(person.background)
        if len(colours) < 3:
            with person.wait_for_redraw(person.pattern, person.grid):
                person.change_theme()
            expect(person.page.locator("#page-menu > summary")).to_be_focused()  # the menu closes, as after a language
            expect(person.page.get_by_role("button", name="Light / dark")).to_be_hidden()
    assert colours[0] == colours[2] != colours[1]


def test_axis_labels_do_not_overlap(open_page):
    prompt = ".".join(map(str, range(66, 126)))
    person = open_page(viewport={"width": 390, "height": 844}, view="residual", checkpoint="tiny", prompt=prompt)
    plots = person.wait_until_idle().page.locator("[role=tabpanel]:visible .plot[data-draws]:visible")
    expect(plots.first).to_be_visible()
    some_are_hidden = False
    for label_positions in plots.evaluate_all(LABEL_POSITIONS):
        visible_positions = sorted(label_position for label_position, is_shown in label_positions if is_shown)
        assert all(after - before >= MIN_LETTER_PX for before, after in pairwise(visible_positions)), label_positions
        some_are_hidden |= len(visible_positions) < len(label_positions)
    assert some_are_hidden
    person.page.set_viewport_size({"width": 1440, "height": 900})
    person.page.wait_for_function(ALL_LABELS_ARE_VISIBLE)


@pytest.mark.exhaustive
def test_single_footer_link_has_no_divider(person):
    person.page.evaluate("window.explorer.select({ depth: 'code' })")
    expect(person.page.get_by_role("button", name="Use via API")).to_be_visible()
    expect(person.page.locator("footer .divider")).to_be_hidden()


def test_figures_fill_available_width(open_page):
    prompt = ".".join(map(str, range(256, 270)))  # whose labels change the margins
    person = open_page(viewport={"width": 1024, "height": 768}, prompt=prompt)
    page = person.page
    for size in ({"width": 1366, "height": 768}, {"width": 1100, "height": 900}, {"width": 1024, "height": 768}):
        page.set_viewport_size(size)
        page.wait_for_function(FITS)
        assert 4 < person.pattern.evaluate(SPACE_BEFORE_COLOUR_BAR) < 24
        assert page.evaluate(OVERFLOW) <= 0
    page.locator("#attention-pattern h2").click()
    with person.wait_for_redraw(person.pattern):
        page.keyboard.press("p")
    assert 4 < person.pattern.evaluate(SPACE_BEFORE_COLOUR_BAR) < 24
    page.keyboard.press("Escape")
    expect(page.locator("body")).not_to_have_class(re.compile("presenting"))


@pytest.mark.exhaustive
def test_gradient_references_do_not_depend_on_url(person):
    """References are by name alone, because the URL changes with the selection."""
    with person.wait_for_redraw(person.pattern):
        person.click_cell(person.pattern, 2, 5)
    person.expect_selected(key=2, query=5)
    references = person.page.evaluate(REFERENCES)
    assert references
    assert all(reference.startswith(("url(#", 'url("#')) for reference in references)
