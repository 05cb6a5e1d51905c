"""Patching maps, computed on request; a click derives a cell, and a button beside the derivation patches it."""

import re
import time

import pytest
from playwright.sync_api import expect

from explorer.tracing import jobs

from .two_runs import open_more

BASE_QUERY = {"checkpoint": "tiny", "prompt": "66.67.68", "b.checkpoint": "tiny", "clean_run": "b"}
MAPS = ("positions_denoise", "positions_noise", "heads_denoise", "heads_noise")
OTHER_TOKENS = iter((72, 73, 75, 76, 77, 78, 79, 80, 82, 83))  # one for each test, so that no answer is cached


@pytest.fixture
def other_prompt() -> str:
    """Prompt that no test has used, unique for each attempt."""
    return f"{next(OTHER_TOKENS)}.67.68"


@pytest.fixture
def patcher(open_page, open_figures, other_prompt):
    unfolded = open_figures or "~".join(f"patching-{name}" for name in MAPS)
    return open_page(view="patching", unfolded=unfolded, **BASE_QUERY | {"b.prompt": other_prompt})


def find_head_map(person):
    return person.page.locator("#patching-heads_denoise")


def wait_for_maps(person):
    """Wait for the maps, which are computed automatically because they are small."""
    for name in MAPS:  # one job computes all four
        expect(person.page.locator(f"#patching-{name} .main-svg").first).to_be_visible()
    expect(person.wait_until_idle().page.locator(".stale:visible")).to_have_count(0)


def press_patch(person, panel: str, text: str):
    """Press the button beside the derivation of a clicked cell."""
    person.wait_until_idle().page.locator(f'[data-of="patching-{panel}"]').get_by_role("button", name=text).click()


def test_prompt_pairs_are_buttons_then_menu_without_shift(open_page):
    person = open_page(view="patching", checkpoint="tiny")
    pairs = person.page.locator("#prompt-pairs")
    expect(pairs.locator("summary")).to_be_hidden()
    pairs.get_by_role("button").nth(1).click()
    expect(person.page.locator("#strip-b .chip").first).to_be_visible()
    for run, role in (("", "clean"), ("-b", "corrupted")):  # the user's own prompt is the one that is explained
        expect(person.page.locator(f"#strip{run} .strip")).to_have_attribute("data-role", role)
    lists = person.page.locator("#patching-choosers")
    before = [part.bounding_box() for part in (pairs.locator("summary"), lists)]
    pairs.locator("summary").click()
    expect(pairs.get_by_role("button").nth(1)).to_be_visible()
    assert [part.bounding_box() for part in (pairs.locator("summary"), lists)] == before


def test_clicked_cell_is_derived_patched_and_restored(patcher):
    plot, derivation = (
        find_head_map(patcher).locator(".plot"),
        patcher.page.locator('[data-of="patching-heads_denoise"]'),
    )
    wait_for_maps(patcher)
    patcher.click_cell(plot, 1, 0)
    expect(derivation).to_contain_text("The patch takes the probability of")
    expect(patcher.page).to_have_url(re.compile(r"head=1\b"))
    expect(patcher.page).not_to_have_url(re.compile("patch&|patch$"))
    press_patch(patcher, "heads_denoise", "Patch this into A")
    expect(patcher.page).to_have_url(re.compile(r"edits=blocks\.0\.attn\.z\.1\*patch"))
    expect(derivation).to_contain_text("effect = ")  # the derivation stays next to its effect
    patcher.wait_until_idle()
    patcher.tab("Attention")
    expect(patcher.page.get_by_text("layer 0 head 1 as in B").first).to_be_visible()
    patcher.tab("Patching")
    patcher.wait_until_idle()
    expect(plot).to_be_visible()  # results are cached
    patcher.click_cell(plot, 1, 0)
    press_patch(patcher, "heads_denoise", "Remove this patch")
    expect(patcher.page).not_to_have_url(re.compile("patch&|patch$"))


@pytest.mark.exhaustive
def test_patching_earlier_position_keeps_query_at_answer(patcher):
    """So the next-token panel shows whether the answer changed; also for an estimate, which is drawn immediately."""
    plot = patcher.page.locator("#patching-estimate_positions .plot")
    expect(plot).to_have_attribute("data-draws", re.compile(r"\d"))
    patcher.evaluate("actions.select({ query: 1 })")  # starting at another position
    patcher.wait_until_idle()
    patcher.click_cell(plot, 0, 1)
    patcher.expect_selected(query=2, key=0, layer=1)
    press_patch(patcher, "estimate_positions", "Patch this into A")
    expect(patcher.page).to_have_url(re.compile(r"edits=blocks\.1\.resid_pre%400\*patch"))
    patcher.expect_selected(query=2, key=0, layer=1)
    expect(patcher.wait_until_idle().page.locator("#next-token-words")).to_contain_text("(position 2)")


@pytest.mark.exhaustive
def test_long_job_shows_progress_and_can_be_cancelled(open_page, other_prompt, monkeypatch):
    step, pieces = jobs._Task.step, []
    monkeypatch.setattr(jobs._Task, "step", lambda task: (pieces.append(task), time.sleep(0.2), step(task)))
    patcher = open_page(view="patching", **BASE_QUERY | {"b.prompt": other_prompt})
    begin = find_head_map(patcher).get_by_role("button", name=re.compile("work it out"))
    bars = patcher.page.locator("#patching-heads_denoise progress, #patching-positions_noise progress")
    expect(bars).to_have_count(2)  # one job, which both figures wait for
    far = "least => document.querySelector('#patching-heads_denoise progress')?.value > least"
    patcher.page.wait_for_function(far, arg=0)
    patcher.page.wait_for_function(far, arg=bars.first.evaluate("bar => bar.value"))
    expect(find_head_map(patcher)).to_contain_text(re.compile(r"\d+ of \d+, about \d+ s left"))
    find_head_map(patcher).get_by_role("button", name="Cancel").click()
    expect(bars).to_have_count(0)
    expect(begin).to_be_visible()
    expect(find_head_map(patcher).locator(".plot")).to_be_hidden()
    pieces.clear()
    time.sleep(1)
    names = [task.job.key[0] for task in pieces if task.job.key[0] != "neurons"]  # another figure's job
    assert len(names) <= 1  # the step in progress


@pytest.mark.exhaustive
def test_unequal_prompts_are_patched_at_aligned_positions(open_page, other_prompt):
    """B, the clean prompt, has one token more: a click on one of its later tokens patches at A's aligned position."""
    person = open_page(view="patching", **BASE_QUERY | {"b.prompt": f"66.{other_prompt}"})
    wait_for_maps(person)
    plot = person.page.locator("#patching-positions_denoise .plot")
    expect(plot).to_contain_text("not patched")
    person.click_cell(plot, 3, 1)
    press_patch(person, "positions_denoise", "Patch this into A")
    expect(person.page).to_have_url(re.compile(r"key=2&.*edits=blocks\.1\.resid_pre%402\*patch"))
    person.wait_until_idle()
    plot.focus()  # the keyboard gives the same: A's token has another position in the figure
    plot.press("ArrowLeft")
    expect(person.page).to_have_url(re.compile("key=1&"))
    plot.press("Enter")
    press_patch(person, "positions_denoise", "Patch this into A")
    expect(person.page).to_have_url(re.compile(r"key=1&.*edits=blocks\.1\.resid_pre%401\*patch"))


@pytest.mark.exhaustive
def test_closing_other_run_removes_its_patches(patcher):
    wait_for_maps(patcher)
    patcher.click_cell(find_head_map(patcher).locator(".plot"), 0, 1)
    press_patch(patcher, "heads_denoise", "Patch this into A")
    expect(patcher.page).to_have_url(re.compile(r"edits=blocks\.1\.attn\.z\.0\*patch"))
    patcher.wait_until_idle()
    open_more(patcher)
    patcher.page.locator("#runs").get_by_role("button", name=re.compile("close", re.IGNORECASE)).click()
    expect(patcher.page).not_to_have_url(re.compile("patch&|patch$"))
