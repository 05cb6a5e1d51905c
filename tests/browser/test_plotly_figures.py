"""Figures as Plotly paints them: colours of cells, lengths of bars, labels, hover texts."""

import base64
import json
import re

import numpy as np
import pytest
from playwright.sync_api import expect

from explorer.analysis.direct_logit_attribution import direct_logit_attribution
from explorer.analysis.logit_lens import lens_summaries
from explorer.analysis.next_token import ranking_without_interventions
from explorer.views.prediction.logit_lens import MAX_ROW_CHARS, visible_positions
from explorer.views.style import DARK, shorten_token
from tests.exhaustive import exhaustive
from tests.rendered_figures import contains_number

from .legibility import TWO_FRAMES
from .person import CELL
from .pixels import (
    BARS,
    CELL_TEXTS,
    HOVER_TEXTS,
    TICKS,
    capture_visible_run,
    cell_colours,
    iterate_themes,
    read_pixels,
    scale_colours,
)

# Of the first visible cell: the pixel of its corner, its width and height.
CELLS = """({ _fullLayout: { xaxis, yaxis } }) => {
  const [first, last] = xaxis.range, corner = [xaxis._offset, yaxis._offset + yaxis.c2p(-0.5)];
  return [...corner, xaxis._length / (last - first), yaxis.c2p(1) - yaxis.c2p(0)];
}"""

# Whether the texts of a figure are narrower than its cells, with a pixel at each side.
HAVE_ROOM = """(plot) => {
  const words = [...plot.querySelectorAll(".heatmap-label text")].map((text) => text.getBBox().width);
  const { xaxis } = plot._fullLayout, widest = Math.max(...words);
  return words.length > 0 && 10 < widest && widest < xaxis.c2p(1) - xaxis.c2p(0) - 2;
}"""


# Number of lines of a text.
COUNT_LINES = """(text) => {
  const range = document.createRange();
  range.selectNodeContents(text);
  return Math.round(range.getBoundingClientRect().height / parseFloat(getComputedStyle(text).lineHeight));
}"""


# Makes a text slightly narrower than its longest line: with one letter less it has one line less.
FIT = """(text) => {
  Object.assign(text.style, { width: "max-content", maxWidth: "none", flex: "none" });
  text.style.width = `${Math.ceil(text.getBoundingClientRect().width) - 2}px`;
}"""


MEASURE_LABELS = """() => {
  for (let i = 0; i < 5; i++) {
    const label = document.createElementNS("http://www.w3.org/2000/svg", "text");
    label.textContent = "12.5";
    document.querySelector("#js-plotly-tester").append(label);
    label.getBoundingClientRect();
    label.remove();
  }
}"""


def read_hover_text(person, plot, x: float, y: float) -> str:
    """Move the pointer to a point of a figure and return the hover text there."""
    plot.scroll_into_view_if_needed()
    labels = plot.locator(".hoverlayer .hovertext")
    person.page.mouse.move(1, 1)
    expect(labels).to_have_count(0)
    person.page.mouse.move(*plot.evaluate(CELL, [x, y]))
    expect(labels.first).to_be_visible()
    return " ".join(plot.evaluate(HOVER_TEXTS))


SQUARE_CELLS = """() => {
  const { width, xaxis, yaxis } = document.querySelector("#attention-pattern .plot")._fullLayout;
  const ratio = xaxis._length / yaxis._length;
  return width === document.querySelector("#attention-pattern .plot").clientWidth && ratio > 0.85 && ratio < 1.2;
}"""


def test_pattern_heatmap_and_query_row_match_trace(open_page):
    person = open_page(checkpoint="gpt-twin", layer=2, head=1, query=9, key=4, unfolded="attention-row")
    trace, row = capture_visible_run(person), person.page.locator("#attention-row .plot")
    weights, tokens = trace["blocks.2.attn.pattern"][1], trace.tokens
    allowed = np.tri(len(trace), dtype=bool)
    for theme in iterate_themes(person, person.pattern):
        painted = cell_colours(person.pattern, weights.shape)
        assert np.abs(painted - scale_colours(theme.sequential, weights))[allowed].max() <= 2
    for width in (1024, 1366):
        person.page.set_viewport_size({"width": width, "height": 768})
        person.page.wait_for_function(SQUARE_CELLS)
    for letter, title in (("x", "key"), ("y", "query")):
        expect(person.pattern.locator(f".{letter}title")).to_contain_text(title)
        tick_labels = [tick.strip("\u2068\u2069") for tick in person.pattern.evaluate(TICKS, letter)]
        step = -(-len(tokens) // (32 if letter == "x" else 48))
        assert tick_labels == [token.replace(" ", "·") for token in tokens[::step]]
    for query, key in ((20, 3), (9, 8), (27, 0)):
        text = read_hover_text(person, person.pattern, key, query)
        assert f"query {query} " in text and f"key {key} " in text and contains_number(text, weights[query, key]), text
    row.scroll_into_view_if_needed()
    bars = row.evaluate(BARS, [[key, float(weights[9, key]) / 2] for key in range(10)])
    assert [bar["height"] for bar in bars] == pytest.approx(weights[9, :10], abs=0.01)
    assert [key for key, bar in enumerate(bars) if bar["colour"] == [216, 27, 96]] == [4]  # the selected key is marked
    text = read_hover_text(person, row, 6, float(weights[9, 6]) / 2)
    assert "key 6 " in text and contains_number(text, weights[9, 6])
    person.click_cell(person.pattern, x=2, y=21)
    person.expect_selected(query=21, key=2)


@pytest.mark.exhaustive
def test_zero_of_signed_values_has_background_colour(open_page):
    person = open_page(view="prediction", checkpoint="gpt-twin", query=9, target=3, rival=1)
    plot = person.page.locator("#prediction-heads .plot")
    plot.scroll_into_view_if_needed()
    expect(plot.locator(".heatmaplayer image")).to_be_attached()
    with person.wait_for_redraw(plot):
        person.change_theme()
    trace = capture_visible_run(person)
    order = ranking_without_interventions(trace, 9)
    adds = direct_logit_attribution(trace, 9, int(order[2]), int(order[0])).heads
    painted = cell_colours(plot, adds.shape)
    assert np.abs(painted - scale_colours(DARK.diverging, (adds / np.abs(adds).max() + 1) / 2)).max() <= 2
    text = read_hover_text(person, plot, 3, 1)
    assert "layer 1 head 3" in text and contains_number(text, adds[1, 3])
    row, column = np.unravel_index(adds.argmin(), adds.shape)
    assert re.search(r"−\d", read_hover_text(person, plot, int(column), int(row)))  # a minus sign, no hyphen
    person.click_cell(plot, x=3, y=1)
    person.expect_selected(layer=1, head=3)


def test_lens_writes_every_token_in_its_cell(open_page):
    person = open_page(view="prediction", query=27)
    trace, plot = capture_visible_run(person), person.page.locator("#prediction-lens .plot")
    plot.scroll_into_view_if_needed()
    expect(plot.locator(".heatmap-label").first).to_be_attached()
    cell_texts, page = plot.evaluate(CELL_TEXTS), visible_positions(trace, 27)
    assert page.start > 0  # Plotly counts text columns from the start of the axis, wherever the figure starts
    likeliest = lens_summaries(trace, page).top[..., 0]  # (depths, positions)
    assert cell_texts == {
        f"{position}, {depth}": shorten_token(trace.vocabulary[token_id], MAX_ROW_CHARS // len(page))
        for depth, row in enumerate(likeliest)
        for position, token_id in zip(page, row, strict=True)
    }
    for position, depth in ((page[0], 1), (20, 0), (27, 2)):
        text, token_id = (
            read_hover_text(person, plot, position, depth),
            likeliest[depth, position - page.start],
        )
        assert f"{position} {shorten_token(trace.tokens[position], 14)}" in text
        assert f"1. {shorten_token(trace.vocabulary[token_id], 14)} " in text
    person.click_cell(plot, x=20, y=1)
    person.expect_selected(query=20)


# Texts of a figure that its icons cover.
COVERED = """(plot) => {
  const [first, ...others] = [...plot.querySelectorAll(".modebar-btn")].map((icon) => icon.getBoundingClientRect());
  const [left, right] = [first.left, others.at(-1).right];
  const isCovered = ({ bottom, ...box }) => bottom > first.top + 2 && box.right > left && box.left < right;
  return [...plot.querySelectorAll("svg.main-svg text")].filter((text) => text.textContent.trim())
    .filter((text) => isCovered(text.getBoundingClientRect().toJSON())).map((text) => text.textContent);
}"""


def test_icons_leave_axis_title_of_sparsity_free(open_new_page):
    fields = {"b.text": "the fox asked the owl", "shown": "difference", "depth": "numbers"}
    person = open_new_page(viewport={"width": 1366, "height": 768}).open("feed_forward", **fields)
    plot = person.page.locator("#feed_forward-layers .plot")
    plot.scroll_into_view_if_needed()
    plot.hover()
    expect(plot.locator(".xtitle")).to_have_text("layer")
    assert plot.evaluate(COVERED) == []
    expect(plot).not_to_contain_text("dotted")  # a difference has no such line


def test_texts_stay_in_cells_when_zoomed_and_are_downloaded(open_new_page):
    person = open_new_page().open(view="prediction", query=27)
    plot = person.page.locator("#prediction-lens .plot")
    plot.scroll_into_view_if_needed()
    expect(plot.locator(".heatmap-label").first).to_be_attached()
    cell_texts = plot.evaluate(CELL_TEXTS)
    plot.evaluate("(plot) => window.ExplorerPlotly.relayout(plot, {'xaxis.range': [19.5, 25.5]})")
    expect(plot.locator(".heatmap-label")).to_have_count(1)
    within = {
        cell_key: cell_text for cell_key, cell_text in cell_texts.items() if 20 <= int(cell_key.split(",")[0]) <= 25
    }
    assert plot.evaluate(CELL_TEXTS) == within
    plot.hover()
    with person.page.expect_download() as downloading:
        plot.locator(".modebar-btn[data-title='Save figure as PNG']").click()
    assert downloading.value.suggested_filename == "tiny-prediction-lens.png"
    source = f"data:image/png;base64,{base64.b64encode(downloading.value.path().read_bytes()).decode()}"
    downloaded = read_pixels(person.page.evaluate_handle("(src) => Object.assign(new Image(), { src })", source))
    left, top, wide, high = 2 * np.array(plot.evaluate(CELLS))  # two pixels for each CSS pixel
    title_height = len(downloaded) - 2 * plot.bounding_box()["height"]
    assert title_height > 2 * 3 * 12 and is_written(downloaded[: int(title_height)])
    for depth in range(3):
        for column in range(6):
            y, x = int(title_height + top + depth * high), int(left + column * wide)
            assert is_written(downloaded[y + 6 : y + int(high) - 6, x + 6 : x + int(wide) - 6]), (depth, column)


def is_written(area: np.ndarray) -> bool:
    """Return whether an area (h, w, 3) has text with a contrast of at least 4.5 (WCAG 2.2) to its background."""
    colours, counts = np.unique(area.reshape(-1, 3), axis=0, return_counts=True)
    linear = np.where(colours / 255 <= 0.04045, colours / 255 / 12.92, ((colours / 255 + 0.055) / 1.055) ** 2.4)
    luminance = linear @ (0.2126, 0.7152, 0.0722) + 0.05
    below = luminance[counts.argmax()]
    return max(luminance.max() / below, below / luminance.min()) >= 4.5


@pytest.mark.parametrize(
    ("view", "figure"), [("attention", "attention-pattern"), exhaustive(pytest.param("overview", "overview-whole"))]
)
def test_figure_is_saved_on_white_in_either_theme(open_new_page, view, figure):
    """Covers the system's theme, the theme chosen on the page, and the whole model, which is no Plotly figure."""
    person = open_new_page(color_scheme="dark").open(view=view, query=27, depth="numbers").wait_until_idle()
    page = person.page

    def save(format_name: str) -> bytes:
        page.locator("#copy summary").click()
        with page.expect_download() as downloading:
            page.locator(f"#save-{format_name}").click()
        assert downloading.value.suggested_filename.endswith(f".{format_name}")
        return downloading.value.path().read_bytes()

    saved = save("png")
    source = f"data:image/png;base64,{base64.b64encode(saved).decode()}"
    dark = read_pixels(page.evaluate_handle("(src) => Object.assign(new Image(), { src })", source))
    assert dark[0, 0].min() == 255 and is_written(dark[:40])
    svg = save("svg").decode()
    assert svg.count(page.locator(f"#{figure} h2").text_content()) == 1
    person.change_theme()
    person.wait_until_idle()
    assert save("png") == saved


TOP_ON_PAGE = "(plot) => plot.getBoundingClientRect().top + scrollY"


def test_click_on_cell_keeps_figure_in_place(open_page):
    """The formula above the figure sometimes has one more line."""
    person = open_page(depth="formula", query=27, key=26)
    formula, tops, lengths = person.page.locator("#attention-formula .formula"), set(), set()
    formula.evaluate(FIT)
    person.pattern.scroll_into_view_if_needed()
    tops.add(person.pattern.evaluate(TOP_ON_PAGE))
    for query, key in ((12, 0), (20, 11), (3, 3), (15, 4), (27, 13), (8, 2), (21, 20), (5, 0)):
        with person.wait_for_redraw(person.pattern):
            person.page.mouse.click(*person.pattern.evaluate(CELL, [key, query]))
        person.expect_selected(query=query, key=key)
        expect(person.wait_until_idle().page.locator(".inspection:visible")).to_have_count(1)
        person.page.evaluate(TWO_FRAMES)  # the derivation may redraw the figure, which loses a click meanwhile
        tops.add(person.pattern.evaluate(TOP_ON_PAGE))
        lengths.add(formula.evaluate(COUNT_LINES))
    formula.evaluate("(text) => text.removeAttribute('style')")
    assert len(lengths) > 1 and len(tops) == 1, (lengths, tops)


def test_token_that_looks_like_markup_is_escaped_in_cell(open_page):
    person = open_page(view="tokens", text="a <b> &lt; & b")
    trace, plot = capture_visible_run(person), person.page.locator("#tokens-table .plot")
    expect(plot.locator(".heatmap-label").first).to_be_attached()
    cell_texts = plot.locator(".heatmap-label text").all_text_contents()
    assert "".join(trace.tokens) == "a <b> &lt; & b"
    assert {shorten_token(token) for token in trace.tokens} <= set(cell_texts)


def test_number_fits_narrow_cell(open_page):
    narrow = {"width": 240, "height": 844}
    person = open_page("prediction", narrow, checkpoint="gpt-twin", unfolded="prediction-heads")
    plot = person.page.locator("#prediction-heads .plot")
    plot.scroll_into_view_if_needed()
    expect(plot.locator(".heatmap-label").first).to_be_attached()
    person.page.wait_for_function(HAVE_ROOM, arg=plot.element_handle())  # at first it is drawn as on a wide screen


def test_figure_is_updated_in_place(open_page):
    """Plotly rebuilds a figure with a changed configuration, which takes longer."""
    person = open_page(checkpoint="gpt-twin", query=9, unfolded="attention-row")
    row = person.page.locator("#attention-row .plot")
    row.scroll_into_view_if_needed()
    expect(row.locator(".main-svg").first).to_be_attached()
    row.evaluate("(plot) => { plot.querySelector('.main-svg').kept = true; }")
    with person.wait_for_redraw(row):
        person.chips.nth(5).click()
    assert row.evaluate("(plot) => plot.querySelector('.main-svg').kept")


def test_measured_label_restyles_no_other_element(open_page):
    """Plotly adds and removes a text to measure it; with `:has(:empty)` above it each would restyle the page."""
    person = open_page("choosing", depth="story")
    browser = person.page.context.browser
    browser.start_tracing(page=person.page, categories=["devtools.timeline"])
    person.page.evaluate(MEASURE_LABELS)
    events = json.loads(browser.stop_tracing())["traceEvents"]
    restyled = [event["args"].get("elementCount", 0) for event in events if event["name"] == "UpdateLayoutTree"]
    assert len(restyled) >= 5 and sorted(restyled)[len(restyled) // 2] <= 5  # the page may draw between them
