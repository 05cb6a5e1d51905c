"""Texts on the map overlap neither each other nor other components, for every kind of model."""

import json

import pytest
from playwright.sync_api import Locator

from explorer.state.selection import Selection
from explorer.tracing.capture import capture
from explorer.tracing.trace import Trace
from explorer.views.overview import draw_model_map
from explorer.web.browser_api.page_contents import figure_payload
from model.config import ModelConfig
from model.transformer_lm import TransformerLM
from tests.exhaustive import exhaustive
from tests.sample_models import STYLES, capture_style

from .conftest import DESK
from .map_expectations import (
    MAP_TEXTS,
    TELEPHONE,
    open_map,
)
from .person import ANSWER, Person

SIZES = ((1, 1), (7, 3), (8, 8), (12, 12), (24, 14))  # layers and heads


def show_map(person: Person, figure: Locator, trace: Trace, selection: Selection):
    """Make the page draw the map of any run."""
    payload = figure_payload(draw_model_map(trace, selection))

    def swap(route):
        answer = route.fetch()
        lines = [json.loads(line) for line in answer.text().split("\n") if line]
        for line in lines:
            if "overview-map" in line.get("contents", {}):
                line["contents"]["overview-map"] = payload
        route.fulfill(response=answer, body="".join(f"{json.dumps(line)}\n" for line in lines))

    person.page.route(ANSWER, swap)
    with person.wait_for_redraw(figure):
        person.evaluate("actions.select({ query: (page.state.query + 1) % 10 })")
    person.wait_until_idle()
    person.page.unroute(ANSWER)


def make_deep_model(layers: int, heads: int) -> tuple[TransformerLM, Trace]:
    sizes = {"vocab_size": 50, "context_length": 8, "d_model": 2 * heads, "d_ff": 4}
    lm = TransformerLM(ModelConfig.llama_style(**sizes, num_layers=layers, num_heads=heads)).eval()
    return lm, capture(lm, [1, 2, 3])


@pytest.mark.parametrize(
    ("viewport", "styles", "sizes"),
    [
        pytest.param(DESK, list(STYLES)[::6], SIZES[::3], id="wide"),
        exhaustive(pytest.param(DESK, list(STYLES), SIZES, id="all, wide")),
        exhaustive(pytest.param(TELEPHONE, list(STYLES), SIZES, id="all, telephone")),
    ],
)
def test_map_texts_do_not_overlap(open_page, viewport, styles, sizes):
    """Covers all kinds of models, and models of many layers."""
    person, figure = open_map(open_page, viewport=viewport)
    for style in styles:
        show_map(person, figure, capture_style(style), Selection(query=9, target=8, rival=20))
        assert_texts_apart(figure)
    for layers, heads in sizes:
        _kept, trace = make_deep_model(layers, heads)
        show_map(person, figure, trace, Selection(query=2))
        assert_texts_apart(figure)


def assert_texts_apart(figure: Locator):
    boxes = figure.evaluate(MAP_TEXTS)
    left, top, right, bottom = boxes["sheet"]
    for i, (text, *edges) in enumerate(boxes["texts"]):
        assert edges[0] >= left - 0.5 and edges[1] >= top - 0.5, text
        assert edges[2] <= right + 0.5 and edges[3] <= bottom + 0.5, text
        for other, *around in boxes["texts"][:i]:
            assert overlap(edges, around) < 1.5, (text, other)
    for text, *edges in boxes["free"]:
        assert all(overlap(edges, around) < 2 for around in boxes["parts"]), text


def overlap(a: list[float], b: list[float]) -> float:
    """Return the number of pixels by which two boxes overlap, the smaller of both directions."""
    return min(min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1]))
