"""Every term in a tab can be explained there by pointer and keyboard: in sentences, labels, tables and figures."""

import re

import pytest
from playwright.sync_api import TimeoutError as PlaywrightTimeout
from playwright.sync_api import expect

from explorer.lessons.glossary import ENTRY_BY_NAME, entry_names_by_form
from explorer.views import FULL, STORY_VIEWS

# Elements without terms: tokens and generated text, names of tabs, the glossary, and hover texts of
# other elements.
NO_TERMS = (
    "[role=tablist], #title, #examples, #prompt, textarea, input, option,"
    "#strip .strip, #story, #branches .tree, tbody, .chip, .token, .first, .was, .stretches, .brief, .mark, #playback,"
    ".note, .readout, .told, .holder, :not(.map) + .words-here, .hoverlayer, #glossary, #definition, footer, script,"
    "style, noscript, #notices"
)
# Visible terms: name, whether in the tab, whether in an SVG. Their positions are stored for `POINT_AT`.
VISIBLE_TERMS = """async ({ forms, noTerms }) => {
  const module = document.querySelector("link[rel=modulepreload][href$='/static/glossary_terms.js']").href;
  const find = (await import(module)).makeTermFinder(forms);
  const isSeen = { opacityProperty: true, visibilityProperty: true };
  const seen = window.termsSeen = [];
  const add = (element, text, isDrawn, boxOf) => {
    for (const { name, form, from } of find(text)) {
      const inTab = Boolean(element.closest("[role=tabpanel]")), place = element.closest(".block")?.id;
      seen.push({ name, form, inTab, isDrawn, text, place, element, box: () => boxOf(from) });
    }
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode, around = node.parentElement, range = new Range();
    if (!node.data.trim() || around.closest(noTerms) || around.closest("svg")) continue;
    if (!around.offsetWidth || !around.checkVisibility(isSeen)) continue;
    add(around, node.data, false, (i) => {
      range.setStart(node, i);
      range.setEnd(node, i + 1);
      return range.getBoundingClientRect();
    });
  }
  for (const text of document.querySelectorAll(":is(.plot, .map) svg text")) {
    const isWord = text.textContent.trim() && !getComputedStyle(text).fontFamily.includes("mono");
    if (!isWord || text.closest(noTerms) || !text.checkVisibility(isSeen)) continue;
    add(text, text.textContent, !text.closest(".part"), (i) => { // what a part of the map says is in the line below
      const { x, y, width, height } = text.getExtentOfChar(i);
      const { x: left, y: top } = new DOMPoint(x + width / 2, y + height / 2).matrixTransform(text.getScreenCTM());
      return new DOMRect(left, top, 0, 0);
    });
  }
  return seen.map(({ element, box, ...word }, at) => ({ ...word, at }));
}"""
# Definitions shown for the terms that the keyboard reaches, in the tab or outside: name -> text.
DEFINITIONS_BY_KEYBOARD = """(inTab) => Object.fromEntries(
  [...document.querySelectorAll(".term[tabindex], th[tabindex] .term")]
    .filter((term) => term.checkVisibility() && term.offsetWidth && Boolean(term.closest("[role=tabpanel]")) === inTab)
    .map((term) => {
      (term.closest("th[tabindex]") ?? term).focus({ preventScroll: true });
      return [term.dataset.term, document.querySelector("#definition").textContent];
    }))"""
SHOWS_DEFINITION = "(meaning) => document.querySelector('#definition:popover-open')?.textContent.startsWith(meaning)"
POINT_AT = """(at) => {
  const { element, box } = window.termsSeen[at];
  element.scrollIntoView({ block: "center", inline: "center", behavior: "instant" });
  const { left, top, width, height } = box();
  return [left + width / 2, top + height / 2];
}"""


@pytest.mark.parametrize(
    ("views", "size"),
    [
        pytest.param(FULL, 1440, id="full", marks=pytest.mark.exhaustive),
        pytest.param(STORY_VIEWS, 390, id="simple on a telephone"),
    ],
)
def test_every_visible_term_is_explained_in_its_tab(open_new_page, views, size):
    person = open_new_page(viewport={"width": size, "height": 900}, reduced_motion="reduce").open(view=views[0].name)
    if views is FULL:
        person.page.locator("#why-token .asked").click()
    explained_names, pointed_at = set(), {False: set(), True: set()}
    for view in views:
        person.visit(view.name, view.title)
        person.wait_for_terms()
        prose = person.page.locator("[role=tabpanel]:visible .prose").first
        expect(prose).to_have_attribute("data-marked", re.compile("."))
        if view.sentence is None:
            assert prose.text_content() == view.description  # the text is unchanged by the marks
        for in_tab in [True, False][: 2 if view is views[0] else 1]:
            terms = [word for word in find_visible_terms(person) if word["inTab"] is in_tab]
            definitions = person.page.evaluate(DEFINITIONS_BY_KEYBOARD, in_tab)
            for name, definition in definitions.items():  # others are found in the search and in Learn
                assert definition.startswith(ENTRY_BY_NAME[name].meaning), (view.name, "by keyboard", name)
            assert definitions
            for is_drawn in (False, True):  # each term once by the pointer
                same_medium = [word for word in terms if word["isDrawn"] is is_drawn]
                for name in sorted(collect_names(same_medium) - pointed_at[is_drawn]):
                    occurrences = [word for word in same_medium if word["name"] == name]
                    assert any(is_explained(person, word) for word in occurrences), (
                        view.name,
                        "by pointer",
                        name,
                        [(w["text"][:60], w["place"]) for w in occurrences],
                    )
                    pointed_at[is_drawn].add(name)
            explained_names |= collect_names(terms)
    assert {"token", "attention", "probability"} <= explained_names


def find_visible_terms(person) -> list[dict]:
    return person.page.evaluate(VISIBLE_TERMS, {"forms": entry_names_by_form(), "noTerms": NO_TERMS})


def collect_names(terms) -> set[str]:
    return {word["name"] for word in terms}


def is_explained(person, word: dict) -> bool:
    """Return whether hovering over a term shows its definition, with no earlier popup covering it."""
    person.page.keyboard.press("Escape")
    person.page.evaluate("document.activeElement.blur()")  # a focused description covers other lines
    mark = person.page.evaluate_handle("(at) => termsSeen[at].element.closest('.evidence-mark')", word["at"])
    if mark.as_element():  # a sign whose words open under the pointer
        mark.as_element().hover(position={"x": 2, "y": 2})
    target = None  # figures above may be drawn as they come in sight, and move it
    while target != (target := person.page.evaluate(POINT_AT, word["at"])):
        person.page.wait_for_timeout(150)
    person.page.mouse.move(0, 0)  # the pointer may rest where the term is
    person.page.mouse.move(*target)
    try:
        person.page.wait_for_function(SHOWS_DEFINITION, arg=ENTRY_BY_NAME[word["name"]].meaning, timeout=3000)
    except PlaywrightTimeout:
        return False
    return True
