"""Patching maps, computed on request; a click derives a cell, and a button beside the derivation patches it."""

import re
import time

import pytest
from playwright.sync_api import expect

from explorer.tracing import jobs

from .two_runs import open_more

LOOK = {"checkpoint": "tiny", "prompt": "66.67.68", "b.checkpoint": "tiny", "clean_run": "b"}
OTHER_TOKENS = iter((72, 73, 75, 76, 77, 78, 79, 80, 82, 83))  # with each the answer is another one


@pytest.fixture
def other() -> str:
    """Prompt that no test has used, not even at a second try."""
    return f"{next(OTHER_TOKENS)}.67.68"


@pytest.fixture
def patcher(visitor, other):
    return visitor(view="patching", unfolded="all", **LOOK | {"b.prompt": other})


def heads(person):
    return person.page.locator("#patching-heads_denoise")


def compute_map(person):
    """Wait for the maps, which begin by themselves as they take little."""
    for name in ("positions_denoise", "positions_noise", "heads_denoise", "heads_noise"):  # one job, and all are drawn
        expect(person.page.locator(f"#patching-{name} .main-svg").first).to_be_visible()
    expect(person.at_rest().page.locator(".stale:visible")).to_have_count(0)


def press_patch(person, panel: str, text: str):
    """Press the button beside the derivation of a clicked cell."""
    person.at_rest().page.locator(f'[data-of="patching-{panel}"]').get_by_role("button", name=text).click()


def test_the_pairs_stand_where_there_is_one_prompt_and_in_a_menu_that_moves_nothing(visitor):
    person = visitor(view="patching", checkpoint="tiny")
    pairs = person.page.locator("#prompt-pairs")
    expect(pairs.locator("summary")).to_be_hidden()
    pairs.get_by_role("button").nth(1).click()
    expect(person.page.locator("#strip-b .chip").first).to_be_visible()
    for run, role in (("", "clean"), ("-b", "corrupted")):  # one's own prompt is the one that is explained
        expect(person.page.locator(f"#strip{run} .strip")).to_have_attribute("data-role", role)
    formula = person.page.locator("#patching-formula summary")
    before = [part.bounding_box() for part in (pairs.locator("summary"), formula)]
    pairs.locator("summary").click()
    expect(pairs.get_by_role("button").nth(1)).to_be_visible()
    assert [part.bounding_box() for part in (pairs.locator("summary"), formula)] == before


def test_a_click_on_a_cell_derives_it_and_a_button_patches_it_and_takes_it_back(patcher):
    plot, derivation = heads(patcher).locator(".plot"), patcher.page.locator('[data-of="patching-heads_denoise"]')
    compute_map(patcher)
    patcher.click_cell(plot, 1, 0)
    expect(derivation).to_contain_text("The patch takes the probability of")
    expect(patcher.page).to_have_url(re.compile(r"head=1\b"))
    expect(patcher.page).not_to_have_url(re.compile("patch&|patch$"))
    press_patch(patcher, "heads_denoise", "Patch this into A")
    expect(patcher.page).to_have_url(re.compile(r"edits=blocks\.0\.attn\.z\.1\*patch"))
    expect(derivation).to_contain_text("effect = ")  # it stays beside what came of it
    patcher.at_rest()
    patcher.tab("Attention")
    expect(patcher.page.get_by_text("head 1 of layer 0 as in the other run").first).to_be_visible()
    patcher.tab("Patching")
    patcher.at_rest()
    expect(plot).to_be_visible()  # what was worked out is kept
    patcher.click_cell(plot, 1, 0)
    press_patch(patcher, "heads_denoise", "Remove this patch")
    expect(patcher.page).not_to_have_url(re.compile("patch&|patch$"))


@pytest.mark.exhaustive
def test_a_click_on_an_earlier_position_leaves_the_query_at_the_answer(patcher):
    """So the next-token panel shows whether the answer changed; also for an estimate, which is drawn at once."""
    plot = patcher.page.locator("#patching-estimate_positions .plot")
    expect(plot).to_have_attribute("data-draws", re.compile(r"\d"))
    patcher.evaluate("actions.select({ query: 1 })")  # from wherever somebody looks
    patcher.at_rest()
    patcher.click_cell(plot, 0, 1)
    patcher.expect_selected(query=2, key=0, layer=1)
    press_patch(patcher, "estimate_positions", "Patch this into A")
    expect(patcher.page).to_have_url(re.compile(r"edits=blocks\.1\.resid_pre%400\*patch"))
    patcher.expect_selected(query=2, key=0, layer=1)
    expect(patcher.at_rest().page.locator("#next-token-words")).to_contain_text("(position 2)")


@pytest.mark.exhaustive
def test_what_takes_long_tells_how_far_it_is_and_ends_when_it_is_cancelled(visitor, other, monkeypatch):
    step, pieces = jobs._Task.step, []
    monkeypatch.setattr(jobs._Task, "step", lambda task: (pieces.append(task), time.sleep(0.2), step(task)))
    patcher = visitor(view="patching", **LOOK | {"b.prompt": other})
    begin = heads(patcher).get_by_role("button", name=re.compile("work it out"))
    bars = patcher.page.locator("#patching-heads_denoise progress, #patching-positions_noise progress")
    expect(bars).to_have_count(2)  # one job, for which both wait
    far = "least => document.querySelector('#patching-heads_denoise progress')?.value > least"
    patcher.page.wait_for_function(far, arg=0)
    patcher.page.wait_for_function(far, arg=bars.first.evaluate("bar => bar.value"))
    expect(heads(patcher)).to_contain_text(re.compile(r"\d+ of \d+, about \d+ s left"))
    heads(patcher).get_by_role("button", name="Cancel").click()
    expect(bars).to_have_count(0)
    expect(begin).to_be_visible()
    expect(heads(patcher).locator(".plot")).to_be_hidden()
    pieces.clear()
    time.sleep(1)
    names = [task.job.key[0] for task in pieces if task.job.key[0] != "neurons"]  # which another figure waits for
    assert len(names) <= 1  # the one that was being done


@pytest.mark.exhaustive
def test_of_unequal_prompts_what_has_a_partner_goes_over(visitor, other):
    """B, the clean prompt, has one token more: a click on one of its later tokens patches at A's aligned position."""
    person = visitor(view="patching", **LOOK | {"b.prompt": f"66.{other}"})
    compute_map(person)
    plot = person.page.locator("#patching-positions_denoise .plot")
    expect(plot).to_contain_text("not patched")
    person.click_cell(plot, 3, 1)
    press_patch(person, "positions_denoise", "Patch this into A")
    expect(person.page).to_have_url(re.compile(r"key=2&.*edits=blocks\.1\.resid_pre%402\*patch"))
    person.at_rest()
    plot.focus()  # the keyboard says as much: A's token is at another place in the figure
    plot.press("ArrowLeft")
    expect(person.page).to_have_url(re.compile("key=1&"))
    plot.press("Enter")
    press_patch(person, "positions_denoise", "Patch this into A")
    expect(person.page).to_have_url(re.compile(r"key=1&.*edits=blocks\.1\.resid_pre%401\*patch"))


@pytest.mark.exhaustive
def test_closing_the_other_run_takes_its_values_out(patcher):
    compute_map(patcher)
    patcher.click_cell(heads(patcher).locator(".plot"), 0, 1)
    press_patch(patcher, "heads_denoise", "Patch this into A")
    expect(patcher.page).to_have_url(re.compile(r"edits=blocks\.1\.attn\.z\.0\*patch"))
    patcher.at_rest()
    open_more(patcher)
    patcher.page.locator("#runs").get_by_role("button", name=re.compile("close", re.IGNORECASE)).click()
    expect(patcher.page).not_to_have_url(re.compile("patch&|patch$"))
