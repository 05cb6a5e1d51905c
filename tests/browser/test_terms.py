"""Glossary definitions on hover, focus and tap, with this run's own numbers."""

import re

import pytest
from playwright.sync_api import expect

from explorer.lessons.glossary import ENTRY_BY_NAME, FIRST_TERMS, GlossaryExampleContext
from explorer.state.generation_settings import GenerationSettings
from explorer.state.page_state import PageState
from explorer.tracing.model_library import ModelLibrary
from explorer.tracing.run_service import RunService

GRACE_MS = 300  # CLOSE_DELAY_MS in static/glossary_terms.js


def make_expected_definition(person, name: str) -> str:
    """Return the definition of a term that the page should show."""
    runs, page_state = RunService(ModelLibrary("cpu")), PageState.parse(person.state)
    _lm, trace = runs.model_and_trace(page_state.run)
    return ENTRY_BY_NAME[name].define(
        GlossaryExampleContext(
            trace, page_state.selection.clamp_to_trace(trace), GenerationSettings.parse(person.state)
        )
    )


def find_definition(person):
    return person.page.locator("#definition")


@pytest.mark.exhaustive
def test_hover_focus_and_tap_show_definition_with_run_values(person):
    terms = person.page.locator("[role=tabpanel]:visible .term:visible")
    expect(terms.first).to_be_visible()
    person.wait_until_idle()
    person.wait_for_terms()
    for i, act in enumerate(("hover", "focus", "click")):
        term = terms.nth(i)
        name = term.get_attribute("data-term")
        getattr(term, act)()
        expect(find_definition(person)).to_have_text(make_expected_definition(person, name))
        expect(term).to_have_attribute("aria-describedby", "definition")
        person.page.keyboard.press("Escape")
        expect(find_definition(person)).to_be_hidden()
        person.page.mouse.move(0, 0)
    person.chips.nth(3).click()
    person.wait_until_idle()
    query = person.page.locator(".term[data-term=query]:visible, .term[data-term=head]:visible").first
    query.hover()
    expect(find_definition(person)).to_have_text(make_expected_definition(person, query.get_attribute("data-term")))


@pytest.mark.exhaustive
def test_definition_stays_while_pointer_is_on_it_or_its_term(person):
    """WCAG 2.2 (1.4.13) requires this: users of screen magnifiers move there to read it."""
    person.wait_until_idle()
    person.wait_for_terms()
    term = person.page.locator("[role=tabpanel]:visible .term").first
    term.hover()
    expect(find_definition(person)).to_be_visible()
    definition_text, box = find_definition(person).text_content(), find_definition(person).bounding_box()
    person.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2, steps=8)
    person.page.wait_for_timeout(2 * GRACE_MS)
    expect(find_definition(person)).to_contain_text(definition_text[:40])
    expect(find_definition(person)).to_be_visible()
    person.page.mouse.move(0, 0)
    expect(find_definition(person)).to_be_hidden()


@pytest.mark.exhaustive
def test_definition_fits_phone_screen(open_page):
    person = open_page(view="prediction", viewport={"width": 390, "height": 844})
    person.wait_until_idle()
    person.wait_for_terms()
    for term in person.page.locator("[role=tabpanel]:visible .prose .term").all():
        term.click()
        box = find_definition(person).bounding_box()
        assert box["x"] >= 8 and box["x"] + box["width"] <= 390 - 8, (term.text_content(), box)
    for selector, name in (
        ("#answer .tick", "chance"),
        ("#brief", "Step picks"),
    ):  # the line's button stays the prompt's
        person.page.locator(f"{selector} .term").click()
        expect(find_definition(person)).to_have_text(make_expected_definition(person, name))
        expect(person.prompt).not_to_be_focused()


@pytest.mark.exhaustive
def test_definition_is_shown_without_server_answer(open_new_page):
    person = open_new_page().open()
    term = person.page.locator("[role=tabpanel]:visible .term").first
    expect(term).to_be_visible()
    person.page.route("**/explorer/*", lambda _route: None)
    meaning = ENTRY_BY_NAME[term.get_attribute("data-term")].meaning
    term.hover()
    expect(find_definition(person)).to_have_text(meaning)


@pytest.mark.exhaustive
def test_partial_characters_are_explained(open_page):
    person = open_page(text="the cat")
    expect(person.page.locator("#strip .parts")).to_be_hidden()
    person.run("é 猫")
    note = person.page.locator("#strip .parts")
    expect(note).to_contain_text("a part of a character")
    note.locator(".term").first.hover()
    expect(find_definition(person)).to_contain_text(re.compile("^(token|a piece|one of 256)"))


def test_glossary_lists_all_terms(person):
    person.page.get_by_text("What do the words mean?").click()
    entries = person.page.locator("#glossary dt")
    expect(entries).to_have_count(len(ENTRY_BY_NAME))
    assert sorted(entries.all_text_contents()) == sorted(ENTRY_BY_NAME)  # other forms are only recognized
    expect(person.page.locator("#glossary dd").first).to_have_text(re.compile(r"\w"))
    person.page.get_by_text("What do the words mean?").click()
    expect(entries.first).to_be_hidden()


def test_first_terms_are_defined_with_run_values(person):
    person.page.locator("#lessons .open").click()
    person.page.locator("#lessons .to-glossary").click()
    meanings = person.page.locator("#glossary .first dd")
    expect(meanings).to_have_count(len(FIRST_TERMS))
    for name, meaning in zip(FIRST_TERMS, meanings.all(), strict=True):
        whole = make_expected_definition(person, name)
        assert whole != ENTRY_BY_NAME[name].meaning, "the definition has a number of the run"
        expect(meaning).to_have_text(whole)
    expect(person.page.locator("#glossary summary")).to_be_focused()


@pytest.mark.exhaustive
def test_definition_follows_selection(open_page):
    person = open_page("attention", text="The owl asked the moon", layer=1, head=1)
    person.wait_for_terms()
    terms = person.page.locator("#view .term:visible")
    definitions = {
        name: make_expected_definition(person, name)
        for name in terms.evaluate_all("all => all.map(({ dataset }) => dataset.term)")
    }
    choose = "actions.select({ query: given, key: 0, layer: 0 })"
    person.evaluate(choose, 2)
    name = next(
        name
        for name, definition_text in definitions.items()
        if make_expected_definition(person, name) != definition_text
    )  # whose definition depends on the position
    person.page.locator(f"#view .term[data-term='{name}']:visible").first.focus()
    expect(find_definition(person)).to_have_text(make_expected_definition(person, name))
    person.evaluate(choose, 1)
    expect(find_definition(person)).to_have_text(make_expected_definition(person, name))


UNDERLINED_TERMS = """() => [...document.querySelectorAll(".term")]
  .filter((term) => term.checkVisibility() && getComputedStyle(term).borderBottomColor !== "rgba(0, 0, 0, 0)")
  .map((term) => term.dataset.term)"""


def test_three_terms_and_hovered_term_are_underlined(person):
    person.wait_for_terms()
    underlined = person.page.evaluate(UNDERLINED_TERMS)
    assert len(set(underlined)) == len(underlined) == 3
    quiet = person.page.locator("#sampling .term").first
    quiet.hover()
    assert quiet.get_attribute("data-term") in person.page.evaluate(UNDERLINED_TERMS)
