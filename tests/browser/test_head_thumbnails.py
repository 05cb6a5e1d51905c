"""Thumbnails of all heads as painted: pixels, readout at the pointer, and clicks."""

import numpy as np
from playwright.sync_api import Locator, expect

from explorer.views.style import LIGHT

from .person import Person
from .pixels import capture_visible_run, iterate_themes, read_pixels, scale_colours

COLUMN_NUMBERS = "(buttons) => buttons.map((button) => getComputedStyle(button, '::before').content)"


def head_image(person: Person, layer: int, head: int) -> Locator:
    return person.grid.locator(f"[data-layer='{layer}'][data-head='{head}'] img")


def cell_offset(image: Locator, size: int, query: int, key: int) -> dict[str, float]:
    """Return the middle of a cell in the image's own pixels."""
    box = image.bounding_box()
    return {"x": box["width"] * (key + 0.5) / size, "y": box["height"] * (query + 0.5) / size}


def read_readout(person: Person) -> tuple[str, float]:
    """Return the readout at the pointer, and the weight at its end."""
    text = person.page.locator("#attention-heads .readout").text_content()
    return text, float(text.split()[-1])


def test_every_head_thumbnail_matches_trace_and_is_selectable(open_page):
    """The model's numbers of layers and heads differ."""
    person = open_page(checkpoint="gpt-twin", layer=0, head=0)
    trace = capture_visible_run(person)
    patterns = trace.stack("blocks.*.attn.pattern")
    assert patterns.shape[:2] == (3, 4) and person.grid.locator("img").count() == 12
    boxes = {}
    for theme in iterate_themes(person, person.grid):
        for layer, head in np.ndindex(3, 4):
            image = head_image(person, layer, head)
            expected = scale_colours(theme.sequential, np.rint(patterns[layer, head] * 255) / 255)
            assert (
                np.abs(read_pixels(image) - expected).max() <= 2
            )  # a weight between two bytes may be rounded either way
            assert f"layer {layer} head {head}" in image.locator("..").get_attribute("aria-label")
            boxes[layer, head] = image.bounding_box()
    assert [boxes[0, i]["x"] for i in range(4)] == sorted({box["x"] for box in boxes.values()})
    assert [boxes[i, 0]["y"] for i in range(3)] == sorted({box["y"] for box in boxes.values()})
    assert person.grid.locator(".head").evaluate_all(COLUMN_NUMBERS) == ['"0"', '"1"', '"2"', '"3"', *["none"] * 8]
    inspection = person.page.locator('[data-of="attention-heads"]')
    for layer, head, query, key in ((0, 3, 27, 2), (2, 1, 11, 11), (1, 2, 6, 0)):
        image = head_image(person, layer, head)
        offset = cell_offset(image, len(trace), query, key)
        image.hover(position=offset)
        readout_text, weight = read_readout(person)
        assert f"layer {layer} head {head}: query {query} " in readout_text and f"key {key}," in readout_text
        assert abs(weight - patterns[layer, head, query, key]) <= 0.008
        image.click(position=offset)
        person.expect_selected(layer=layer, head=head)  # selects the head only
        image.click(position=offset)
        person.expect_selected(layer=layer, head=head, query=query, key=key)
        expect(inspection).to_contain_text(f"({query}) → key")
    head_image(person, 0, 1).click(position=cell_offset(head_image(person, 0, 1), len(trace), 3, 20))
    person.expect_selected(layer=0, head=1, query=6, key=0)  # a masked cell selects the head only


def test_downsampled_pixel_is_maximum_of_its_cells(open_page):
    person = open_page(checkpoint="long-context", text="the owl and the moon " * 30, layer=0, head=0)
    trace = capture_visible_run(person)
    assert len(trace) > 96
    size = -(-len(trace) // 2)
    for head in (0, 1):
        whole = np.zeros((2 * size, 2 * size))
        whole[: len(trace), : len(trace)] = trace["blocks.0.attn.pattern"][head]
        largest = whole.reshape(size, 2, size, 2).max((1, 3))
        image = head_image(person, 0, head)
        expected = scale_colours(LIGHT.sequential, np.rint(largest * 255) / 255)
        assert np.abs(read_pixels(image) - expected).max() <= 2
        image.hover(position=cell_offset(image, size, 40, 5))
        readout_text, weight = read_readout(person)
        assert "query 80 " in readout_text and "key 10," in readout_text
        assert abs(weight - largest[40, 5]) <= 0.008
