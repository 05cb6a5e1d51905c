import json
from dataclasses import replace

import numpy as np
import pytest

from explorer.state.selection import Selection
from explorer.tracing.capture import capture
from explorer.views.overview import draw_model_map
from explorer.views.overview.map_parts import MapArrangement, MapLabel, MapLine, MapPart, ModelMap
from explorer.web.browser_api.page_contents import figure_payload
from explorer.web.widgets.figure import ModelMapWidget
from model.transformer_lm import TransformerLM
from tests.subtest_loops import each_style

MAX_JSON_BYTES = {(6, 6): 28_000, (12, 12): 70_000, (24, 16): 150_000}  # bytes of JSON by layers and heads


def test_map_is_packed_completely():
    wide = MapArrangement(
        size=(90, 40),
        lines=[MapLine("residual", (0, 1, 2, 3), 4.567, arrow=True)],
        labels=[MapLabel(1, 2, "three", "sum", "end")],
        labelled_kinds=("head", "o_proj"),
        legend=[("norm", (1, 1, 2, 2))],
        scale=(0, 0, 9, 1),
    )
    diagram = ModelMap(
        parts=[
            MapPart(
                "head",
                ((1, 2, 3.456, 4), (2, 1, 4, 3)),
                "layer 0",
                {"view": "attention", "head": 1},
                value=-0.5,
                label="1",
            ),
            MapPart("norm", ((5, 6, 7, 8), (6, 5, 8, 7)), "a\nb", {}),
        ],
        sheets=(wide, MapArrangement((40, 90.0), [], [], (), [], (0, 0, 1, 9))),
        largest=0.5,
        alt="A small map.",
    )
    assert json.loads(json.dumps(ModelMapWidget.pack(diagram))) == {
        "alt": "A small map.",
        "largest": 0.5,
        "parts": [
            ["head", [[1, 2, 3.46, 4], [2, 1, 4, 3]], "layer 0", {"view": "attention", "head": 1}, -0.5, "1"],
            ["norm", [[5, 6, 7, 8], [6, 5, 8, 7]], "a\nb", {}, None, ""],
        ],
        "sheets": [
            {
                "size": [90, 40],
                "lines": [["residual", [0, 1, 2, 3], 4.57, True]],
                "words": [[1, 2, "three", "sum", "end"]],
                "written": ["head", "o_proj"],
                "legend": [["norm", [1, 1, 2, 2]]],
                "scale": [0, 0, 9, 1],
            },
            {"size": [40, 90], "lines": [], "words": [], "written": [], "legend": [], "scale": [0, 0, 1, 9]},
        ],
    }


@each_style
def test_numbers_are_packed_as_drawn(trace):
    diagram = draw_model_map(trace, Selection(query=9))
    sent = json.loads(json.dumps(figure_payload(diagram), allow_nan=False))
    for part, (_, boxes, *fields) in zip(diagram.parts, sent["parts"], strict=True):
        assert fields == [part.hover_text, part.selects, part.value, part.label]
        np.testing.assert_allclose(boxes, part.boxes, atol=0.005)


@pytest.mark.parametrize(("layers", "heads"), MAX_JSON_BYTES)
def test_packed_map_is_small(tiny_config, layers, heads):
    lm = TransformerLM(replace(tiny_config, num_layers=layers, num_heads=heads, d_model=2 * heads, d_ff=4)).eval()
    payload = figure_payload(draw_model_map(capture(lm, [1, 2, 3]), Selection()))
    sent = json.dumps(payload, ensure_ascii=False, separators=(",", ":"))
    assert len(sent.encode()) < MAX_JSON_BYTES[layers, heads]


def test_map_reserves_its_size_before_drawing():
    assert "--min-width:900px;--ratio:900/416" in ModelMapWidget(height=416, min_width=900).html
