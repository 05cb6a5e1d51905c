"""Both layouts of the map: every element has its box, and nothing overlaps."""

from dataclasses import replace
from functools import cache
from itertools import product

import numpy as np
import pytest

from explorer.state.selection import Selection
from explorer.tracing.capture import capture
from explorer.views.overview import draw_model_map
from explorer.views.overview.map_layout import (
    LANDSCAPE_LEFT,
    LANDSCAPE_RIGHT,
    PORTRAIT_WIDTH,
    Box,
    LandscapeLayout,
    PortraitLayout,
)
from explorer.views.overview.map_parts import MapLabel, ModelMap
from model.config import CHOICES
from model.transformer_lm import TransformerLM
from tests.exhaustive import zip_cycled
from tests.sample_models import STYLES, capture_style, config
from tests.subtest_loops import subtest_each

SIZES = [(1, 1), (2, 4), (6, 6), (7, 3), (12, 12), (24, 14), (48, 25)]  # layers and heads
LAYOUTS = [LandscapeLayout, PortraitLayout]
FINGER = 24  # minimum touch target in pixels
TELEPHONE = 358 / PORTRAIT_WIDTH  # zoom of the map on a telephone 390 pixels wide
SIZE = {"title": 13, "sum": 12}  # font sizes; 11 for other kinds
PLACEMENTS = CHOICES["norm_placement"]
MAPS = [*((style, None) for style in STYLES), *zip_cycled(PLACEMENTS, SIZES)]  # every kind, and many layers


@cache
def draw_map(style: str, size: tuple[int, int] | None) -> ModelMap:
    """Return the map of a style, or of a model with a norm placement and numbers of layers and heads."""
    if size:
        return map_of_size(style, *size)
    return draw_model_map(capture_style(style), Selection(layer=1, head=2, query=9, target=8, rival=20))


@cache
def map_of_size(placement: str, layers: int, heads: int) -> ModelMap:
    sizes = {"num_layers": layers, "num_heads": heads, "d_model": heads * 2, "d_ff": 4}
    lm = TransformerLM(replace(config(), norm_placement=placement, **sizes)).eval()
    return draw_model_map(capture(lm, [1, 2, 3]), Selection(rival=8))


@subtest_each("kind, placement", product(LAYOUTS, PLACEMENTS))
def test_layout_has_a_cell_for_every_head(kind, placement):
    for layers, heads in SIZES:
        check_head_cells(kind, placement, layers, heads)


def check_head_cells(kind: type, placement: str, layers: int, heads: int):
    sizes = {"num_layers": layers, "num_heads": heads, "d_model": heads * 8}
    plan = kind(replace(config(), norm_placement=placement, **sizes))
    cells = [plan.head(layer, head) for layer in range(layers) for head in range(heads)]
    spans = [plan.span(layer, "heads") for layer in range(layers)]
    assert sum((c - a) * (d - b) for a, b, c, d in cells) == pytest.approx(
        sum(last - first for first, last in spans) * (plan.heads[1] - plan.heads[0])
    )
    assert all(plan.start <= first and last <= plan.blocks_end for first, last in spans)
    assert plan.change_offsets() == sorted(set(plan.change_offsets()))
    columns = plan.head_columns
    for head in range(heads):
        left, upper, _, _ = plan.head(0, head)
        row, column = divmod(head, columns)
        assert (left, upper) == (plan.head(0, column)[0], plan.head(0, row * columns)[1])


def test_landscape_blocks_lie_between_edges():
    for layers, _heads in SIZES:
        plan = LandscapeLayout(replace(config(), num_layers=layers))
        assert (plan.start, plan.blocks_end) == (LANDSCAPE_LEFT, pytest.approx(LANDSCAPE_RIGHT))


def test_portrait_layers_are_stacked_with_equal_height():
    for layers, _heads in SIZES:
        plan = PortraitLayout(replace(config(), num_layers=layers), 5)
        tops = [plan.head(layer, 0)[1] for layer in range(layers)]
        np.testing.assert_allclose(np.diff(tops), plan.block_length)
        assert plan.size[0] == PORTRAIT_WIDTH and plan.size[1] > layers * plan.block_length


@pytest.mark.exhaustive
@subtest_each("style, size", MAPS)
def test_portrait_elements_are_large_enough_to_tap(style, size):
    """Rotations, norms and additions are smaller than the others, with nothing next to them."""
    diagram = draw_map(style, size)
    for part in diagram.parts:
        left, upper, right, lower = part.boxes[1]
        least = 22 if part.kind in ("norm", "addition", "rotation") else FINGER
        assert min(right - left, lower - upper) * TELEPHONE >= least, part
        if part.kind in ("token", "position", "lm_head", "next_token"):
            assert (lower - upper) * TELEPHONE >= 44, part


@subtest_each("model, kind", product(MAPS, LAYOUTS))
def test_elements_do_not_overlap_and_lines_end_at_them(model, kind):
    diagram = draw_map(*model)
    i = LAYOUTS.index(kind)
    sheet, boxes = diagram.sheets[i], [part.boxes[i] for part in diagram.parts]
    assert overlaps(boxes, boxes).max() < 0.01  # of a pixel
    width, height = sheet.size
    for left, upper, right, lower in [*boxes, sheet.scale, *(box for _, box in sheet.legend)]:
        assert 0 <= left < right <= width and 0 <= upper < lower <= height
    for line in sheet.lines:
        assert all(0 <= x <= width for x in line.corners[::2]) and all(0 <= y <= height for y in line.corners[1::2])
    ends = [line.corners[-2:] for line in sheet.lines]
    depths = overlaps([(*end, *end) for end in ends], boxes).max(axis=1)
    loose = [end for end, depth in zip(ends, depths, strict=True) if depth < -0.01]
    listed = next(part.boxes[i] for part in diagram.parts if part.kind == "next_token")
    assert [end[i] for end in loose] == [listed[i] - 3]  # the line to the list of next tokens ends right before it


def overlaps(boxes: list[Box], other_boxes: list[Box]) -> np.ndarray:
    """Return how far each box overlaps each other box, in the direction of smaller overlap; 0 for a box and itself."""
    (a, b, c, d), (e, f, g, h) = np.array(boxes, float).T, np.array(other_boxes, float).T
    across = np.minimum(c[:, None], g) - np.maximum(a[:, None], e)
    down = np.minimum(d[:, None], h) - np.maximum(b[:, None], f)
    overlap = np.minimum(across, down)
    if boxes is other_boxes:
        np.fill_diagonal(overlap, 0)
    return overlap


@subtest_each("style, size", MAPS)
def test_portrait_labels_overlap_nothing(style, size):
    """Word widths are upper bounds for most fonts."""
    diagram = draw_map(style, size)
    sheet, tokens = diagram.sheets[1], [part for part in diagram.parts if part.kind == "next_token"]
    word_boxes = [label_box(word) for word in sheet.labels]
    assert overlaps(word_boxes, word_boxes).max() < 1.5
    free = [label_box(word) for word in sheet.labels if word.kind != "token" and not is_inside_any(tokens, word)]
    element_boxes = [part.boxes[1] for part in diagram.parts]
    discs = [box for _, box in sheet.legend]
    assert overlaps(free, element_boxes + discs).max() < 1
    for left, upper, right, lower in word_boxes:
        assert left >= 0 and upper >= 0 and right <= sheet.size[0] and lower <= sheet.size[1]


def is_inside_any(parts, word: MapLabel) -> bool:
    return any(
        left < word.x < right and upper < word.y < lower
        for left, upper, right, lower in (part.boxes[1] for part in parts)
    )


def label_box(word: MapLabel) -> Box:
    """Return the approximate box of a label."""
    size = SIZE.get(word.kind, 11)
    width = 0.57 * size * len(word.text.strip("\u2068\u2069"))
    left = word.x - {"start": 0, "middle": 0.5, "end": 1}[word.side] * width
    return left, word.y - 0.55 * size, left + width, word.y + 0.55 * size


def test_portrait_map_grows_with_listed_next_tokens():
    five, seven = (PortraitLayout(config(), count) for count in (5, 7))
    assert seven.size[1] - five.size[1] == 2 * (five.next_token(1)[1] - five.next_token(0)[1])


def test_numbers_are_omitted_without_room():
    for layers, has_numbers in ((12, True), (24, False)):
        wide, tall = ([word.text for word in sheet.labels] for sheet in map_of_size("pre", layers, 2).sheets)
        assert ("length it writes" in wide) is has_numbers
        assert "layer" in wide and [str(layer) for layer in range(layers)] == wide[wide.index("layer") + 1 :][:layers]
        assert [text for text in tall if text.startswith("layer ")] == [f"layer {layer}" for layer in range(layers)]


def test_elements_are_labelled_where_there_is_room():
    for (layers, heads), wide in {
        (2, 4): {"head", "o_proj", "feed_forward"},
        (12, 12): {"head"},
        (48, 25): set(),
    }.items():
        sheets = map_of_size("pre", layers, heads).sheets
        named = {"token", "position", "lm_head"}
        assert [set(sheet.labelled_kinds) - named for sheet in sheets] == [wide, {"head", "o_proj", "feed_forward"}]
