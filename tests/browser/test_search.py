"""The search, and the list of keys."""

import re
from contextlib import nullcontext

import pytest
from playwright.sync_api import Locator, expect

from .person import Person


def open_search(person: Person) -> Locator:
    """Open the search by its key, and return its box once all can be found."""
    is_first = person.page.locator("#search-dialog").count() == 0
    with person.page.expect_response("**/search_index") if is_first else nullcontext():
        person.page.keyboard.press("Control+k")
    box = person.page.get_by_role("combobox", name="Search or jump")
    expect(box).to_be_focused()
    return box


def results(person: Person) -> Locator:
    return person.page.locator("#search-results [role=option]")


def choose_result(person: Person, text: str):
    """Type a text into the search and go to what is found first."""
    open_search(person).fill(text)
    expect(results(person).first).to_be_visible()
    person.page.keyboard.press("Enter")
    expect(person.page.locator("#search-dialog")).to_be_hidden()


@pytest.mark.exhaustive
def test_the_search_is_loaded_once_it_is_used_and_gives_the_focus_back(newcomer):
    person = newcomer()
    requests = []
    person.page.on("request", lambda request: requests.append(request.url))
    person.open().at_rest()
    assert not [url for url in requests if "search" in url]
    person.chips.nth(2).focus()
    with person.page.expect_response("**/search_index"):
        person.page.keyboard.press("Control+k")
        person.page.keyboard.type("slide")  # while it is on its way
    box = person.page.get_by_role("combobox", name="Search or jump")
    expect(box).to_have_value("slide")
    assert [url for url in requests if url.endswith("widgets/header/search.js")]
    box.fill("attention")
    expect(results(person).first).to_have_attribute("aria-selected", "true")
    person.page.keyboard.press("ArrowDown")
    expect(results(person).nth(1)).to_have_attribute("aria-selected", "true")
    expect(person.page.locator("#search-results .effect:visible")).to_have_text(re.compile("^Enter opens "))
    expect(box).to_have_attribute("aria-activedescendant", results(person).nth(1).get_attribute("id"))
    person.page.keyboard.press("Escape")
    expect(person.chips.nth(2)).to_be_focused()
    person.page.keyboard.press("/")
    expect(box).to_be_focused()
    expect(box).to_have_value("")
    box.fill("induction")
    expect(results(person).first.locator(".kind")).to_have_text("head score")
    person.page.keyboard.press("Control+k")
    person.page.keyboard.type("no such thing")  # in place of what was typed
    expect(box).to_have_value("no such thing")
    status = person.page.locator("#search-dialog [role=status]")
    expect(status).to_contain_text("Nothing here is called “no such thing”. Try L2H3")


def test_a_name_leads_where_it_is(person):
    open_search(person).fill("every part of the model")
    expect(results(person).filter(has_text="Every part of the model")).to_have_count(1)
    person.page.keyboard.press("Escape")
    choose_result(person, "RoPE")
    person.expect_selected(view="positions")
    choose_result(person, "logit lens")
    person.expect_selected(view="prediction")
    choose_result(person, "L1H0")
    person.expect_selected(view="attention", layer=1, head=0)
    choose_result(person, "n1.5")
    person.expect_selected(view="feed_forward", layer=1, neuron=5)
    choose_result(person, "L0")  # which can be chosen in the open view
    person.expect_selected(view="feed_forward", layer=0)
    choose_result(person, "position 3")
    person.expect_selected(query=3)
    choose_result(person, "dark theme")
    assert person.page.evaluate("document.body.classList.contains('dark')")


ACTIONS = {  # what people type -> the action that is found first
    "save": "Save figure as PNG",
    **dict.fromkeys(("slide", "place", "bookmark", "saved view"), "Save this view as a slide"),
    **dict.fromkeys(("present", "projector", "full screen"), "Present (P)"),
    **dict.fromkeys(("numpy", "array"), "Copy as Python"),
    **dict.fromkeys(("ablate", "switch off", "switch head off"), "Switch off head 1.0"),
    "ablate 0.1": "Switch off head 0.1",
    "print": "Print this view",
    "class": "Class",
    "language": "Español",
}


def test_an_action_goes_before_tokens_of_its_name(person):
    choose_result(person, "L1H0")
    box = open_search(person)
    for typed, name in ACTIONS.items():
        box.fill(typed)
        expect(results(person).first.locator(".name")).to_have_text(name)
    person.page.keyboard.press("Escape")
    choose_result(person, "ablate 0.1")
    person.wait_until("page.state.edits === 'blocks.0.attn.z.1*zero'")
    choose_result(person, "ablate 0.1")  # which switches it on again
    person.wait_until("page.state.edits === ''")


def test_a_token_becomes_the_explained_one(person):
    token = person.prediction.locator("tbody tr").nth(3)
    text, token_id = token.locator(".text").text_content(), token.get_attribute("data-token")
    open_search(person).fill(text.replace(" ", "·"))
    results(person).filter(has_text=f"token {token_id}").first.click()
    person.expect_selected(target=4)
    expect(person.prediction.locator(f"tr.found[data-token='{token_id}']")).to_be_visible()


@pytest.mark.exhaustive
def test_a_term_leads_to_its_entry_and_a_checkpoint_to_its_model(person):
    choose_result(person, "surprisal")
    expect(person.page.locator("#glossary dt", has_text="surprisal").first).to_be_focused()
    choose_result(person, "checkpoint gpt-twin")
    person.wait_until("page.state.checkpoint === 'gpt-twin'")


def test_from_the_story_a_view_opens_at_its_numbers(visitor):
    person = visitor("pieces", depth="story")
    choose_result(person, "feed-forward")
    person.expect_selected(view="feed_forward", depth="numbers")
    choose_result(person, "story")
    person.expect_selected(view="guesses", depth="story")  # the step that is about it


def test_a_box_in_which_somebody_writes_keeps_its_keys(person):
    person.prompt.fill("")
    person.prompt.press_sequentially("who / what?")
    expect(person.prompt).to_have_value("who / what?")
    assert person.page.locator("dialog[open]").count() == 0


def test_the_keys_are_listed(person):
    person.chips.first.focus()
    person.page.keyboard.press("?")
    keys = person.page.get_by_role("dialog", name="Keys")
    expect(keys).to_contain_text("search, or jump to anything")
    person.page.keyboard.press("Escape")
    expect(keys).to_be_hidden()
    expect(person.chips.first).to_be_focused()
