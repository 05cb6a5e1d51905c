"""A teacher presents: a picture, places that were saved, a lesson; and goes through a computation bit by bit."""

import re

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Locator, Page, expect

from explorer.analysis.attention import stages
from explorer.analysis.lens import readings
from explorer.analysis.residual import residual_norms
from explorer.analysis.rope import rotated_pairs
from explorer.explain.notation import number, visible
from explorer.state.selection import Selection
from explorer.tracing.library import Library
from explorer.tracing.runs import Runs
from explorer.web.events.opening import Opening

from .legible import BEAMER, legible

COPIED = """() => new Promise((resolve) => {
  const clipboard = { writeText: async (text) => resolve(text) };
  Object.defineProperty(navigator, "clipboard", { value: clipboard, configurable: true });
  document.querySelector("#present .link").click();
})"""
ENLARGED_CELL = """(plot, [x, y]) => {
  const { xaxis, yaxis } = plot._fullLayout, box = plot.getBoundingClientRect(), scale = box.width / plot.offsetWidth;
  return [box.left + scale * (xaxis._offset + xaxis.c2p(x)), box.top + scale * (yaxis._offset + yaxis.c2p(y))];
}"""
TELEPHONE = {"width": 390, "height": 844}
HOSTILE = "<img src=x onerror=alert(1)>${1+1}"


def presented(page: Page) -> Locator:
    return page.locator(".presented")


def nothing_wrong(page: Page, place: str):
    """Axe finds nothing there that people who see otherwise, or use no mouse, stumble over."""
    found = Axe().run(page, [[place]]).response["violations"]
    assert not [(violation["id"], violation["nodes"][0]["html"]) for violation in found]


def test_a_picture_fills_the_screen_until_it_is_left(newcomer):
    person = newcomer(viewport=BEAMER).open()
    page = person.page
    page.locator("#attention-row h2").click()
    person.prompt.focus()
    page.keyboard.press("p")  # is written, and presents nothing
    expect(presented(page)).to_have_count(0)
    person.prompt.blur()
    page.keyboard.press("p")
    expect(presented(page)).to_have_id("attention-row")
    heading, at = page.locator("#stage h2"), page.locator("#stage .at")
    expect(heading).to_have_text("The chosen query’s weights")
    nothing_wrong(page, "#stage")
    expect(page.locator("#views [role=tab]").first).to_be_hidden()
    legible(page)
    page.keyboard.press("ArrowLeft")
    expect(presented(page)).to_have_id("attention-pattern")
    expect(at).to_have_text(re.compile(r"^2 / \d"))
    legible(page)
    page.mouse.click(*page.locator("#attention-pattern .plot").evaluate(ENLARGED_CELL, [0, 2]))
    person.expect_selected(query=2, key=0)
    page.keyboard.press("PageUp")  # as a presenter's remote does
    expect(presented(page)).to_have_id("attention-heads")
    legible(page)
    page.mouse.move(300, 300)
    expect(page.locator("#stage .pointer")).to_be_visible()
    page.keyboard.press("b")
    expect(page.locator("#stage .blackout")).to_be_visible()
    page.keyboard.press("ArrowRight")  # the screen comes back, and nothing else happens behind it
    expect(page.locator("#stage .blackout")).to_be_hidden()
    expect(presented(page)).to_have_id("attention-heads")
    page.keyboard.press("Escape")
    expect(presented(page)).to_have_count(0)
    expect(page.locator("#views [role=tab]").first).to_be_visible()


def test_a_telephone_has_room_for_the_words_of_its_buttons(newcomer):
    page = newcomer(viewport=TELEPHONE).open().page
    page.keyboard.press("p")
    buttons = page.locator("#stage nav button:visible")
    expect(buttons).to_have_text(["←", "→", "Black (B)", "Leave (Esc)"])
    assert buttons.evaluate_all(
        "(all) => all.every((button) => button.scrollWidth <= button.clientWidth"
        " && button.getBoundingClientRect().right <= innerWidth)"
    )


def test_places_are_saved_put_in_order_presented_and_passed_on(newcomer):
    person = newcomer(viewport=BEAMER).open()
    page = person.page
    menu = page.locator("#present .list")

    def save(caption: str, notes: str = ""):
        page.get_by_role("button", name="Present", exact=True).click()
        menu.get_by_role("button", name="Save this place").click()
        menu.locator(".caption").last.fill(caption)
        menu.locator(".notes").last.fill(notes)
        page.keyboard.press("Tab")
        page.keyboard.press("Escape")
        expect(menu).to_be_hidden()

    save(HOSTILE)
    person.visit("residual", "Residual stream")
    page.locator("#residual-lengths h2").click()
    save("How it grows", "say why")
    page.get_by_role("button", name="Present", exact=True).click()
    menu.get_by_role("button", name="move place 2 up").click()
    expect(menu.locator(".caption").first).to_have_value("How it grows")
    expect(menu.get_by_role("button", name="move place 1 down")).to_be_focused()
    nothing_wrong(page, "#present")
    link = page.evaluate(COPIED)
    page.keyboard.press("Escape")
    page.reload()
    person.open("tokens")
    page.keyboard.press("p")
    heading = page.locator("#stage h2")
    expect(heading).to_have_text("How it grows")
    expect(presented(page)).to_have_id("residual-lengths")
    legible(page)
    with page.context.expect_page() as opened:
        page.keyboard.press("n")
    notes = opened.value
    expect(notes.locator(".notes")).to_have_text("say why")
    expect(notes.locator(".next")).to_contain_text(HOSTILE)
    notes.keyboard.press("ArrowRight")  # the second window has the same keys
    expect(heading).to_have_text(HOSTILE)
    expect(presented(page)).to_have_id(re.compile("^attention-"))
    expect(notes.locator("h1")).to_have_text(HOSTILE)
    page.keyboard.press("Escape")
    expect(presented(page)).to_have_count(0)

    other = newcomer()  # in another's browser the link brings them along
    other.page.goto("about:blank")
    person.page.evaluate("localStorage.clear()")
    other.page.goto(link)
    theirs = other.page.locator("#present .list")
    expect(theirs.locator(".caption").nth(1)).to_have_value(HOSTILE)
    expect(theirs.locator("img")).to_have_count(0)
    theirs.get_by_role("button", name="remove place 2").click()
    expect(theirs.locator(".caption")).to_have_count(1)


def test_a_place_whose_model_is_not_here_is_said(newcomer):
    person = newcomer().open()
    kept = '[{"words": "checkpoint=gone&view=attention&text=x", "caption": "lost"}]'
    person.page.evaluate("(kept) => localStorage.setItem('explorer:places', kept)", kept)
    before = person.state["checkpoint"]
    person.page.keyboard.press("p")
    expect(person.page.locator("#stage .problem")).to_contain_text("it asks for gone")
    expect(presented(person.page)).to_have_count(0)
    person.page.keyboard.press("Escape")
    assert person.state["checkpoint"] == before


@pytest.fixture(scope="module")
def trace_of():
    """The run that an address names, worked out here."""
    opening = Opening(Runs(Library("cpu")))

    def trace(**query):
        asked = opening.restored({"checkpoint": "tiny", **query})
        lm, found = opening.runs.held(asked.run)
        return lm, found, asked.selection

    return trace


def test_a_computation_is_gone_through_with_the_numbers_of_the_run(newcomer, checkpoints, trace_of):
    place = {"text": "the cat sat on the mat", "layer": 1, "head": 1, "query": 3, "key": 1}
    _lm, trace, s = trace_of(**place)
    s = Selection(layer=1, head=1, query=3, key=1).within(trace)
    person = newcomer(viewport=BEAMER, reduced_motion="reduce").open("attention", **place)
    page, drawing = person.page, person.page.locator("#walk .drawing")

    def begin(view: str):
        page.locator(f"#{view}-walk").get_by_role("button").click()
        expect(page.locator("#walk .walk")).to_be_visible()

    def fits_a_telephone():
        page.set_viewport_size(TELEPHONE)
        assert drawing.evaluate("({ scrollWidth, clientWidth }) => scrollWidth - clientWidth") <= 0
        page.set_viewport_size(BEAMER)

    begin("attention")
    word = page.locator("#walk .says .term").first
    expect(word).to_have_text("query")
    page.keyboard.press("Shift+Tab")  # round among its words and buttons
    expect(page.locator("#walk .says .term").last).to_be_focused()
    word.focus()
    expect(page.locator("#definition")).to_contain_text("the token that looks")
    page.locator("#walk .next").focus()
    steps = stages(trace, s.layer, s.head, s.query)
    shown = [0, 1, 2, 3, *([4] if len(trace) > 4 else [])]
    masked = [number(value) if ok else "−∞" for value, ok in zip(steps.capped, steps.allowed, strict=True)]
    columns = [[number(value) for value in steps.dots], [number(value) for value in steps.scores], masked]
    columns.append([number(value) for value in steps.weights])
    for count in range(1, 5):
        expect(drawing.locator("tbody tr")).to_have_count(len(shown))
        for row, key in enumerate(shown):
            cells = drawing.locator("tbody tr").nth(row)
            expect(cells.locator("th")).to_have_text(visible(trace.tokens[key]))
            expect(cells.locator("td")).to_have_text([column[key] for column in columns[:count]])
        legible(page)
        fits_a_telephone()
        page.keyboard.press(" ")
    fetched = trace[f"blocks.{s.layer}.attn.z"][s.head, s.query]
    expect(drawing.locator(".first.is-sum")).to_have_text(f"{number(fetched[0])} …")
    fits_a_telephone()
    page.keyboard.press("Escape")
    expect(page.locator("#walk .walk")).to_be_hidden()
    expect(page.locator("#attention-walk button")).to_be_focused()

    person.visit("positions", "Positions")
    begin("positions")
    page.keyboard.press(" ")
    after = rotated_pairs(trace, "q", s.layer, s.head, s.query)
    drawn = drawing.locator(".pair").first.inner_text()
    assert drawn in {f"({number(a)}, {number(b)})" for a, b in after.after}
    tip = drawing.locator(".tip")
    x, y = float(tip.get_attribute("cx")), -float(tip.get_attribute("cy"))
    a, b = next(pair for pair in after.after if f"({number(pair[0])}, {number(pair[1])})" == drawn)
    assert abs(x * b - y * a) < 1e-3 * abs(x * a + y * b) and x * a + y * b > 0  # the same way
    fits_a_telephone()
    page.keyboard.press("Escape")

    person.visit("residual", "Residual stream")
    begin("residual")
    nothing_wrong(page, "#walk")
    fits_a_telephone()
    norms, guesses = residual_norms(trace), readings(trace, range(s.query, s.query + 1))
    for stop in range(len(norms.stages)):
        newest = drawing.locator(".floor").last
        expect(newest.locator(".number")).to_have_text(number(norms.stream[stop, s.query]))
        likeliest = drawing.locator(".guess").first
        expect(likeliest.locator(".label")).to_have_text(visible(trace.vocabulary[guesses.top[stop, 0, 0]]))
        expect(likeliest.locator(".number")).to_have_text(number(guesses.probabilities[stop, 0, 0]))
        page.keyboard.press(" ")
    legible(page)


def test_motion_comes_bit_by_bit_and_space_ends_it(newcomer):
    person = newcomer().open("attention", text="the cat sat on the mat", query=4)
    page, drawing = person.page, person.page.locator("#walk .drawing")
    page.locator("#attention-walk").get_by_role("button").click()
    expect(drawing).to_have_attribute("data-frame", re.compile(r"0\.[1-3]"))  # by itself
    page.keyboard.press(" ")
    last = drawing.get_attribute("data-frame")
    rows = drawing.locator("tbody tr").count()
    assert last.startswith("0.") and int(last[2:]) == rows - 1
    page.wait_for_timeout(600)
    expect(drawing).to_have_attribute("data-frame", last)  # it waits
    page.keyboard.press(" ")
    expect(drawing).to_have_attribute("data-frame", "1.0")
