"""Two runs in URLs and links, and controls that have no second run."""

import re

import numpy as np
import pytest
from playwright.sync_api import expect

from explorer.web.actions.page_actions import FIRST_PROMPT

from .painted import cell_colours
from .two_runs import OTHER, compare


def test_the_address_restores_both_runs(person, newcomer):
    compare(person)
    person.expect_selected(shown="difference")
    expect(person.page).to_have_url(re.compile(r"b\.prompt="))
    less = cell_colours(person.pattern, (person.chips.count(),) * 2)
    other = newcomer()
    other.page.goto(person.page.url)
    expect(other.pattern).to_have_attribute("data-draws", re.compile(r"\d"))
    expect(other.page.locator("#strip-b .strip")).to_have_text(OTHER)
    other.at_rest()
    assert np.array_equal(cell_colours(other.pattern, less.shape[:2]), less)
    person.page.go_back()
    expect(person.page.locator("#strip-b")).to_be_hidden()


@pytest.mark.exhaustive
def test_what_cannot_be_compared_is_told(person):
    compare(person, "???")
    expect(person.page.locator("#runs .aligned:not(.about-b)")).to_contain_text("look at A and B in turn")
    expect(person.page.locator("#attention-pattern .instead")).to_contain_text("align two tokens")
    expect(person.page.locator("#attention-pattern .evidence-mark")).to_be_hidden()


@pytest.mark.exhaustive
def test_a_prompt_of_nothing_changes_nothing(person):
    person.open_menu("#runs .menu").get_by_role("button", name="another prompt").click()
    person.page.get_by_label("the other prompt").fill("")
    person.page.locator("#runs").get_by_role("button", name="Compare", exact=True).click()
    expect(person.warning).to_contain_text("prompt is empty")
    expect(person.page.locator("#strip-b")).to_be_hidden()


@pytest.mark.exhaustive
def test_the_simple_page_shows_one_run(newcomer):
    person = newcomer().open("looks", **{"b.checkpoint": "tiny", "b.text": OTHER, "shown": "difference"})
    person.at_rest()
    expect(person.page.locator("#runs")).to_be_hidden()
    expect(person.page.locator("#strip-b")).to_be_hidden()
    expect(person.page.locator("#looks-weights .main-svg").first).to_be_visible()
    person.page.get_by_role("button", name="Numbers", exact=True).click()
    expect(person.page.locator("#strip-b .strip")).to_have_text(OTHER)
    expect(person.page.locator("#runs")).to_contain_text("A − B")
    person.page.get_by_role("button", name="Story", exact=True).click()
    expect(person.page.locator("#strip-b")).to_be_hidden()


@pytest.mark.exhaustive
def test_a_second_run_that_makes_no_sense_is_left_out(newcomer):
    person = newcomer().open(**{"b.checkpoint": "nowhere", "b.text": OTHER})
    expect(person.warning).to_contain_text("second run is left out")
    expect(person.strip).to_have_text(FIRST_PROMPT)


@pytest.mark.exhaustive
def test_what_is_too_long_for_a_link_is_saved_and_opened(newcomer):
    ids = ".".join(["101"] * 1500)
    person = newcomer().open(prompt=ids, layer=1, **{"b.checkpoint": "one-head"})
    person.at_rest()
    with person.page.expect_download() as download:
        person.copy("Copy link")
    expect(person.page.locator("#connection")).to_contain_text("too long for a link")
    other = newcomer().open()
    with other.page.expect_file_chooser() as chooser:
        other.page.get_by_role("button", name="Open a saved file").click()
    chooser.value.set_files(download.value.path())
    expect(other.page.locator("#strip-b .strip")).to_be_visible()
    other.expect_selected(layer=1)
    assert other.state["prompt"] == [101] * 1500 and other.state["b.checkpoint"] == "one-head"
    with other.page.expect_file_chooser() as chooser:
        other.page.get_by_role("button", name="Open a saved file").click()
    chooser.value.set_files([{"name": "other.json", "mimeType": "application/json", "buffer": b"[1, 2]"}])
    expect(other.page.locator("#connection")).to_contain_text("nothing that this page saved")
    assert other.state["b.checkpoint"] == "one-head"
