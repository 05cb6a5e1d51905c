"""Step, Generate and Stop."""

import re

import pytest
from playwright.sync_api import expect

from explorer.tracing.model_library import ModelLibrary
from model.generation.autoregressive import generate
from tests.exhaustive import first_in_core

LONG = {"temperature": 0, "max_new_tokens": 512}  # half a minute; greedy, as sampling could end the text early
WATCH = """strip => {
  const seen = window.seen = []; // an observer of an earlier test keeps its own list
  const look = () => seen.push(strip.querySelectorAll(".chip.generated").length);
  new MutationObserver(look).observe(strip, { attributeFilter: ["data-draws"] });
}"""
VIEWS_FOLLOW = """() => document.querySelector("#attention-pattern .plot")._fullLayout.yaxis._categories.length
  === document.querySelectorAll("#strip .chip").length"""


def continuation(prompt: str, max_new_tokens: int, **settings) -> re.Pattern:
    """Return a pattern of a prompt with the first model's continuation, computed with the library alone.

    Bytes that make no character stand as the list of tokens has them, such as "\\xe2".
    """
    lm, tokenizer = ModelLibrary("cpu").model("tiny")
    settings = {"temperature": 0.8, "top_k": 40, "seed": 0} | settings
    steps = generate(lm, tokenizer.encode(prompt), max_new_tokens=max_new_tokens, **settings)
    text = prompt + tokenizer.decode([step.token_id for step in steps])
    parts = re.split("[^\\x00-\\x7f]*\ufffd[^\\x00-\\x7f]*", text)
    return re.compile("^" + r"(\\x[0-9a-f]{2})+".join(map(re.escape, parts)) + "$")


def test_step_appends_one_token_that_can_be_selected(person):
    tokens = person.chips.count()
    person.page.get_by_role("button", name="Step", exact=True).click()
    expect(person.chips).to_have_count(tokens + 1)
    new = person.chips.nth(tokens)
    expect(new).to_contain_class("generated")
    expect(new).to_have_attribute("aria-selected", "true")
    person.page.wait_for_function(VIEWS_FOLLOW)
    person.chips.nth(2).click()
    new.click()
    person.expect_selected(query=tokens)
    expect(person.page.locator("#next-token-words")).to_contain_text(f"position {tokens}")


@pytest.mark.parametrize("viewport", first_in_core([(1366, 768), (390, 844)]))
def test_max_new_tokens_is_set_without_generating(open_new_page, viewport):
    person = open_new_page(viewport=dict(zip(("width", "height"), viewport, strict=True))).open(view="")
    person.page.locator("#guess .see").click()
    generated = person.chips.and_(person.page.locator(".generated"))
    person.page.get_by_label("tokens", exact=True).click()
    person.set_length(3)
    person.expect_selected(max_new_tokens=3)
    expect(generated).to_have_count(0)
    person.page.locator("#generate").click()
    expect(generated).to_have_count(3)
    if viewport[0] < 600:  # the text is below the figures; the strip and the line above the buttons show its end
        expect(person.chips.last).to_be_in_viewport()
        return
    expect(person.story).to_be_in_viewport(ratio=0.99)
    box = person.story.evaluate("box => [box.scrollHeight - box.scrollTop, box.clientHeight, box.clientHeight % 20]")
    assert box == [box[1], box[1], 0]  # scrolled to its end, in whole lines


def test_generate_streams_token_by_token(person):
    person.run("The fox asked")
    person.strip.evaluate(WATCH)
    person.set_length(40)
    person.page.locator("#generate").click()
    expect(person.chips.and_(person.page.locator(".generated"))).to_have_count(40)
    person.page.wait_for_function(VIEWS_FOLLOW)
    observed = person.page.evaluate("window.seen")
    assert observed == sorted(set(observed)) and len(observed) >= 3, observed  # a busy machine draws several at a time
    expect(person.story).to_have_text(continuation("The fox asked", 40))


@pytest.mark.exhaustive
def test_text_beyond_context_slides_window(person):
    person.run("the moon " * 60)
    person.page.get_by_role("button", name="Step", exact=True).click()
    expect(person.chips.last).to_contain_class("generated")
    expect(person.strip).to_contain_text("earlier tokens")
    person.page.wait_for_function(VIEWS_FOLLOW)


def test_stop_ends_long_generation_and_page_stays_usable(open_page):
    person = open_page(**LONG)
    generated = person.chips.and_(person.page.locator(".generated"))
    person.page.locator("#generate").click()
    expect(generated.nth(2)).to_be_attached()
    person.grid.locator("[data-layer='1'][data-head='1']").click()
    person.page.get_by_role("button", name="Stop").click()
    person.page.wait_for_function(VIEWS_FOLLOW)
    person.expect_selected(layer=1, head=1)
    assert len(person.state["generated"]) < LONG["max_new_tokens"]
    person.run("The owl said")
    expect(person.strip).to_have_text("The owl said")
    tokens = person.chips.count()
    person.page.get_by_role("button", name="Step", exact=True).click()
    expect(person.chips).to_have_count(tokens + 1)
    expect(person.strip).to_have_text(re.compile("^The owl said"))
    person.page.wait_for_function(VIEWS_FOLLOW)


@pytest.mark.exhaustive
def test_buttons_without_effect_are_disabled(open_page):
    person = open_page(**LONG)
    stop, regenerate = (person.page.locator(f"#{name}") for name in ("stop", "regenerate"))
    expect(stop).to_be_disabled()
    expect(regenerate).to_be_disabled()
    person.page.locator("#generate").click()
    expect(stop).to_be_enabled()
    expect(person.chips.and_(person.page.locator(".generated")).nth(2)).to_be_attached()
    stop.click()
    expect(stop).to_be_disabled()
    expect(regenerate).to_be_enabled()
    person.page.get_by_role("button", name="Compare methods").click()
    expect(stop).to_be_enabled()
    expect(stop).to_be_disabled()  # once the methods are compared
    person.run("The owl said")
    expect(stop).to_be_disabled()
    expect(regenerate).to_be_disabled()


@pytest.mark.exhaustive
def test_new_run_stops_generation(open_page):
    person = open_page(**LONG)
    generated = person.chips.and_(person.page.locator(".generated"))
    person.page.locator("#generate").click()
    expect(generated.nth(2)).to_be_attached()
    person.run("The owl said")
    expect(generated).to_have_count(0)
    person.strip.evaluate(WATCH)
    for tokens in (1, 2, 3):
        person.page.get_by_role("button", name="Step", exact=True).click()
        expect(generated).to_have_count(tokens)
    assert set(person.page.evaluate("window.seen")) == {1, 2, 3}


@pytest.mark.exhaustive
def test_two_users_never_see_each_others_text(open_new_page):
    people = {text: open_new_page().open(text=text) for text in ("The fox said", "An owl asked the lake")}
    for seed, person in enumerate(people.values()):
        person.set_length(25)
        person.set_number("seed", seed)
    for person in people.values():
        person.page.locator("#generate").click()
    for seed, (text, person) in enumerate(people.items()):
        expect(person.story).to_have_text(continuation(text, 25, seed=seed))
        expect(person.chips.and_(person.page.locator(".generated"))).to_have_count(25)
