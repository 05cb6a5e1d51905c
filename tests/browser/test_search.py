"""Search dialog and list of keys."""

import re
from contextlib import nullcontext

import pytest
from playwright.sync_api import Locator, expect

from .person import Person


def open_search(person: Person) -> Locator:
    """Open the search with its key, and return its box once the index is loaded."""
    is_first = person.page.locator("#search-dialog").count() == 0
    with person.page.expect_response("**/search_index") if is_first else nullcontext():
        person.page.keyboard.press("Control+k")
    box = person.page.get_by_role("combobox", name="Search or jump")
    expect(box).to_be_focused()
    return box


def find_results(person: Person) -> Locator:
    return person.page.locator("#search-results [role=option]")


def choose_result(person: Person, text: str):
    """Type a text into the search and open the first result."""
    open_search(person).fill(text)
    expect(find_results(person).first).to_be_visible()
    person.page.keyboard.press("Enter")
    expect(person.page.locator("#search-dialog")).to_be_hidden()


@pytest.mark.exhaustive
def test_search_loads_on_first_use_and_returns_focus(open_new_page):
    person = open_new_page()
    requests = []
    person.page.on("request", lambda request: requests.append(request.url))
    person.open().wait_until_idle()
    assert not [url for url in requests if "search" in url]
    person.chips.nth(2).focus()
    with person.page.expect_response("**/search_index"):
        person.page.keyboard.press("Control+k")
        person.page.keyboard.type("slide")  # while the index loads
    box = person.page.get_by_role("combobox", name="Search or jump")
    expect(box).to_have_value("slide")
    assert [url for url in requests if url.endswith("widgets/header/search.js")]
    box.fill("attention")
    expect(find_results(person).first).to_have_attribute("aria-selected", "true")
    person.page.keyboard.press("ArrowDown")
    expect(find_results(person).nth(1)).to_have_attribute("aria-selected", "true")
    expect(person.page.locator("#search-results .effect:visible")).to_have_text(re.compile("^Enter opens "))
    expect(box).to_have_attribute("aria-activedescendant", find_results(person).nth(1).get_attribute("id"))
    person.page.keyboard.press("Escape")
    expect(person.chips.nth(2)).to_be_focused()
    person.page.keyboard.press("/")
    expect(box).to_be_focused()
    expect(box).to_have_value("")
    person.page.get_by_role("button", name="? Keys").click()
    expect(person.page.locator("#keys")).to_be_visible()
    person.page.keyboard.press("Escape")
    person.page.keyboard.press("/")
    box.fill("attribution")  # also the glossary's
    kinds = find_results(person).locator(".kind").all_text_contents()
    assert kinds.index("figure") < kinds.index("term"), kinds
    box.fill("induction")
    expect(find_results(person).first.locator(".kind")).to_have_text("head score")
    box.fill("to its mean")
    expect(find_results(person).first).to_contain_text("Each head ablated to its mean")
    person.page.keyboard.press("Control+k")
    person.page.keyboard.type("no such thing")  # replaces the earlier text
    expect(box).to_have_value("no such thing")
    status = person.page.locator("#search-dialog [role=status]")
    expect(status).to_contain_text("Nothing here is called “no such thing”. Try L2H3")


def test_name_opens_its_place(person):
    open_search(person).fill("every part of the model")
    expect(find_results(person).filter(has_text="Every part of the model")).to_have_count(1)
    person.page.keyboard.press("Escape")
    choose_result(person, "RoPE")
    person.expect_selected(view="positions")
    person.tab("Residual stream")
    person.page.keyboard.press("ArrowRight")  # so that the tabs have the focus, with a frame
    person.page.keyboard.press("ArrowLeft")
    choose_result(person, "logit lens")
    person.expect_selected(view="prediction")
    expect(person.page.get_by_role("tab", name="Residual stream")).not_to_be_focused()
    expect(person.page.get_by_role("tab", name="Prediction")).to_be_focused()
    open_search(person).fill("direct logit attribution")
    expect(find_results(person).first).to_contain_text("Direct logit attribution: what each part added")
    person.page.keyboard.press("Escape")
    for name, figure in FIGURES.items():
        choose_result(person, name)
        expect(person.page.locator(f"#{figure} .plot svg.main-svg").first).to_be_in_viewport()
    for name, view in PLACES.items():
        choose_result(person, name)
        person.expect_selected(view=view)
    for name, part in (
        ("L1.0", {"layer": 1, "head": 0}),
        ("L1H0", {"layer": 1, "head": 0}),
        ("n1.5", {"layer": 1, "neuron": 5}),
    ):
        choose_result(person, name)
        person.expect_selected(view="attention" if "head" in part else "feed_forward", **part)
        person.page.evaluate("() => window.explorer.select({ view: 'experiments' })")  # which has lists of both
        choose_result(person, name)  # which is selected already
        person.expect_selected(view="attention" if "head" in part else "feed_forward", **part)
    choose_result(person, "L0")  # selectable in the open view
    person.expect_selected(view="feed_forward", layer=0)
    choose_result(person, "position 3")
    person.expect_selected(query=3)
    choose_result(person, "dark theme")
    assert person.page.evaluate("document.body.classList.contains('dark')")


FIGURES = {"DLA": "prediction-parts", "QK": "attention-stages", "rollout": "prediction-rollout"}  # folded at first
PLACES = {  # researcher's word -> the view that shows it
    "resid_pre": "residual",
    "mean ablation": "experiments",
    "pre-softmax": "attention",
    "OV circuit": "directions",
}
ACTIONS = {  # typed text -> name of the first result
    "save": "Save figure as PNG",
    **dict.fromkeys(("slide", "place", "bookmark", "saved view"), "Save this view as a slide"),
    **dict.fromkeys(("present", "projector", "full screen"), "Present (P)"),
    **dict.fromkeys(("numpy", "array"), "Copy as Python"),
    **dict.fromkeys(("ablate", "switch off", "switch head off"), "Switch layer 1 head 0 off"),
    "ablate 0.1": "Switch layer 0 head 1 off",
    "print": "Print this view",
    **dict.fromkeys(("class", "ask the class", "question", "pose a question"), "Class"),
    "language": "Español",
}


def test_action_precedes_tokens_with_its_name(person):
    choose_result(person, "L1H0")
    box = open_search(person)
    for typed, name in ACTIONS.items():
        box.fill(typed)
        expect(find_results(person).first.locator(".name")).to_have_text(name)
    person.page.keyboard.press("Escape")
    choose_result(person, "ablate 0.1")
    person.wait_until("page.state.edits === 'blocks.0.attn.z.1*zero'")
    choose_result(person, "ablate 0.1")  # switches the head on again
    person.wait_until("page.state.edits === ''")


def test_token_becomes_target(person):
    token = person.prediction.locator("tbody tr").nth(3)
    text, token_id = token.locator(".text").text_content(), token.get_attribute("data-token")
    open_search(person).fill(text.replace(" ", "·"))
    find_results(person).filter(has_text=f"token {token_id}").first.click()
    person.expect_selected(target=4)
    expect(person.prediction.locator(f"tr.found[data-token='{token_id}']")).to_be_visible()
    contrast = person.prediction.locator("tbody tr").nth(1)
    text, token_id = contrast.locator(".text").text_content(), contrast.get_attribute("data-token")
    open_search(person).fill("against " + text.replace(" ", "·"))
    result = find_results(person).filter(has_text=f"token {token_id}").first
    expect(result.locator(".kind")).to_have_text("against")
    result.click()
    person.expect_selected(target=4, rival=2)


@pytest.mark.exhaustive
def test_term_opens_glossary_and_checkpoint_opens_model(person):
    choose_result(person, "surprisal")
    entry = person.page.locator("#glossary dt", has_text="surprisal").first
    expect(entry).to_be_focused()
    expect(entry).to_have_css("outline-style", "solid")  # after a click, too
    choose_result(person, "checkpoint gpt-twin")
    person.wait_until("page.state.checkpoint === 'gpt-twin'")


def test_story_opens_view_at_numbers(open_page):
    person = open_page("pieces", depth="story")
    choose_result(person, "feed-forward")
    person.expect_selected(view="feed_forward", depth="numbers")
    choose_result(person, "story")
    person.expect_selected(view="guesses", depth="story")  # the step about this view


def test_text_box_keeps_search_keys(person):
    person.prompt.fill("")
    person.prompt.press_sequentially("who / what?")
    expect(person.prompt).to_have_value("who / what?")
    assert person.page.locator("dialog[open]").count() == 0


def test_keys_are_listed(person):
    person.chips.first.focus()
    person.page.keyboard.press("?")
    keys = person.page.get_by_role("dialog", name="Keys")
    expect(keys).to_contain_text("search, or jump to anything")
    person.page.keyboard.press("Escape")
    expect(keys).to_be_hidden()
    expect(person.chips.first).to_be_focused()
