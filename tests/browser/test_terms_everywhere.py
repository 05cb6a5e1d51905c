"""Every term of art that is seen in a tab can be explained in it, by the pointer and by the keyboard: in sentences, on
labels, in the headings of tables, on buttons, and in what is drawn."""

import pytest
from playwright.sync_api import TimeoutError as PlaywrightTimeout
from playwright.sync_api import expect

from explorer.lessons.glossary import ENTRY_NAMED, forms
from explorer.views import FULL, SIMPLE

# What nobody explains: tokens and what was written, names of tabs, the list of all words, and what is told of something
# else that is pointed at.
NO_TERMS = (
    "[role=tablist], .tab-wrapper, .tab-container, #title, #examples, #prompt, textarea, input, option,"
    "#strip .strip, #story, #branches .tree, tbody, .chip, .token, .first, .was, .stretches, .brief, .mark, #playback,"
    ".note, .readout, .told, :not(.map) + .words-here, .hoverlayer, #glossary, #definition, footer, script, style,"
    "noscript, .toast-wrap"
)
# The terms that are seen: name, whether in the tab, whether drawn. Where they are is kept for `AT`.
SEEN = """async ({ forms, noTerms }) => {
  const module = document.querySelector("link[rel=modulepreload][href$='/static/term_finder.js']").href;
  const find = (await import(module)).termFinder(forms), isSeen = { opacityProperty: true, visibilityProperty: true };
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
# Of each term the keyboard comes to, in the tab or outside of it: what is told of it.
BY_KEYBOARD = """(inTab) => Object.fromEntries(
  [...document.querySelectorAll(".term[tabindex='0'], th[tabindex] .term")]
    .filter((term) => term.checkVisibility() && term.offsetWidth && Boolean(term.closest("[role=tabpanel]")) === inTab)
    .map((term) => {
      (term.closest("th[tabindex]") ?? term).focus({ preventScroll: true });
      return [term.dataset.term, document.querySelector("#definition").textContent];
    }))"""
IS_TOLD = "(meaning) => document.querySelector('#definition:popover-open')?.textContent.startsWith(meaning)"
AT = """(at) => {
  const { element, box } = window.termsSeen[at];
  element.scrollIntoView({ block: "center", inline: "center", behavior: "instant" });
  const { left, top, width, height } = box();
  return [left + width / 2, top + height / 2];
}"""


@pytest.mark.parametrize(
    ("views", "size"),
    [
        pytest.param(FULL, 1440, id="full", marks=pytest.mark.exhaustive),
        pytest.param(SIMPLE, 390, id="simple on a telephone"),
    ],
)
def test_every_term_that_is_seen_is_explained_in_its_tab(newcomer, views, size):
    person = newcomer(viewport={"width": size, "height": 900}, reduced_motion="reduce").open(view=views[0].name)
    if views is FULL:
        person.page.locator("#more-settings button").first.click()
        person.page.locator("#why-token .asked").click()
    found, pointed_at = set(), {False: set(), True: set()}
    for view in views:
        person.visit(view.name, view.title)
        person.all_marked()
        prose = person.page.locator("[role=tabpanel]:visible .prose").first
        expect(prose.locator(".term").first).to_be_visible()
        assert prose.text_content() == view.words  # as they are without the marks
        for in_tab in [True, False][: 2 if view is views[0] else 1]:
            words = [word for word in seen(person) if word["inTab"] is in_tab]
            told = person.page.evaluate(BY_KEYBOARD, in_tab)
            meant = {name: told.get(name, "").startswith(ENTRY_NAMED[name].meaning) for name in names(words)}
            assert all(meant.values()), (
                view.name,
                "by keyboard",
                [(w["form"], w["place"], w["text"]) for w in words if not meant[w["name"]]],
            )
            for is_drawn in (False, True):  # by the pointer each once
                alike = [word for word in words if word["isDrawn"] is is_drawn]
                for name in sorted(names(alike) - pointed_at[is_drawn]):
                    places = [word for word in alike if word["name"] == name]
                    assert any(explained(person, word) for word in places), (view.name, "by pointer", name, places)
                    pointed_at[is_drawn].add(name)
            found |= names(words)
    assert {"token", "attention", "probability"} <= found


def seen(person) -> list[dict]:
    return person.page.evaluate(SEEN, {"forms": forms(), "noTerms": NO_TERMS})


def names(words) -> set[str]:
    return {word["name"] for word in words}


def explained(person, word: dict) -> bool:
    """Whether what the word means is told where it is pointed at, once nothing told before covers it."""
    person.page.keyboard.press("Escape")
    person.page.mouse.move(*person.page.evaluate(AT, word["at"]))
    try:
        person.page.wait_for_function(IS_TOLD, arg=ENTRY_NAMED[word["name"]].meaning, timeout=1000)
    except PlaywrightTimeout:
        return False
    return True
