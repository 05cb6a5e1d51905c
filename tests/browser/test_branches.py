"""Alternative tokens, the tree of continuations, undo, regeneration and playback."""

import re

import pytest
from playwright.sync_api import expect

from explorer.state.page_state import parse_branches

from .test_generation import LONG, VIEWS_FOLLOW, continuation

PROMPT = "The fox asked"


@pytest.fixture
def writer(person):
    """Person with a continuation of eight tokens."""
    person.run(PROMPT)
    person.generate(8)
    expect(person.branches).to_have_count(1)
    return person.wait_until_idle()


def generated_ids(person) -> list[int]:
    return person.state["generated"]


def press(person, name: str):
    with person.wait_for_new_tree():
        person.page.get_by_role("button", name=name, exact=True).click()


def saved_paths(person) -> set[tuple[int, ...]]:
    branches = parse_branches(person.state["branches"])
    return {branch.path for branch in branches}


def take_new_token(person, after: int) -> int:
    """Click the most probable token in the table that no branch has."""
    with person.wait_for_redraw(person.prediction):
        person.chips.nth(after).click()
    person.wait_until_idle()  # the click also redraws the tree
    row = person.prediction.locator("tbody tr").filter(has=person.page.locator(".take:not([hidden])")).first
    token = int(row.get_attribute("data-token"))
    row.hover()
    with person.wait_for_new_tree():
        row.locator(".take").click()
    person.wait_until_idle()
    return token


@pytest.mark.exhaustive
def test_alternative_token_adds_branch_and_both_are_visible(writer):
    first, prompt = generated_ids(writer), len(writer.state["prompt"])
    token = take_new_token(writer, after=prompt + 2)
    assert generated_ids(writer) == [*first[:3], token]
    expect(writer.branches).to_have_count(3)
    assert saved_paths(writer) == {tuple(first)}
    expect(writer.chips.last).to_have_attribute("aria-selected", "true")
    expect(writer.page.locator("#branches .leaves tbody tr")).to_have_count(2)
    writer.page.wait_for_function(VIEWS_FOLLOW)

    branch = writer.branches.nth(2 if writer.branches.nth(1).get_attribute("class").endswith("here") else 1)
    with writer.wait_for_new_tree():
        branch.locator(".go").click()
    assert generated_ids(writer) == first and saved_paths(writer) == {tuple(first), (*first[:3], token)}
    expect(writer.branches.locator("[aria-current=true]")).to_have_count(1)
    expect(writer.story).to_have_text(continuation(PROMPT, 8))


@pytest.mark.exhaustive
def test_alternative_within_prompt_loses_nothing(person):
    person.run(PROMPT)
    before = person.state["prompt"]
    token = take_new_token(person, after=1)
    state = person.state
    assert (state["prompt"], state["generated"]) == (before[:2], [token])
    assert saved_paths(person) == {tuple(before[2:])}
    text = person.story.locator(".prompt").text_content()
    expect(person.prompt).to_have_value(text)
    assert PROMPT.startswith(text) and text != PROMPT


@pytest.mark.exhaustive
def test_branch_is_pruned_by_click_or_key(writer):
    first, prompt = generated_ids(writer), len(writer.state["prompt"])
    for after in (prompt + 2, prompt + 1):
        take_new_token(writer, after)
    rows = writer.branches.count()
    with writer.wait_for_new_tree():
        writer.page.locator("#branches .stretch.here .prune").click()
    assert len(generated_ids(writer)) == 2 and writer.branches.count() < rows
    writer.branches.last.locator(".go").focus()
    writer.page.keyboard.press("ArrowUp")
    with writer.wait_for_new_tree():
        writer.page.keyboard.press("Home")
        writer.page.keyboard.press("Delete")
    assert (generated_ids(writer), saved_paths(writer)) == ([], set()), first
    expect(writer.page.locator("#branches .tree")).to_be_hidden()


@pytest.mark.exhaustive
def test_undo_and_regenerate(writer):
    first = generated_ids(writer)
    press(writer, "Another ending")
    expect(writer.page.get_by_label("seed", exact=True)).to_have_value("1")
    writer.wait_until("page.state.generated.length === 8")
    assert len(generated_ids(writer)) == 8 and saved_paths(writer) == {tuple(first)}
    expect(writer.story).to_have_text(continuation(PROMPT, 8, seed=1))


@pytest.mark.exhaustive
def test_every_click_undoes_one_action(writer):
    first, undo = generated_ids(writer), writer.page.locator("#undo")
    for count in (9, 10):
        writer.page.get_by_role("button", name="Step", exact=True).click()
        writer.wait_until("page.state.generated.length === given", count)
    last = generated_ids(writer)
    writer.generate(5)
    expect(undo).to_have_attribute("data-unit", "5 tokens")
    writer.page.evaluate("for (let i = 0; i < 2; i++) document.querySelector('#undo').click()")
    expect(writer.chips.and_(writer.page.locator(".generated"))).to_have_count(9)
    assert generated_ids(writer) == last[:9] and last[:8] == first
    expect(undo).to_have_attribute("data-unit", "1 token")
    writer.page.evaluate("for (let i = 0; i < 9; i++) document.querySelector('#undo').click()")
    expect(writer.chips.and_(writer.page.locator(".generated"))).to_have_count(0)
    expect(writer.page.locator("#undo")).to_have_attribute("data-unit", "new text")  # no token is left to undo
    assert not writer.warning.count()


@pytest.mark.exhaustive
def test_undoing_intervention_during_generation_stops_it(open_page):
    person = open_page(edits="blocks.0.attn.z.1*zero", **LONG)
    person.page.locator("#generate").click()
    person.wait_until("page.state.generated.length > 2")
    take_back = "document.querySelector('#changes button').click(), page.state.generated.length"
    with person.wait_for_new_tree():
        count = person.evaluate(take_back)
    expect(person.page.locator("#changes").get_by_role("button")).to_have_count(0)
    assert (person.state["edits"], len(generated_ids(person))) == ("", count)
    person.page.get_by_role("button", name="Step", exact=True).click()
    person.wait_until("page.state.generated.length === given + 1", count)
    assert person.state["edits"] == ""


def test_greedy_beam_and_sampling_are_compared(writer):
    with writer.wait_for_new_tree():
        writer.page.get_by_role("button", name="Compare methods").click()
    writer.wait_until("page.state.branches.includes('sampling:')")
    table = writer.page.locator("#branches .leaves tbody")
    for origin in ("greedy", "beam", "sampling"):
        expect(table).to_contain_text(origin)
    rows = [row.split("\t") for row in table.inner_text().splitlines()]
    scores = {re.sub(r"[\d\s]", "", row[0]): float(row[2].replace("−", "-")) for row in rows}
    assert scores["beam"] >= scores["greedy"]


def test_playback_goes_through_every_step(writer):
    prompt = len(writer.state["prompt"])
    expect(writer.playback).to_contain_text("The end: 8 tokens added in all.")
    writer.playback.get_by_role("slider").fill("0")
    writer.expect_selected(query=prompt - 1)
    expect(writer.playback).to_contain_text("step 1 of 8: after")
    expect(writer.page.locator("#next-token-words")).to_contain_text(f"position {prompt - 1}")
    writer.playback.get_by_role("button", name="forward").click()
    writer.expect_selected(query=prompt)
    writer.playback.get_by_role("button", name="back").click()
    writer.expect_selected(query=prompt - 1)

    writer.evaluate("onState(() => (window.went ||= []).push(page.state.query))")
    writer.playback.get_by_role("button", name="play").click()
    expect(writer.playback.get_by_role("button", name="pause")).to_be_visible()
    expect(writer.playback).to_contain_text("The end: 8 tokens added in all.")
    expect(writer.playback.get_by_role("button", name="play")).to_be_visible()
    assert list(dict.fromkeys(writer.page.evaluate("window.went"))) == list(range(prompt - 1, prompt + 8))


@pytest.mark.exhaustive
def test_playback_stops_when_user_selects_token(open_new_page):
    writer = open_new_page(reduced_motion="reduce").open(text=PROMPT)
    writer.generate(8)
    writer.playback.get_by_role("button", name="play").click()
    expect(writer.playback).to_contain_text(re.compile("step [2-7] of 8"))
    writer.chips.nth(0).click()
    expect(writer.playback.get_by_role("button", name="play")).to_be_visible()
    expect(writer.playback).to_contain_text("A token of the prompt is chosen")
    writer.expect_selected(query=0)


@pytest.mark.exhaustive
def test_reload_restores_tree(writer):
    take_new_token(writer, after=len(writer.state["prompt"]) + 2)
    rows, table = writer.branches.all_inner_texts(), writer.page.locator("#branches .leaves").inner_text()
    writer.page.wait_for_url(re.compile(r"branches="))
    writer.expect_selected(began=4)
    writer.page.reload()
    expect(writer.branches).to_have_count(len(rows))
    assert writer.branches.all_inner_texts() == rows
    assert writer.page.locator("#branches .leaves").inner_text() == table
    writer.run("An owl")
    expect(writer.branches).to_have_count(0)
    writer.page.wait_for_url(re.compile(r"^(?!.*branches=)"))


def test_better_prompt_is_offered_and_run(person):
    person.run("The fox ")
    offer = person.page.locator("#advice button", has_text="Use this prompt")
    with person.wait_for_redraw(person.strip, person.prediction):
        offer.click()
    expect(person.prompt).to_have_value("The fox")
    expect(person.strip).to_have_text("The fox")


@pytest.mark.exhaustive
def test_stop_adds_no_more_tokens(open_page):
    person = open_page(**LONG)
    person.page.locator("#generate").click()
    person.wait_until("page.state.generated.length > 5")
    with person.wait_for_new_tree():
        at_once = person.evaluate("document.querySelector('#stop').click(), page.state.generated.length")
    assert len(generated_ids(person)) == at_once
    expect(person.chips.and_(person.page.locator(".generated"))).to_have_count(at_once)
