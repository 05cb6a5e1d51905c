"""Second run in URLs, links and saved files, and pages that show only one run."""

import re

import numpy as np
import pytest
from playwright.sync_api import expect

from explorer.web.actions.page_actions import FIRST_PROMPT

from .pixels import cell_colours
from .two_runs import OTHER_PROMPT, compare


def test_url_restores_both_runs(person, open_new_page):
    compare(person)
    person.expect_selected(shown="difference")
    expect(person.page).to_have_url(re.compile(r"b\.prompt="))
    less = cell_colours(person.pattern, (person.chips.count(),) * 2)
    other = open_new_page()
    other.page.goto(person.page.url)
    expect(other.pattern).to_have_attribute("data-draws", re.compile(r"\d"))
    expect(other.page.locator("#strip-b .strip")).to_have_text(OTHER_PROMPT)
    other.wait_until_idle()
    assert np.array_equal(cell_colours(other.pattern, less.shape[:2]), less)
    person.page.go_back()
    expect(person.page.locator("#strip-b")).to_be_hidden()


@pytest.mark.exhaustive
def test_unalignable_prompts_are_reported(person):
    compare(person, "???")
    expect(person.page.locator("#runs .aligned:not(.about-b)")).to_contain_text("look at A and B in turn")
    expect(person.page.locator("#attention-pattern .instead")).to_contain_text("align two tokens")
    expect(person.page.locator("#attention-pattern .evidence-mark")).to_be_hidden()


@pytest.mark.exhaustive
def test_empty_second_prompt_changes_nothing(person):
    person.open_menu("#runs .menu").get_by_role("button", name="another prompt").click()
    person.page.get_by_label("the other prompt").fill("")
    person.page.locator("#runs").get_by_role("button", name="Compare", exact=True).click()
    expect(person.warning).to_contain_text("prompt is empty")
    expect(person.page.locator("#strip-b")).to_be_hidden()


@pytest.mark.exhaustive
def test_simple_page_shows_one_run(open_new_page):
    person = open_new_page().open("looks", **{"b.checkpoint": "tiny", "b.text": OTHER_PROMPT, "shown": "difference"})
    person.wait_until_idle()
    expect(person.page.locator("#runs")).to_be_hidden()
    expect(person.page.locator("#strip-b")).to_be_hidden()
    expect(person.page.locator("#looks-weights .main-svg").first).to_be_visible()
    person.page.get_by_role("button", name="Numbers", exact=True).click()
    expect(person.page.locator("#strip-b .strip")).to_have_text(OTHER_PROMPT)
    expect(person.page.locator("#runs")).to_contain_text("A − B")
    person.page.get_by_role("button", name="Story", exact=True).click()
    expect(person.page.locator("#strip-b")).to_be_hidden()


@pytest.mark.exhaustive
def test_invalid_second_run_is_ignored_with_warning(open_new_page):
    person = open_new_page().open(**{"b.checkpoint": "nowhere", "b.text": OTHER_PROMPT})
    expect(person.warning).to_contain_text("second run is left out")
    expect(person.strip).to_have_text(FIRST_PROMPT)


@pytest.mark.exhaustive
def test_state_too_long_for_link_is_saved_to_file_and_opened(open_new_page):
    ids = ".".join(["101"] * 1500)
    person = open_new_page().open(prompt=ids, layer=1, **{"b.checkpoint": "one-head"})
    person.wait_until_idle()
    with person.page.expect_download() as download:
        person.copy("Copy link")
    expect(person.page.locator("#connection")).to_contain_text("too long for a link")
    other = open_new_page().open()
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
