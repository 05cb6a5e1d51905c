"""Depth of the page: story, numbers, formula or code."""

import re

import pytest
from playwright.sync_api import expect

from tests.exhaustive import first_in_core

DEPTH = "document.body.dataset.depth"


def choose_depth(person, depth: str):
    person.page.locator(f"[data-mode={depth}]").click()
    person.page.evaluate("explorer.settled()")


def test_each_depth_shows_more_of_same_view(open_page):
    person = open_page("attention")
    page, formula, code = (
        person.page,
        person.page.locator("#attention-formula .formula"),
        person.page.locator("#attention-code .code"),
    )
    expect(formula).not_to_be_visible()
    choose_depth(person, "formula")
    expect(formula).to_contain_text("score")
    expect(formula).to_be_visible()
    expect(code).not_to_be_visible()
    choose_depth(person, "code")
    expect(formula).to_be_visible()
    expect(code).to_be_visible()
    expect(code).to_contain_text("shapes in this run: B = 1, T = ")
    expect(code).to_contain_text("model/layers/attention.py")
    expect(code.locator("mark")).to_contain_text("→   return torch.softmax(scores + penalty, dim=-1)")
    mark, box = code.locator("mark").bounding_box(), code.bounding_box()
    assert box["y"] <= mark["y"] and mark["y"] + mark["height"] <= box["y"] + box["height"]
    hidden_lines = """box => (box.scrollTop - parseFloat(getComputedStyle(box).paddingTop))
      / parseFloat(getComputedStyle(box).lineHeight)"""
    num_hidden = code.evaluate(hidden_lines)
    assert num_hidden > 1 and num_hidden == pytest.approx(round(num_hidden), abs=0.05)  # no line is cut
    assert page.evaluate("scrollY") == 0
    choose_depth(person, "story")
    assert page.evaluate("explorer.state.view") == "looks"
    head = re.search(r"Layer (\d+) head (\d+)", page.locator("#looks-weights h2").inner_text())
    page.evaluate(
        "([layer, head]) => explorer.select({ layer: 1 - layer, head: 1 - head })", list(map(int, head.groups()))
    )
    choose_depth(person, "numbers")
    person.expect_selected(view="attention", layer=int(head[1]), head=int(head[2]))  # that which the story shows
    expect(formula).not_to_be_visible()
    expect(code).not_to_be_visible()


def test_figures_begin_in_sight_below_code_and_change(open_page):
    laptop = {"width": 1366, "height": 768}
    person = open_page("attention", viewport=laptop, depth="code", edits="blocks.0.attn.z.1*zero")
    code, mark = (person.page.locator(f"#attention-code {part}").bounding_box() for part in (".code", "mark"))
    assert code["y"] <= mark["y"] and mark["y"] + mark["height"] <= code["y"] + code["height"]
    assert person.page.locator("#attention-heads").bounding_box()["y"] < 0.66 * laptop["height"]


def test_depth_is_in_url_and_remembered(open_new_page):
    """An older URL has the depth of the residual stream in this field."""
    person = open_new_page().open("tokens", depth="2")
    assert person.page.evaluate("[explorer.state.residual_depth, explorer.state.depth]") == [2, "numbers"]
    choose_depth(person, "code")
    expect(person.page.locator("#tokens-code")).to_contain_text("embed_tokens")
    person.page.wait_for_url("**depth=code**")
    choose_depth(person, "formula")
    person.page.wait_for_url("**depth=formula**")
    again = open_new_page().open("positions")
    assert again.page.evaluate(DEPTH) == "formula"


@pytest.mark.parametrize(
    "view_and_step", first_in_core(["training overview", "feed_forward guesses", "overview overview"])
)
def test_story_opens_at_step_about_current_view(open_page, view_and_step):
    view, step = view_and_step.split()
    person = open_page(view)
    choose_depth(person, "story")
    person.expect_selected(view=step, depth="story")


# Layout shift as browsers measure it (area × distance), but including shifts after a click.
WATCH_SHIFTS = """window.shift = 0;
window.watch = new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) window.shift += entry.value;
});
window.watch.observe({ type: "layout-shift" });"""


def test_figure_and_depth_control_hardly_move_with_depth(open_page):
    person = open_page("attention")
    dial, shifts = person.page.locator("#mode"), []
    box = dial.bounding_box()
    person.page.evaluate(WATCH_SHIFTS)
    for depth in ("formula", "code"):
        choose_depth(person, depth)
        person.wait_until_idle()
        shifts.append(person.page.evaluate("[window.shift, window.shift = 0][0]"))
        assert dial.bounding_box() == box
        expect(person.page.locator("#attention-formula .formula")).to_be_visible()
    assert max(shifts) < 0.1
    assert min(shifts) > 0  # the observer works
