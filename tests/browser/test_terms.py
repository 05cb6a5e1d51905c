"""Glossary definitions on hover, focus and tap, with this run's own numbers."""

import re

import pytest
from playwright.sync_api import expect

from explorer.lessons.glossary import ENTRY_BY_NAME, FIRST_TERMS, GlossaryExampleContext
from explorer.state.generation_settings import GenerationSettings
from explorer.state.page_state import PageState
from explorer.tracing.model_library import ModelLibrary
from explorer.tracing.run_service import RunService

GRACE = 300  # milliseconds (CLOSE_DELAY_MS in static/glossary_terms.js)


def expected_definition(person, name: str) -> str:
    """Return the definition of a term that the page is to show."""
    runs, page_state = RunService(ModelLibrary("cpu")), PageState.parse(person.state)
    _lm, trace = runs.model_and_trace(page_state.run)
    return ENTRY_BY_NAME[name].define(
        GlossaryExampleContext(
            trace, page_state.selection.clamp_to_trace(trace), GenerationSettings.parse(person.state)
        )
    )


def definition(person):
    return person.page.locator("#definition")


@pytest.mark.exhaustive
def test_hover_focus_and_a_tap_tell_of_this_run(person):
    terms = person.page.locator("[role=tabpanel]:visible .term:visible")
    expect(terms.first).to_be_visible()
    person.at_rest()
    person.all_marked()
    for i, act in enumerate(("hover", "focus", "click")):
        term = terms.nth(i)
        name = term.get_attribute("data-term")
        getattr(term, act)()
        expect(definition(person)).to_have_text(expected_definition(person, name))
        expect(term).to_have_attribute("aria-describedby", "definition")
        person.page.keyboard.press("Escape")
        expect(definition(person)).to_be_hidden()
        person.page.mouse.move(0, 0)
    person.chips.nth(3).click()
    person.at_rest()
    query = person.page.locator(".term[data-term=query]:visible, .term[data-term=head]:visible").first
    query.hover()
    expect(definition(person)).to_have_text(expected_definition(person, query.get_attribute("data-term")))


@pytest.mark.exhaustive
def test_what_is_told_stays_as_long_as_the_pointer_is_on_its_term_or_on_it(person):
    """WCAG 2.2 (1.4.13) requires this: users who magnify the screen move there to read it."""
    person.at_rest()
    person.all_marked()
    term = person.page.locator("[role=tabpanel]:visible .term").first
    term.hover()
    expect(definition(person)).to_be_visible()
    definition_text, box = definition(person).text_content(), definition(person).bounding_box()
    person.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2, steps=8)
    person.page.wait_for_timeout(2 * GRACE)
    expect(definition(person)).to_contain_text(definition_text[:40])
    expect(definition(person)).to_be_visible()
    person.page.mouse.move(0, 0)
    expect(definition(person)).to_be_hidden()


@pytest.mark.exhaustive
def test_what_is_told_is_within_a_telephones_screen(visitor):
    person = visitor(view="prediction", viewport={"width": 390, "height": 844})
    person.at_rest()
    person.all_marked()
    for term in person.page.locator("[role=tabpanel]:visible .prose .term").all():
        term.click()
        box = definition(person).bounding_box()
        assert box["x"] >= 8 and box["x"] + box["width"] <= 390 - 8, (term.text_content(), box)
    for place, name in (("#answer .tick", "chance"), ("#brief", "next draw")):  # the line's button stays the prompt's
        person.page.locator(f"{place} .term").click()
        expect(definition(person)).to_have_text(expected_definition(person, name))
        expect(person.prompt).not_to_be_focused()


@pytest.mark.exhaustive
def test_a_meaning_is_told_where_nobody_answers(newcomer):
    person = newcomer().open()
    term = person.page.locator("[role=tabpanel]:visible .term").first
    expect(term).to_be_visible()
    person.page.route("**/explorer/*", lambda _route: None)
    meaning = ENTRY_BY_NAME[term.get_attribute("data-term")].meaning
    term.hover()
    expect(definition(person)).to_have_text(meaning)


@pytest.mark.exhaustive
def test_parts_of_a_character_are_told_where_there_are_any(visitor):
    person = visitor(text="the cat")
    expect(person.page.locator("#strip .parts")).to_be_hidden()
    person.run("é 猫")
    note = person.page.locator("#strip .parts")
    expect(note).to_contain_text("a part of a character")
    note.locator(".term").first.hover()
    expect(definition(person)).to_contain_text(re.compile("^(token|a piece|one of 256)"))


def test_all_words_are_listed(person):
    person.page.get_by_text("What do the words mean?").click()
    entries = person.page.locator("#glossary dt")
    expect(entries).to_have_count(len(ENTRY_BY_NAME))
    assert sorted(entries.all_text_contents()) == sorted(ENTRY_BY_NAME)  # other forms are only recognized
    expect(person.page.locator("#glossary dd").first).to_have_text(re.compile(r"\w"))
    person.page.get_by_text("What do the words mean?").click()
    expect(entries.first).to_be_hidden()


def test_learn_leads_to_ten_words_with_the_numbers_of_the_run(person):
    person.page.locator("#lessons .open").click()
    person.page.locator("#lessons .to-glossary").click()
    meanings = person.page.locator("#glossary .first dd")
    expect(meanings).to_have_count(len(FIRST_TERMS))
    for name, meaning in zip(FIRST_TERMS, meanings.all(), strict=True):
        whole = expected_definition(person, name)
        assert whole != ENTRY_BY_NAME[name].meaning, "it has a number of the run"
        expect(meaning).to_have_text(whole)
    expect(person.page.locator("#glossary summary")).to_be_focused()


@pytest.mark.exhaustive
def test_what_is_told_of_a_term_follows_what_is_chosen_meanwhile(visitor):
    person = visitor("attention", text="The owl asked the moon", layer=1, head=1)
    person.all_marked()
    terms = person.page.locator("#view .term:visible")
    definitions = {
        name: expected_definition(person, name)
        for name in terms.evaluate_all("all => all.map(({ dataset }) => dataset.term)")
    }
    choose = "actions.select({ query: given, key: 0, layer: 0 })"
    person.evaluate(choose, 2)
    name = next(
        name for name, definition_text in definitions.items() if expected_definition(person, name) != definition_text
    )  # which is about the place
    person.page.locator(f"#view .term[data-term='{name}']:visible").first.focus()
    expect(definition(person)).to_have_text(expected_definition(person, name))
    person.evaluate(choose, 1)
    expect(definition(person)).to_have_text(expected_definition(person, name))


UNDERLINED = """() => [...document.querySelectorAll(".term")]
  .filter((term) => term.checkVisibility() && getComputedStyle(term).borderBottomColor !== "rgba(0, 0, 0, 0)")
  .map((term) => term.dataset.term)"""


def test_three_terms_are_underlined_at_a_time_and_any_that_is_pointed_at(person):
    person.all_marked()
    underlined = person.page.evaluate(UNDERLINED)
    assert len(set(underlined)) == len(underlined) == 3
    quiet = person.page.locator("#sampling .term").first
    quiet.hover()
    assert quiet.get_attribute("data-term") in person.page.evaluate(UNDERLINED)
