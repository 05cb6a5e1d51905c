"""Map of the model as painted: fills, line widths, texts and frames, compared with the run's arrays."""

import io
import re

import numpy as np
import pytest
from PIL import Image

from explorer.analysis.next_token import next_token_distribution
from explorer.views.overview.map_layout import LANDSCAPE_NEXT_TOKENS, LandscapeLayout, PortraitLayout
from tests.rendered_figures import contains_number

from .conftest import DESK
from .map_expectations import (
    BOXES_AT,
    FRAMES_AFTER_CHOICE,
    MAP_LINES,
    MAP_TEXTS,
    SELECTED_FIELDS,
    TALL,
    contrast_ratio,
    expected_boxes,
    map_numbers,
    open_map,
    scroll_into_view,
)
from .pixels import capture_visible_run, iterate_themes, scale_colours, wait_for_animations


@pytest.mark.parametrize(
    ("checkpoint", "kind"),
    [("gpt-twin", LandscapeLayout), ("tiny", PortraitLayout)],
)
def test_every_component_has_expected_colour_and_text(open_page, checkpoint, kind):
    # As high as the map on a phone, so that all of it is visible.
    person, figure = open_map(
        open_page, checkpoint, viewport=DESK if kind is LandscapeLayout else TALL, **SELECTED_FIELDS
    )
    trace, model_overview, _ = map_numbers(person)
    expected = list(expected_boxes(trace, model_overview, 9, kind(trace.config, 6)))
    largest = max(np.abs(model_overview.attribution.heads).max(), np.abs(model_overview.attribution.feed_forward).max())
    person.evaluate("actions.select({ layer: 0 })")  # and with it the address
    person.wait_until_idle()
    for theme in iterate_themes(person, figure):
        painted = wait_for_animations(scroll_into_view(figure)).evaluate(
            BOXES_AT, [[float(x), float(y)] for (x, y), *_ in expected]
        )
        assert len({box["item"] for box in painted}) == len(expected) == figure.locator(".part").count() - 6
        for box, (_, label_start, numbers, colour_value) in zip(painted, expected, strict=True):
            assert box["label"].startswith(label_start), (box, label_start)
            assert all(contains_number(box["label"], float(f"{number:.6g}")) for number in numbers), (box, numbers)
            if colour_value is not None:
                assert (
                    np.abs(scale_colours(theme.diverging, (colour_value / largest + 1) / 2) - box["fill"]).max() <= 2
                ), box
                assert contrast_ratio(box["fill"], box["ink"]) >= 4.5
            if (head := re.match(r"layer \d+ head (\d+)", label_start)) and box["text"]:
                assert box["text"] == head[1]


@pytest.mark.exhaustive
def test_colour_bar_matches_component_colours(open_page):
    """Minimum at the left and maximum at the right, as its tick labels say."""
    person, figure = open_map(open_page, **SELECTED_FIELDS)
    _, model_overview, _ = map_numbers(person)
    largest = max(np.abs(model_overview.attribution.heads).max(), np.abs(model_overview.attribution.feed_forward).max())
    person.evaluate("actions.select({ layer: 0 })")  # and with it the address
    person.wait_until_idle()
    for theme in iterate_themes(person, figure):
        bar = scroll_into_view(figure).locator(".scale").bounding_box()
        image = Image.open(io.BytesIO(person.page.screenshot(clip=bar))).convert("RGB")
        row = np.asarray(image, float)[image.height // 2]
        shares = (np.arange(len(row)) + 0.5) / len(row)
        assert np.abs(scale_colours(theme.diverging, shares) - row)[2:-2].max() <= 6
    texts = figure.evaluate(MAP_TEXTS)["free"]
    ticks = sorted((text for text in texts if text[2] > bar["y"]), key=lambda text: text[1])[-3:]
    assert [tick[0][:1] for tick in ticks] == ["−", "0", "+"]
    assert contains_number(ticks[0][0], -largest) and contains_number(ticks[2][0], largest)
    assert abs(ticks[0][1] - bar["x"]) < 2 and abs(ticks[2][3] - bar["x"] - bar["width"]) < 2


TEXT_LINE_POSITIONS = """(map) => [...map.querySelectorAll(".part")].map((part) =>
  [...part.querySelectorAll("tspan")].map((line) => Number(line.getAttribute("y"))))"""


def test_line_widths_show_vector_norms(open_page):
    person, figure = open_map(open_page, query=9)
    trace, model_overview, _ = map_numbers(person)
    plan = LandscapeLayout(trace.config)
    longest = max(
        model_overview.stream.max(), model_overview.write_norms.max(), model_overview.token, model_overview.positions
    )
    lines = [line for line in wait_for_animations(figure).evaluate(MAP_LINES) if not line["arrow"]]
    written = figure.evaluate(TEXT_LINE_POSITIONS)
    assert max(map(len, written)) > 1
    for heights in written:
        assert heights == sorted(heights), "the second line of a component's text is below its first"
    for layer in range(3):
        for i, (kind, layout_name) in enumerate((("attention", "add_attn"), ("feed_forward", "add_ffn"))):
            (width,) = {
                line["width"]
                for line in lines
                if line["kind"] == kind
                and line["corners"][2] == pytest.approx(plan.offset(layer, layout_name), abs=0.01)
            }
            assert width == pytest.approx(
                max(1, plan.max_line_width * model_overview.write_norms[layer, i] / longest), abs=0.01
            )
    stream = sorted((line for line in lines if line["kind"] == "residual"), key=lambda line: line["corners"][0])
    assert [line["width"] for line in stream] == pytest.approx(
        np.maximum(1, plan.max_line_width * model_overview.stream / longest), abs=0.01
    )
    assert {line["kind"]: line["stroke"] for line in lines} == {
        "attention": "rgb(0, 114, 178)",
        "feed_forward": "rgb(176, 82, 192)",
        "residual": "rgb(136, 136, 136)",
        "embedding": "rgb(0, 158, 115)",
    }


def test_next_token_bars_show_probabilities(open_page):
    person, figure = open_map(open_page, **SELECTED_FIELDS)
    trace, _, order = map_numbers(person)
    chances = next_token_distribution(trace, 9).plain
    left, right = LANDSCAPE_NEXT_TOKENS
    rows = figure.locator(".part.next_token")
    assert rows.count() == 6  # the five most probable, and the contrast token
    for i, rank in enumerate((1, 2, 3, 4, 5, 7)):
        chance, row = chances[order[rank - 1]], rows.nth(i)
        bar = row.locator(".detail").get_attribute("d")
        assert re.match(r"M794,[\d.]+h([\d.e-]+)v3H794Z", bar)
        assert float(re.search(r"h([\d.e-]+)", bar)[1]) == pytest.approx((right - left) * chance, rel=1e-4)
        assert f"rank {rank}, " in row.get_attribute("aria-label")
        assert contains_number(row.get_attribute("aria-label"), chance)


@pytest.mark.exhaustive
def test_frames_mark_selection_immediately(open_page):
    """Frames move without waiting for Python."""
    person, figure = open_map(open_page, **SELECTED_FIELDS)
    config = capture_visible_run(person).config

    def expect_framed(choice: dict | None, layer: int, head: int, *, listed: int, **rows: int):
        plan = LandscapeLayout(config, listed)
        boxes = {"head": plan.head(layer, head)} | {name: plan.next_token(i) for name, i in rows.items()}
        around = {name: [a, b, c - a, d - b] for name, (a, b, c, d) in boxes.items()}
        framed, marked = person.evaluate(FRAMES_AFTER_CHOICE, choice)
        assert framed.keys() == around.keys()
        for name, edges in around.items():
            assert framed[name] == pytest.approx(edges, abs=0.011), name
        assert marked[0].startswith(f"layer {layer} head {head}, ")
        assert len(marked) == 1 + len(rows)

    expect_framed(None, 2, 1, listed=6, target=1, rival=5)
    expect_framed({"layer": 0, "head": 3, "target": 1}, 0, 3, listed=6, target=0, rival=5)
    person.wait_until_idle()
    with person.wait_for_redraw(figure):
        expect_framed({"layer": 1, "head": 0, "rival": 0}, 1, 0, listed=6, target=0)
    expect_framed(None, 1, 0, listed=5, target=0)
