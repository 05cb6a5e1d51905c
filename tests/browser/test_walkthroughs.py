"""Walkthroughs of computations, with the numbers of the run."""

import re

import pytest
from playwright.sync_api import expect

from explorer.analysis.attention import query_attention_stages
from explorer.analysis.logit_lens import lens_summaries
from explorer.analysis.positions import rotated_pairs
from explorer.analysis.residual import residual_norms
from explorer.explain.notation import escape_token, format_number
from explorer.state.selection import Selection

from .legibility import BEAMER, assert_accessible, assert_legible

TELEPHONE = {"width": 390, "height": 844}


@pytest.fixture
def capture_query(state_builder):
    """Function that returns the model, run and selection of a URL's query, computed in the test."""

    def trace(**query):
        page_state = state_builder.state_from_query({"checkpoint": "tiny", **query})
        lm, captured = state_builder.runs.model_and_trace(page_state.run)
        return lm, captured, page_state.selection

    return trace


def test_walkthrough_shows_numbers_of_run(open_new_page, capture_query):
    fields = {"text": "the cat sat on the mat", "layer": 1, "head": 1, "query": 3, "key": 1}
    _lm, trace, selection = capture_query(**fields)
    selection = Selection(layer=1, head=1, query=3, key=1).clamp_to_trace(trace)
    person = open_new_page(viewport=BEAMER, reduced_motion="reduce").open("attention", unfolded="", **fields)
    page, drawing = person.page, person.page.locator("#walk .drawing")

    def begin(view: str):
        page.locator(f"#{view}-walk").get_by_role("button").click()
        expect(page.locator("#walk .walk")).to_be_visible()

    def fits_a_telephone():
        page.set_viewport_size(TELEPHONE)
        fits = "({ scrollWidth, clientWidth }) => scrollWidth <= clientWidth"
        page.wait_for_function(fits, arg=drawing.element_handle())
        page.set_viewport_size(BEAMER)

    def is_above_the_bar():
        bottom = "element => element.getBoundingClientRect().bottom"
        last, bar = drawing.locator("tr, .strips > *").last, page.locator("#walk nav")
        for size in ({"width": 1366, "height": 620}, TELEPHONE, BEAMER):
            page.set_viewport_size(size)
            above = drawing.evaluate("({ scrollHeight, clientHeight }) => scrollHeight <= clientHeight")
            top_of_bar = bar.evaluate("bar => bar.getBoundingClientRect().top")
            assert above and last.evaluate(bottom) <= top_of_bar - 2, size  # with its outline

    begin("attention")
    word = page.locator("#walk .says .term").first
    expect(word).to_have_text("query")
    page.keyboard.press("Shift+Tab")  # cycles through the terms and buttons
    expect(page.locator("#walk .says .term").last).to_be_focused()
    assert page.evaluate("!document.elementFromPoint(20, 58).closest('#prompt')")  # the page is covered
    word.focus()
    expect(page.locator("#definition")).to_contain_text("the token that looks")
    page.locator("#walk .next").focus()
    steps = query_attention_stages(trace, selection.layer, selection.head, selection.query)
    visible_keys = [0, 1, 2, 3, *([4] if len(trace) > 4 else [])]
    masked = [format_number(value) if ok else "−∞" for value, ok in zip(steps.capped, steps.allowed, strict=True)]
    columns = [[format_number(value) for value in steps.dots], [format_number(value) for value in steps.scores], masked]
    columns.append([f"{value:.4f}" for value in steps.weights])
    for count in range(1, 5):
        expect(drawing.locator("tbody tr")).to_have_count(len(visible_keys))
        for row, key in enumerate(visible_keys):
            cells = drawing.locator("tbody tr").nth(row)
            token = escape_token(trace.tokens[key])
            is_repeated = list(trace.tokens).count(trace.tokens[key]) > 1
            expect(cells.locator("th")).to_have_text(f"{token} ({key})" if is_repeated else token)
            expect(cells.locator("td")).to_have_text([column[key] for column in columns[:count]])
            expect(cells.locator("td.newest")).to_have_text(columns[count - 1][key])
        is_above_the_bar()
        page.keyboard.press(" ")
    says = page.locator("#walk .says").bounding_box()
    assert 0 <= drawing.locator(".strips").bounding_box()["y"] - says["y"] - says["height"] < 40  # right below its text
    is_above_the_bar()
    fetched = trace[f"blocks.{selection.layer}.attn.z"][selection.head, selection.query]
    expect(drawing.locator(".first.is-sum")).to_have_text(f"{format_number(fetched[0])} …")
    fits_a_telephone()
    page.keyboard.press("Escape")
    expect(page.locator("#walk .walk")).to_be_hidden()
    expect(page.locator("#attention-walk button")).to_be_focused()

    person.visit("positions", "Positions")
    begin("positions")
    page.keyboard.press(" ")
    after = rotated_pairs(trace, "q", selection.layer, selection.head, selection.query)
    pair_text = drawing.locator(".pair").first.inner_text()
    assert pair_text in {f"({format_number(a)}, {format_number(b)})" for a, b in after.after}
    tip = drawing.locator(".tip")
    x, y = float(tip.get_attribute("cx")), -float(tip.get_attribute("cy"))
    a, b = next(pair for pair in after.after if f"({format_number(pair[0])}, {format_number(pair[1])})" == pair_text)
    assert abs(x * b - y * a) < 1e-3 * abs(x * a + y * b) and x * a + y * b > 0  # the same direction
    fits_a_telephone()
    page.keyboard.press("Escape")

    person.visit("residual", "Residual stream")
    begin("residual")
    assert_accessible(page, "#walk")
    fits_a_telephone()
    norms, guesses = residual_norms(trace), lens_summaries(trace, range(selection.query, selection.query + 1))
    for stop in range(len(norms.stages)):
        newest = drawing.locator(".floor").last
        expect(newest.locator(".number")).to_have_text(format_number(norms.stream[stop, selection.query]))
        likeliest = drawing.locator(".guess").first
        expect(likeliest.locator(".label")).to_have_text(escape_token(trace.vocabulary[guesses.top[stop, 0, 0]]))
        expect(likeliest.locator(".number")).to_have_text(format_number(guesses.probabilities[stop, 0, 0]))
        if stop + 1 < len(norms.stages):  # at the end Space may press the button that leaves
            page.keyboard.press(" ")
    assert_legible(page)


def test_animation_advances_in_frames_and_space_ends_it(open_page):
    person = open_page("attention", text="the cat sat on the mat", query=4)
    page, drawing = person.page, person.page.locator("#walk .drawing")
    page.locator("#attention-walk").get_by_role("button").click()
    expect(drawing).to_have_attribute("data-frame", re.compile(r"0\.[1-3]"))  # starts automatically
    page.keyboard.press(" ")
    last = drawing.get_attribute("data-frame")
    rows = drawing.locator("tbody tr").count()
    assert last.startswith("0.") and int(last[2:]) == rows - 1
    page.wait_for_timeout(600)
    expect(drawing).to_have_attribute("data-frame", last)  # it waits
    page.keyboard.press(" ")
    expect(drawing).to_have_attribute("data-frame", "1.0")
    page.keyboard.press("Escape")
    expect(page.locator("#walk .walk")).to_be_hidden()
