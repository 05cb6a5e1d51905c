"""Presentation of figures, and slides."""

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from .legibility import BEAMER, assert_accessible, assert_legible, wait_until_idle
from .person import collect_posts

COPIED_LINK = """() => new Promise((resolve) => {
  const clipboard = { writeText: async (text) => resolve(text) };
  Object.defineProperty(navigator, "clipboard", { value: clipboard, configurable: true });
  document.querySelector("#present .link").click();
})"""
ENLARGED_CELL = """(plot, [x, y]) => {
  const { xaxis, yaxis } = plot._fullLayout, box = plot.getBoundingClientRect(), scale = box.width / plot.offsetWidth;
  return [box.left + scale * (xaxis._offset + xaxis.c2p(x)), box.top + scale * (yaxis._offset + yaxis.c2p(y))];
}"""
# Whether a figure is on paper: its image, or a copy with an image or SVG for each canvas, as wide as the paper.
DRAWN_ON_PAPER = """(figures) => figures.map((figure) => {
  const copy = figure.querySelector("div")?.shadowRoot, paper = figure.closest(".paper").getBoundingClientRect();
  const images = [...(copy ?? figure).querySelectorAll("img")], box = figure.lastElementChild.getBoundingClientRect();
  return images.length > 0 && images.every(({ naturalWidth }) => naturalWidth > 0) && box.height > 100
    && box.right <= paper.right && !(copy ?? figure).querySelector("canvas");
})"""
TELEPHONE = {"width": 390, "height": 844}
HOSTILE = "<img src=x onerror=alert(1)>${1+1}"
# Numbers of the presented heatmap that overlap the next number.
OVERLAPPING_NUMBERS = """() => {
  const labels = [...document.querySelectorAll(".presented .heatmap-label text")];
  const boxes = labels.map((label) => label.getBoundingClientRect());
  const reaches = (one, other) => Math.abs(other.top - one.top) < 4 && other.left > one.left && other.left < one.right;
  return labels.filter((_label, i) => boxes.some((other) => reaches(boxes[i], other)))
    .map(({ textContent }) => textContent);
}"""


# Height of the screen that the presented grid leaves empty.
UNUSED_HEIGHT = """() => {
  const bottom = document.querySelector(".presented .grid").lastElementChild.getBoundingClientRect().bottom;
  return document.querySelector("#stage nav").getBoundingClientRect().top - bottom;
}"""


def open_slides(page: Page):
    page.locator("#lessons .open").click()
    page.locator("#to-slides").click()


def find_presented_panel(page: Page) -> Locator:
    return page.locator(".presented")


@pytest.mark.exhaustive
def test_figure_fills_screen_until_escape(open_page):
    person = open_page(viewport=BEAMER)
    page = person.page
    page.locator("#attention-row h2").click()
    person.prompt.focus()
    page.keyboard.press("p")  # typed into the prompt, so it presents nothing
    expect(find_presented_panel(page)).to_have_count(0)
    person.prompt.blur()
    page.keyboard.press("p")
    expect(find_presented_panel(page)).to_have_id("attention-row")
    heading, at = page.locator("#stage h2"), page.locator("#stage .at")
    expect(heading).to_have_text(page.locator("#attention-row h2").inner_text())
    assert "the weights of" in heading.inner_text()
    assert_accessible(page, "#stage")
    expect(page.locator("#views [role=tab]").first).to_be_hidden()
    assert_legible(page)
    page.keyboard.press("ArrowRight")
    expect(find_presented_panel(page)).to_have_id("attention-stages")
    assert_legible(page)
    assert page.evaluate(OVERLAPPING_NUMBERS) == []
    assert "0.00" not in find_presented_panel(page).locator(".heatmap-label text").all_inner_texts()  # but ≈0
    for name in ("attention-row", "attention-pattern"):
        page.keyboard.press("ArrowLeft")
        expect(find_presented_panel(page)).to_have_id(name)
    expect(at).to_have_text(re.compile(r"^2 / \d"))
    assert_legible(page)
    page.mouse.click(*page.locator("#attention-pattern .plot").evaluate(ENLARGED_CELL, [0, 2]))
    person.expect_selected(query=2, key=0)
    page.keyboard.press("PageUp")  # the key of a presenter's remote
    expect(find_presented_panel(page)).to_have_id("attention-heads")
    assert_legible(page)
    stage, grid = find_presented_panel(page).bounding_box(), person.grid.locator(".head").last.bounding_box()
    assert stage["height"] * 0.95 < grid["y"] + grid["height"] - stage["y"] <= stage["height"]
    page.mouse.move(300, 300)
    expect(page.locator("#stage .pointer")).to_be_visible()
    page.keyboard.press("b")
    expect(page.locator("#stage .blackout")).to_be_visible()
    page.keyboard.press("ArrowRight")  # ends the blackout and does nothing else
    expect(page.locator("#stage .blackout")).to_be_hidden()
    expect(find_presented_panel(page)).to_have_id("attention-heads")
    page.keyboard.press("Escape")
    expect(find_presented_panel(page)).to_have_count(0)
    expect(page.locator("#views [role=tab]").first).to_be_visible()


@pytest.mark.exhaustive
def test_arrow_keys_change_slides_after_click_on_whole_model(open_page):
    person = open_page("overview", viewport=BEAMER)
    page = person.page
    page.keyboard.press("p")
    expect(find_presented_panel(page)).to_have_id("overview-whole")
    assert_legible(page)
    drawing, bar = page.locator(".presented .drawing svg").bounding_box(), page.locator("#stage nav").bounding_box()
    assert 0 <= bar["y"] - drawing["y"] - drawing["height"] < 40
    arrow, answer = (
        page.locator(f".presented .drawing {part}").last.bounding_box() for part in (".spine", ".answer:not(.share)")
    )
    assert 0 < answer["x"] - arrow["x"] - arrow["width"] < 24
    assert abs(answer["y"] + answer["height"] / 2 - arrow["y"] - arrow["height"] / 2) < 8
    page.locator(".presented .head").first.click()
    expect(page.locator(".presented .crumb")).to_have_count(4)
    page.keyboard.press("ArrowRight")
    expect(find_presented_panel(page)).to_have_id("overview-map")
    page.keyboard.press("PageUp")
    expect(find_presented_panel(page)).to_have_id("overview-whole")
    page.locator("#stage h2").focus()
    while not page.evaluate("Boolean(document.activeElement.closest('.presented'))"):
        page.keyboard.press("Shift+Tab")
    expect(page.locator("#stage .keys")).to_have_text("Page ↓: next slide")  # the arrow keys move within the figure
    page.keyboard.press("ArrowRight")
    expect(find_presented_panel(page)).to_have_id("overview-whole")
    expect(page.locator("#stage .back")).to_be_disabled()
    page.mouse.move(500, 300)
    expect(page.locator("#stage .pointer")).to_be_visible()
    chosen = person.state["layer"], person.state["head"], person.state["key"]
    page.keyboard.press("End")
    expect(find_presented_panel(page)).to_have_id("overview-sum")
    expect(page.locator("#stage .pointer")).to_be_hidden()  # it belonged to the previous figure
    expect(page.locator("#stage .next")).to_be_disabled()
    page.keyboard.press("Home")
    expect(find_presented_panel(page)).to_have_id("overview-whole")
    assert (person.state["layer"], person.state["head"], person.state["key"]) == chosen
    page.keyboard.press("Escape")


@pytest.mark.exhaustive
def test_folded_figure_is_computed_once_presented(open_page):
    person = open_page(unfolded="")
    page = person.page
    page.locator("#strip .chip").nth(1).click()  # the row of tokens is no slide
    page.locator("#header summary", has_text="Share").click()
    expect(page.locator("#save-png")).to_have_text("Save “Layer 1 head 0: who looks at whom” as PNG")
    page.keyboard.press("Escape")
    page.keyboard.press("p")
    expect(find_presented_panel(page)).to_have_id("attention-pattern")  # the one most in sight
    page.keyboard.press("ArrowLeft")
    expect(find_presented_panel(page)).to_have_id("attention-heads")
    expect(page.locator("#stage .at")).to_have_text(re.compile(r"^1 / \d"))
    wait_until_idle(page)
    assert page.evaluate(UNUSED_HEIGHT) < 40
    page.keyboard.press("ArrowRight")
    expect(find_presented_panel(page)).to_have_id("attention-pattern")
    with collect_posts(person) as posts:
        page.keyboard.press("ArrowRight")
        expect(page.locator("#attention-row.presented .main-svg").first).to_be_visible()
    assert len(posts) == 1
    page.keyboard.press("Escape")
    expect(page.locator("#attention-row .unfold")).to_have_attribute("aria-expanded", "false")
    expect(page.locator("#attention-row .plot")).to_be_hidden()
    assert not person.state["unfolded"]


@pytest.mark.exhaustive
def test_bracket_keys_change_head_and_title(open_page):
    person = open_page(layer="0", head="1", viewport=BEAMER)
    page = person.page
    page.locator("#attention-row h2").click()
    page.keyboard.press("p")
    title, chosen = page.locator("#stage h2"), page.locator("#stage .chosen")
    expect(title).to_contain_text("Layer 0 head 1: ")
    page.keyboard.press("]")  # the first head of the next layer follows the last head
    expect(title).to_contain_text("Layer 1 head 0: ")
    expect(chosen).to_have_text("chosen: layer 1, head 0")
    page.get_by_role("button", name="[ head").click()
    expect(title).to_contain_text("Layer 0 head 1: ")
    page.keyboard.press("Home")
    expect(find_presented_panel(page)).to_have_id("attention-heads")
    expect(chosen).to_have_text("chosen: layer 0, head 1")
    assert_legible(page)
    page.keyboard.press("Escape")


def test_slides_of_two_runs_name_both_prompts(open_page):
    person = open_page(view="prediction", shown="difference", **{"b.text": "One day"})
    page = person.page
    page.keyboard.press("p")
    expect(page.locator("#stage h2")).to_contain_text("Difference A − B: ")
    expect(page.locator("#stage .text")).to_have_text(f"A: {person.prompt.input_value()}\nB: One day")
    assert page.locator("#stage h2").evaluate("(title) => title.offsetHeight") < 40
    page.keyboard.press("Escape")


@pytest.mark.exhaustive
def test_slides_name_changes_of_runs_shown(open_page):
    """Also on the slide of a head that is not changed."""
    off, other = "blocks.1.attn.z.1*zero", "blocks.0.attn.z.1*zero"
    both = {"b.text": "One day", "b.edits": other}
    for words, state in (
        ("chosen: layer 1, head 0 · layer 1 head 1: off; layer 0 head 1: off", {"edits": f"{off}~{other}"}),
        ("chosen: layer 1, head 0 · A: layer 1 head 1: off · B: layer 0 head 1: off", {"edits": off, **both}),
    ):
        page = open_page(layer="1", head="0", viewport=BEAMER, **state).page
        page.locator("#attention-pattern h2").click()
        page.keyboard.press("p")
        expect(page.locator("#stage .chosen")).to_have_text(words)
        assert_legible(page)
        page.keyboard.press("Escape")


def test_button_texts_fit_phone(open_page):
    page = open_page(viewport=TELEPHONE).page
    page.keyboard.press("p")
    buttons = page.locator("#stage nav button:visible")
    expect(buttons).to_have_text(["←", "→", "Black (B)", "Leave (Esc)"])
    assert buttons.evaluate_all(
        "(all) => all.every((button) => button.scrollWidth <= button.clientWidth"
        " && button.getBoundingClientRect().right <= innerWidth)"
    )
    page.keyboard.press("Escape")
    expect(find_presented_panel(page)).to_have_count(0)


@pytest.mark.exhaustive
def test_slides_are_saved_reordered_presented_printed_and_shared(open_new_page):
    person = open_new_page(viewport=BEAMER).open()
    page = person.page
    menu = page.locator("#present .list")

    def save(caption: str, notes: str = ""):
        open_slides(page)
        menu.get_by_role("button", name="Save this view as a slide").click()
        menu.locator(".caption").last.fill(caption)
        menu.locator(".notes").last.fill(notes)
        page.keyboard.press("Tab")
        page.keyboard.press("Escape")
        expect(menu).to_be_hidden()

    first = person.prompt.input_value()
    save(HOSTILE)
    person.run("the fox asked the owl")
    person.visit("residual", "Residual stream")
    page.locator("#residual-lengths h2").click()
    title = page.locator("#residual-lengths h2").inner_text()
    open_slides(page)
    expect(menu.locator(".view")).to_have_text(f"Residual stream: {title}")
    menu.locator(".save").click()
    expect(menu.locator(".caption").last).to_have_value(f"Residual stream: {title}")
    expect(menu.locator(".told")).to_have_text("Saved as slide 2.")
    menu.get_by_role("button", name="delete slide 2").click()
    page.keyboard.press("Escape")
    save("How it grows", "say why")
    open_slides(page)
    menu.get_by_role("button", name="move slide 2 up").click()
    expect(menu.locator(".caption").first).to_have_value("How it grows")
    expect(menu.get_by_role("button", name="move slide 1 down")).to_be_focused()
    page.keyboard.press("Escape")
    save("A third")
    open_slides(page)
    up = menu.get_by_role("button", name="move slide 3 up")
    before = up.bounding_box()
    up.dblclick()  # the second click already hits another slide's button
    expect(menu.locator(".told")).to_have_text("Now slide 1.")
    assert up.bounding_box() == before
    captions = [caption.input_value() for caption in menu.locator(".caption").all()]
    assert captions == ["A third", "How it grows", HOSTILE]
    menu.get_by_role("button", name="delete slide 1").click()
    assert_accessible(page, "#present")
    link = page.evaluate(COPIED_LINK)
    menu.get_by_role("button", name="Print the slides").click()
    sheet = page.locator("#sheet")
    expect(sheet).to_have_attribute("data-ready", "true")
    expect(sheet.locator(".step > h2")).to_have_text(["1. How it grows", f"2. {HOSTILE}"])
    expect(sheet.locator("figure")).to_have_count(2)
    assert sheet.locator("figure").evaluate_all(DRAWN_ON_PAPER) == [True, True]
    images = sheet.locator("figure img.plot").evaluate_all("(all) => all.map((image) => decodeURIComponent(image.src))")
    assert images and not any("the fox asked the owl" in image.replace("\xa0", " ") for image in images)  # it is above
    sheet.get_by_role("button", name="Close").click()
    open_slides(page)
    menu.get_by_role("button", name="present from slide 2").click()
    expect(page.locator("#stage h2")).to_have_text(HOSTILE)
    page.keyboard.press("Escape")
    page.reload()
    person.open("tokens")
    page.keyboard.press("p")
    heading = page.locator("#stage h2")
    expect(heading).to_have_text("How it grows")
    expect(find_presented_panel(page)).to_have_id("residual-lengths")
    expect(page.locator("#stage .text")).to_have_text("the fox asked the owl")
    assert_legible(page)
    with page.context.expect_page() as opened:
        page.keyboard.press("n")
    notes = opened.value
    expect(notes.locator(".notes")).to_have_text("say why")
    expect(notes.locator(".next")).to_contain_text(HOSTILE)
    notes.keyboard.press("ArrowRight")  # the notes window has the same keys
    expect(heading).to_have_text(HOSTILE)
    expect(find_presented_panel(page)).to_have_id(re.compile("^attention-"))
    expect(page.locator("#stage .text")).to_have_text(first)
    expect(notes.locator("h1")).to_have_text(HOSTILE)
    page.keyboard.press("Escape")
    expect(find_presented_panel(page)).to_have_count(0)

    other = open_new_page()  # in another user's browser the link restores the slides
    other.page.goto("about:blank")
    person.page.evaluate("localStorage.clear()")
    other.page.goto(link)
    other_list = other.page.locator("#present .list")
    expect(other_list.locator(".caption").nth(1)).to_have_value(HOSTILE)
    expect(other_list.locator("img")).to_have_count(0)
    other_list.get_by_role("button", name="delete slide 2").click()
    expect(other_list.locator(".caption")).to_have_count(1)


def test_menu_tells_what_it_presents_and_stays_within_window(open_page):
    page = open_page("residual").page
    open_slides(page)
    menu = page.locator("#present .list")
    expect(menu.locator(".what")).to_have_text("the figures of this view, from the one in sight")
    page.set_viewport_size(BEAMER)
    page.wait_for_function("document.querySelector('#present .list').getBoundingClientRect().right <= innerWidth")
    page.keyboard.press("Escape")
    expect(menu).to_be_hidden()
    expect(page.locator("#lessons .open")).to_be_focused()  # the list that led there
    page.locator("[data-mode=story]").click()
    open_slides(page)
    expect(menu.locator(".what")).to_have_text("the steps of the story, from this one")
    page.keyboard.press("Escape")


@pytest.mark.exhaustive
def test_slide_with_missing_model_shows_problem(person):
    saved_views = '[{"words": "checkpoint=gone&view=attention&text=x", "caption": "lost"}]'
    person.page.evaluate("(kept) => localStorage.setItem('explorer:places', kept)", saved_views)
    before = person.state["checkpoint"]
    person.page.keyboard.press("p")
    expect(person.page.locator("#stage .problem")).to_contain_text("it asks for gone")
    expect(find_presented_panel(person.page)).to_have_count(0)
    person.page.keyboard.press("Escape")
    assert person.state["checkpoint"] == before
