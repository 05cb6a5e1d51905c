"""Folded content: a view's further figures, columns and settings, and on a phone rarely used controls."""

import json
import re

import pytest
from playwright.sync_api import expect

from explorer.views import VIEW_BY_NAME

from .conftest import DESK
from .person import ANSWER, Person, collect_posts

TELEPHONE, PROJECTOR = {"width": 390, "height": 844}, {"width": 1024, "height": 768}
LAPTOP = {"width": 1366, "height": 768}
# Number of pixels by which the next token's table is cut, and the smallest gap between texts of a row.
TABLE_ROOM = """() => {
  const table = document.querySelector("#next-token .table"), gaps = [];
  for (const row of table.querySelectorAll("tr")) {
    const texts = [...row.querySelectorAll(".name > *, td:not(.probability), .number, thead th")];
    const boxes = texts.filter((text) => text.checkVisibility() && text.textContent.trim()).map((text) => {
      const range = document.createRange();
      range.selectNodeContents(text);
      const { left, right } = text.matches(".name > *") ? text.getBoundingClientRect() : range.getBoundingClientRect();
      return { left, right };
    });
    boxes.slice(1).forEach((box, i) => gaps.push(box.left - boxes[i].right));
  }
  return [table.scrollWidth - table.clientWidth, Math.min(...gaps)];
}"""
# Distances below the navigation of a view's sentence, its first figure (if any), its controls and the bar at
# the bottom.
TOPS = """(view) => {
  const box = (element) => element.getBoundingClientRect(), find = (selector) => document.querySelector(selector);
  const figures = [...document.querySelectorAll(`#${view}-tab .panels > .block`)].filter((block) => box(block).height);
  const top = box(find("#views")).top;
  const parts = [find(`#${view}-words`), figures[0], find(`#${view}-choosers`), find("#bar")];
  return parts.map((part) => part ? box(part).top - top : null);
}"""


@pytest.mark.parametrize(("view", "has_figure"), [("attention", True), ("patching", False)])
def test_phone_shows_figure_and_sentence_before_controls(open_page, view, has_figure):
    person = open_page(view, viewport=TELEPHONE).wait_until_idle()
    words, figure, controls, bar = person.page.evaluate(TOPS, view)
    if has_figure:  # its sentence is a caption
        assert 0 < figure < 80 < words
    else:
        assert figure is None and words < 80
        runs, tokens = (person.page.locator(part).bounding_box() for part in ("#runs", "#strip"))
        assert abs(runs["y"] - tokens["y"]) < 4 and runs["x"] + runs["width"] <= tokens["x"]  # in one line
    assert controls > words
    assert bar > 200  # that much of the tab is visible without scrolling


@pytest.mark.exhaustive
def test_folded_line_shows_selection_and_opens_by_keyboard(open_page):
    person = open_page(viewport=TELEPHONE)
    line = person.page.locator("#attention-choosers .fold")
    expect(line).to_contain_text("layer 1")
    expect(person.chooser("layer")).to_have_count(0)
    line.press("Enter")
    expect(line).to_have_attribute("aria-expanded", "true")
    person.chooser("layer").select_option("0")
    expect(line).to_contain_text("layer 0")
    line.press("Enter")
    expect(person.chooser("layer")).to_have_count(0)


@pytest.mark.exhaustive
def test_folded_line_counts_interventions(open_page):
    person = open_page(viewport=TELEPHONE)
    line = person.page.locator("#attention-what-ifs .fold")
    expect(line).to_have_text("Change")
    line.click()
    person.page.locator("#attention-what-ifs input[type=checkbox]").first.check()
    expect(line).to_have_text("Changes: 1")
    box = person.page.locator("#attention-what-ifs .what-ifs").bounding_box()
    assert box["height"] < 450  # the figure below stays close


def test_phone_reaches_every_control_with_one_click(open_page):
    page = open_page(viewport=TELEPHONE).page
    behind = ["#model-facts", "#page-menu", "#copy", "#strip label:not(.beginning)"]
    for selector in behind:
        expect(page.locator(selector)).to_be_hidden()
    page.locator("#more-of-header button").click()
    for selector in behind:
        expect(page.locator(selector)).to_be_visible()
    page.locator("#model-facts summary").click()
    expect(page.locator("#facts")).to_be_in_viewport(ratio=1)
    page.locator("#facts").click(trial=True)  # fails if another element covers it


FITS_WITH_16_LETTERS = """(next) => {
  next.lastChild.textContent = "extraterrestrial";
  return next.scrollWidth <= next.clientWidth;
}"""


def test_phone_bar_shows_next_draw_like_table(open_page):
    page = open_page(viewport=TELEPHONE, seed=3).wait_until_idle().page
    row = page.locator("#next-token tbody tr", has=page.locator(".tag", has_text="Step picks"))
    expect(page.locator("#brief .probability")).to_have_text(row.locator(".number").get_attribute("data-percent"))
    expect(page.locator("#brief .next")).to_have_text(f"Step picks: {row.locator('.text').text_content()}")
    assert page.locator("#brief .next").evaluate(FITS_WITH_16_LETTERS)


@pytest.mark.exhaustive
def test_wide_screen_shows_selection_lists(person):
    expect(person.chooser("layer")).to_be_visible()
    expect(person.page.locator("#attention-choosers .fold")).to_be_hidden()


def open_attention_folded(person: Person, **query) -> Person:
    """Open the attention view as a first-time user sees it, with nothing unfolded."""
    person.page.goto(f"{person.address}?{'&'.join(f'{name}={value}' for name, value in query.items())}")
    person.wait_until("page.state.view === 'attention'")
    return person.wait_until_idle()


def test_folded_figure_is_computed_once_unfolded(open_new_page):
    person, name = open_new_page(), "attention-row"
    with person.page.expect_response(ANSWER) as response:
        open_attention_folded(person, view="attention")
    lines = [json.loads(line).get("contents", {}) for line in response.value.text().splitlines()]
    assert [contents[name] for contents in lines if name in contents] == [{"folded": True}]
    assert not [contents for contents in lines if f"{name}-mark" in contents]
    assert [contents for contents in lines if "attention-pattern-mark" in contents]
    figure, others = person.page.locator(f"#{name}"), person.page.locator(f".panels > .folded:not(#{name})")
    num_others = others.count()
    assert num_others >= 3
    sizes = others.evaluate_all("(blocks) => blocks.map((block) => [block.offsetWidth, block.offsetHeight])")
    assert len({tuple(size) for size in sizes}) == 1 and sizes[0][1] < 40  # a grid of single lines
    person.page.set_viewport_size(PROJECTOR)
    heads, pattern = (person.page.locator(f"#attention-{part}").bounding_box() for part in ("heads", "pattern"))
    assert heads["y"] == pattern["y"] and heads["x"] + heads["width"] < pattern["x"]
    expect(person.pattern).to_be_in_viewport(ratio=1)
    assert person.page.locator("#title").evaluate("(title) => title.scrollWidth <= title.clientWidth")
    expect(person.page.locator("#search .words")).to_be_in_viewport(ratio=1)
    person.page.set_viewport_size(DESK)
    title = figure.locator(".unfold")
    expect(title).to_have_attribute("aria-expanded", "false")
    expect(figure.locator(".plot")).to_be_hidden()
    with collect_posts(person) as posts:
        title.press("Enter")
        expect(figure.locator(".main-svg").first).to_be_visible()
        expect(figure.locator(".evidence-mark")).to_contain_text("recomputed")
    assert posts == ["/explorer/answer"]
    person.expect_selected(unfolded=name)
    expect(title).to_be_focused()
    expect(figure.locator(".plot")).to_be_in_viewport(ratio=0.95)  # though it opens below the other titles
    expect(others).to_have_count(num_others)
    person.page.reload()
    expect(figure.locator(".main-svg").first).to_be_visible()
    expect(others).to_have_count(num_others)
    title.click()
    expect(figure.locator(".plot")).to_be_hidden()
    expect(title).to_have_attribute("aria-expanded", "false")
    person.expect_selected(unfolded="")


@pytest.mark.exhaustive
def test_each_switch_is_remembered(open_new_page):
    person = open_attention_folded(open_new_page(), view="attention")
    switches = {"stages": "#next-token th.scaled", "more": "#top_p"}

    def expect_open(**is_open: bool):
        for switch, part in switches.items():
            button = person.page.locator(f"[data-shows={switch}]")
            expect(button).to_have_attribute("aria-expanded", str(is_open[switch]).lower())
            expect(person.page.locator(part)).to_be_visible(visible=is_open[switch])

    expect_open(stages=False, more=False)
    for pressed, is_open in (
        (["stages"], {"stages": True, "more": False}),
        (["stages", "more"], {"stages": False, "more": True}),
        (["more"], {"stages": False, "more": False}),
    ):
        for switch in pressed:
            person.page.locator(f"[data-shows={switch}]").click()
        expect_open(**is_open)
        if any(is_open.values()):
            person.page.reload()
            person.wait_until_idle()
            expect_open(**is_open)


@pytest.mark.parametrize("size", [DESK, LAPTOP])
def test_wheel_and_tab_key_reach_whole_side_panel(open_page, size):
    person = open_page(viewport=size, depth="formula", top_p=0.8, min_p=0.02, repetition_penalty=1.2).wait_until_idle()
    page, first, last = person.page, person.page.locator("#next-token thead"), person.page.get_by_label("stop text")
    cut, gap = page.evaluate(TABLE_ROOM)
    assert cut == 0 and gap >= 0
    expect(page.locator("#next-token .token .tag", has_text="Step picks")).to_be_visible()
    first.hover()
    for end in (last, first):  # down to its end, and back to its top
        for _ in range(12):
            page.mouse.wheel(0, 240 if end is last else -240)
            page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        expect(end).to_be_in_viewport(ratio=1)
        assert page.locator("#generation").evaluate("(panel) => panel.scrollTop") == 0  # only the page scrolls
    page.get_by_label("number input for temperature").focus()
    for _ in range(60):
        page.keyboard.press("Tab")
        expect(page.locator(":focus")).to_be_in_viewport()
        if last.evaluate("(box) => box === document.activeElement"):
            return
    raise AssertionError("Tab does not reach the panel's last box")


def test_figure_does_not_scroll_inside_itself(open_page):
    person = open_page("residual").wait_until_idle()
    figure = person.page.locator("#residual-lengths > .html-container")
    assert figure.evaluate("(box) => { box.scrollTop = 99; return getComputedStyle(box).overflowY; }") == "hidden"


def test_phone_reaches_sampling_sliders_without_scrolling(open_new_page):
    person = open_attention_folded(open_new_page(viewport=TELEPHONE), view="attention")
    page, temperature, step = person.page, person.slider("temperature"), person.page.locator("#step")
    expect(temperature).to_be_hidden()
    page.get_by_role("button", name="Chances, settings").click()
    for control in (
        temperature,
        person.page.get_by_label("number input for temperature"),
        person.slider("top-k"),
        step,
    ):
        expect(control).to_be_in_viewport(ratio=1)
        control.click(trial=True)  # fails if another element covers it
    assert page.evaluate("scrollY") == 0
    likeliest = page.locator("#likeliest li")
    expect(likeliest).to_have_count(3)
    expect(likeliest.first).to_be_in_viewport(ratio=1)  # above the sliders that move it
    expect(page.locator("#likeliest .tick")).to_have_text("model’s own")  # what the marks on the bars are
    expect(likeliest.first.locator(".percent")).not_to_have_text("100%")
    person.set("temperature", 0)
    person.expect_selected(temperature=0)
    expect(likeliest.first.locator(".percent")).to_have_text("100%")
    expect(page.locator("#brief .next")).to_be_in_viewport(ratio=1)  # the sliders change it
    page.get_by_role("button", name="Chances, settings").click()
    expect(temperature).to_be_hidden()


def test_selection_lists_that_do_not_fit_unfold(open_page):
    person = open_page()
    page = person.page
    lists = page.locator("#attention-choosers label:visible")
    expect(lists).to_have_count(2)
    expect(page.locator("#attention-choosers .rest")).to_have_attribute("title", re.compile("^more lists: .*query"))
    page.locator("#attention-choosers .rest").click()
    expect(lists).to_have_count(len(VIEW_BY_NAME["attention"].select_controls) - 1)  # one is in its figure's line
    person.tab("Prediction")
    lists, rival = (
        page.locator("#prediction-choosers label:visible"),
        page.locator("#prediction-choosers [data-field=rival]"),
    )
    expect(lists).to_have_count(len(VIEW_BY_NAME["prediction"].select_controls) - 2)
    more = page.locator("#prediction-choosers .rest")
    expect(more).to_have_attribute("title", "more lists: query, against")
    more.click()
    rival.select_option("2")
    more.click()
    expect(rival).to_be_visible()  # in use
    expect(more).to_have_attribute("title", "more lists: query")
    page.set_viewport_size({"width": 940, "height": 800})
    expect(lists).to_have_count(3)
    person.tab("Feed-forward")  # has more lists
    expect(page.locator("#feed_forward-choosers .rest")).to_be_visible()
    expect(page.locator("#feed_forward-choosers [data-field=rival]")).to_be_visible()  # can be undone


def test_unfold_title_stays_until_figure_is_drawn(open_page):
    person = open_page("attention", unfolded="")
    block = person.wait_until_idle().page.locator("#attention-lines")
    expect(block.locator(".unfold")).to_be_visible()
    give = "window.modules.widget_contents.setContent('attention-lines', {})"
    person.page.evaluate("; ".join(give.format(content) for content in ("null", "{ folded: true }")))
    person.page.evaluate("window.explorer.settled()")
    expect(block.locator(".unfold")).to_be_visible()


@pytest.mark.exhaustive
def test_figure_of_first_row_stands_beside_the_other_after_undo(open_page):
    person = open_page("experiments", unfolded="", text="Once upon a time", edits="blocks.1.attn.z.1*zero")
    heads, sublayers = (person.page.locator(f"#experiments-{name}") for name in ("heads", "sublayers"))
    expect(sublayers.locator(".unfold")).to_be_visible()
    person.page.locator("#changes button").first.click()
    expect(sublayers.locator(".main-svg").first).to_be_visible()
    expect(sublayers.locator(".unfold")).to_have_count(0)
    boxes = [figure.bounding_box() for figure in (heads, sublayers)]
    assert boxes[0]["y"] == boxes[1]["y"] and boxes[0]["width"] == pytest.approx(boxes[1]["width"], abs=2)
