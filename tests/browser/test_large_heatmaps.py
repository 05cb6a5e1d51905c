"""Heatmaps of many cells, drawn as an image below Plotly's axes, compared with Plotly's own heatmaps of few cells."""

import numpy as np
import pytest
from playwright.sync_api import expect

from explorer.interventions import parse_interventions
from explorer.views.style import LIGHT
from explorer.web.widgets import figure
from tests.rendered_figures import contains_number

from .person import CELL
from .pixels import TICKS, capture_visible_run, iterate_themes, scale_colours

# Colours of an image's pixels, row by row.
PIXELS = """async (plot) => {
  const image = new Image();
  image.src = plot.querySelector(".imagelayer image").getAttribute("href");
  await image.decode();
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [image.width, image.height];
  const context = canvas.getContext("2d");
  context.drawImage(image, 0, 0);
  return [image.height, image.width, ...context.getImageData(0, 0, image.width, image.height).data];
}"""
# Position of an image, and of the corners of the plot's cells.
IMAGE_AND_AXES = """(plot, [columns, rows]) => {
  const image = plot.querySelector(".imagelayer image").getBoundingClientRect(), box = plot.getBoundingClientRect();
  const { xaxis, yaxis } = plot._fullLayout;
  const x = (at) => box.left + xaxis._offset + xaxis.l2p(at), y = (at) => box.top + yaxis._offset + yaxis.l2p(at);
  return [[image.left, image.top, image.right, image.bottom], [x(-0.5), y(-0.5), x(columns - 0.5), y(rows - 0.5)]];
}"""


@pytest.fixture(autouse=True)
def lower_max_cells(monkeypatch):
    monkeypatch.setattr(figure, "MAX_CELLS", 100)


def pixels(plot) -> np.ndarray:
    rows, columns, *channels = plot.evaluate(PIXELS)
    return np.array(channels).reshape(rows, columns, 4)[..., :3]


def test_large_pattern_matches_small_heatmap(open_page):
    person = open_page(checkpoint="gpt-twin", layer=2, head=1, query=9, key=4)
    plot, trace = person.pattern, capture_visible_run(person)
    weights = trace["blocks.2.attn.pattern"][1]
    plot.scroll_into_view_if_needed()
    for theme in iterate_themes(person, plot):
        painted, allowed = pixels(plot), np.tri(len(trace), dtype=bool)
        assert painted.shape[:2] == weights.shape
        assert np.abs(painted - scale_colours(theme.sequential, weights))[allowed].max() <= 3
        background = [int(theme.sequential[0][i : i + 2], 16) for i in (1, 3, 5)]
        assert (painted[~allowed] == background).all()
    image, axes = plot.evaluate(IMAGE_AND_AXES, [len(trace), len(trace)])
    assert image == pytest.approx(axes, abs=1)
    tick_labels = [tick.strip("\u2068\u2069") for tick in plot.evaluate(TICKS, "y")]
    assert tick_labels == [token.replace(" ", "·") for token in trace.tokens]
    readout = plot.locator(".cell-words")
    for query, key in ((20, 3), (9, 8), (27, 0)):
        plot.scroll_into_view_if_needed()
        person.page.mouse.move(*plot.evaluate(CELL, [key, query]))
        expect(readout).to_contain_text(f"query {query} ")
        text = readout.inner_text()
        assert f"key {key} " in text and contains_number(text, weights[query, key]), text
    person.page.mouse.move(*plot.evaluate(CELL, [20, 3]))  # the causal mask hides this key from the query
    expect(readout).to_be_hidden()
    person.click_cell(plot, x=2, y=21)
    person.expect_selected(query=21, key=2)
    expect(person.page.locator('[data-of="attention-pattern"]')).to_contain_text("layer 2 head 1, query")
    plot.focus()
    person.page.keyboard.press("ArrowRight")
    person.expect_selected(query=21, key=3)
    person.page.keyboard.press("ArrowDown")
    person.expect_selected(query=22, key=3)
    assert plot.get_attribute("aria-label").startswith("Attention pattern of layer 2 head 1")


@pytest.mark.exhaustive
def test_another_head_draws_another_image(open_page):
    person = open_page(checkpoint="gpt-twin", layer=2, head=1, query=9, key=4)
    plot, patterns = person.pattern, capture_visible_run(person)["blocks.2.attn.pattern"]
    readout, allowed = plot.locator(".cell-words"), np.tri(patterns.shape[-1], dtype=bool)
    for head in (0, 3, 1):
        with person.wait_for_redraw(plot):
            person.chooser("head").select_option(str(head))
        painted = scale_colours(LIGHT.sequential, patterns[head])
        assert np.abs(pixels(plot) - painted)[allowed].max() <= 3
        plot.scroll_into_view_if_needed()
        person.page.mouse.move(*plot.evaluate(CELL, [3, 20]))
        expect(readout).to_contain_text("query 20 ")
        assert contains_number(readout.inner_text(), patterns[head, 20, 3])


def test_masked_cells_of_difference_have_neutral_colour(open_page):
    intervention = "blocks.0.attn.z.0*zero"
    person = open_page(checkpoint="gpt-twin", layer=2, head=1, shown="difference", **{"b.edits": intervention})
    plot = person.pattern
    plot.scroll_into_view_if_needed()
    expect(plot.locator(".imagelayer image")).to_be_attached()
    a, b = (
        capture_visible_run(person, interventions)["blocks.2.attn.pattern"][1]
        for interventions in ((), parse_interventions(intervention))
    )
    largest, allowed = np.abs(a - b).max(), np.tri(len(a), dtype=bool)
    for theme in iterate_themes(person, plot):
        painted = pixels(plot)
        assert np.abs(painted - scale_colours(theme.diverging, ((a - b) / largest + 1) / 2))[allowed].max() <= 4
        assert np.abs(painted - scale_colours(theme.diverging, np.full(a.shape, 0.5)))[~allowed].max() <= 4


def test_signed_values_and_selected_columns_are_drawn(open_page, monkeypatch):
    monkeypatch.setattr("explorer.views.activations.MAX_CELLS", 28 * 10)
    person = open_page(view="activations", checkpoint="gpt-twin", tap="blocks.1.resid_post", query=9, dim=13)
    plot, trace = person.page.locator("#activations-heatmap .plot"), capture_visible_run(person)
    plot.scroll_into_view_if_needed()
    expect(plot.locator(".imagelayer image")).to_be_attached()
    values = trace["blocks.1.resid_post"]
    assert len(values) == 28
    largest, visible_values = np.abs(values).max(), values[:, 10:20]
    for theme in iterate_themes(person, plot):
        assert np.abs(pixels(plot) - scale_colours(theme.diverging, (visible_values / largest + 1) / 2)).max() <= 4
    readout = plot.locator(".cell-words")
    plot.scroll_into_view_if_needed()
    person.page.mouse.move(*plot.evaluate(CELL, [17, 4]))
    expect(readout).to_contain_text("position 4 ")
    assert "dimension 17" in readout.inner_text() and contains_number(readout.inner_text(), values[4, 17])
    person.click_cell(plot, x=12, y=21)
    person.expect_selected(query=21, dim=12)
