"""Controls that are pressed during generation."""

import re
import time

import pytest
from playwright.sync_api import expect

from .test_generation import LONG, WATCH

RELOAD_AND_CHOOSE = "location.reload(); setTimeout(() => document.querySelectorAll('#strip .chip')[3].click(), 50)"


@pytest.mark.exhaustive
def test_undo_removes_visible_tokens_during_generation(open_page):
    person = open_page(**LONG)
    person.page.locator("#generate").click()
    person.wait_until("page.state.generated.length > 5")
    with person.wait_for_new_tree():
        expect(person.playback).to_contain_text("tokens so far")
        person.page.locator("#undo").click()
    person.wait_until("page.state.generated.length === 0")
    expect(person.chips.and_(person.page.locator(".generated"))).to_have_count(0)


@pytest.mark.exhaustive
def test_selection_lists_have_query_during_generation(open_page):
    person = open_page(**LONG)
    person.evaluate("""
      window.empty = [],
      onState(() => setTimeout(() => {
        const query = document.querySelector("#attention-choosers select[data-field=query]");
        window.empty.push(query.selectedIndex < 0);
      }))
    """)
    person.page.locator("#generate").click()
    person.wait_until("window.empty.length > 5 && page.state.generated.length > 9")
    person.page.get_by_role("button", name="Stop").click()
    assert not any(person.page.evaluate("window.empty"))


def test_outdated_figures_show_their_position_during_generation(open_page):
    person = open_page(**LONG)
    last = person.state["query"]
    person.page.locator("#generate").click()
    person.wait_until("page.state.generated.length > 12")
    for waits in ("#attention-pattern", "#attention-formula", "#attention-what-ifs"):
        expect(person.page.locator(waits)).to_have_attribute("data-as-of", f"as of position {last}")
    label = "getComputedStyle(document.querySelector('#attention-formula'), '::before').content"
    person.wait_until(f"{label}.includes('position')")
    assert person.page.evaluate(f"document.body.classList.add('simple'), {label}") == "none"  # over no sentence
    person.page.evaluate("document.body.classList.remove('simple')")
    expect(person.page.locator("#next-token-words")).not_to_contain_text(f"position {last} ")
    person.page.locator("#stop").click()
    expect(person.page.locator("[data-as-of]:visible")).to_have_count(0)


@pytest.mark.exhaustive
def test_taking_token_stops_generation(open_page):
    person = open_page(**LONG)
    generated = person.chips.and_(person.page.locator(".generated"))
    person.page.locator("#generate").click()
    expect(generated.nth(2)).to_be_attached()
    # before the next token arrives
    person.evaluate("actions.select({ query: 0 }), actions.makeMove({ kind: 'take', token: 70 })")
    expect(generated).to_have_count(1)
    person.strip.evaluate(WATCH)
    for tokens in (2, 3):
        person.page.get_by_role("button", name="Step", exact=True).click()
        expect(generated).to_have_count(tokens)
    assert set(person.page.evaluate("window.seen")) <= {1, 2, 3}


@pytest.mark.exhaustive
def test_only_one_generation_runs_at_once(open_page):
    person = open_page(max_new_tokens=512)
    generated = person.chips.and_(person.page.locator(".generated"))
    person.page.locator("#generate").click()
    expect(generated.nth(2)).to_be_attached()
    person.set_length(6)
    with person.wait_for_new_tree():
        person.page.get_by_role("button", name="Another ending").click()
    expect(generated).to_have_count(6)
    assert person.state["seed"] == 1


@pytest.mark.exhaustive
def test_reload_keeps_generated_tokens(open_new_page):
    person = open_new_page().open(**LONG)
    person.page.locator("#generate").click()
    person.wait_until("page.state.generated.length > 15")
    generated = person.evaluate("location.reload(), page.state.generated")
    person.wait_until("page.state.generated")
    expect(person.wait_until_idle().chips.and_(person.page.locator(".generated")).nth(0)).to_be_attached()
    assert person.state["generated"][: len(generated)] == generated


@pytest.mark.exhaustive
def test_selection_during_reload_is_kept(open_new_page):
    """A reload requests the URL at its start; the URL has changed by the time the page arrives."""
    person = open_new_page().open().wait_until_idle()
    person.page.route(re.compile(r"/\?"), lambda route: (time.sleep(1.5), route.continue_()))
    with person.page.expect_navigation():
        person.page.evaluate(RELOAD_AND_CHOOSE)
    person.wait_until("page.state.prompt")
    assert person.state["query"] == 3
