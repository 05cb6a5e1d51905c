import html
import json
import re
from dataclasses import replace

import pytest

from explorer.analysis.next_token import next_token
from explorer.state.settings import GenerationSettings
from explorer.web.layout.sampling_panel import PRESETS
from explorer.web.widgets.distribution import FOUND, ROWS, Distribution
from explorer.web.widgets.presets import Presets
from model.generation.autoregressive import generate

SETTINGS = GenerationSettings(temperature=0.9, top_k=8)


@pytest.fixture
def packed(trace):
    """`packed(position)` is the widget's value at a position of the captured run."""

    def packed(position: int, settings: GenerationSettings = SETTINGS, find: str = "") -> dict:
        prediction = next_token(trace, position, settings.temperature, settings.top_k, seed=settings.seed)
        value = Distribution.pack(prediction, trace.vocabulary, settings, find)
        assert json.loads(json.dumps(value, allow_nan=False)) == value
        return value

    return packed


def test_every_row_has_a_cell_and_its_arithmetic_for_every_stage(trace, packed):
    value = packed(4)
    assert len(value["rows"]) == ROWS
    for row in value["rows"]:
        assert len(row["cells"]) == len(row["notes"]) == len(value["columns"])
        assert row["token"] == trace.vocabulary[row["id"]]
        assert row["cut"] == (row["probability"] == 0)


def test_the_token_of_the_text_and_the_one_drawn_are_shown_wherever_they_rank(trace, packed):
    for position in range(len(trace) - 1):
        value = packed(position)
        assert value["actual"] == trace.token_ids[position + 1]
        shown = {row["id"] for row in value["rows"]}
        assert {value["actual"], value["drawn"]} <= shown and len(shown) == ROWS
        assert value["drawn"] in {stretch["id"] for stretch in value["stretches"]}
    assert packed(len(trace) - 1)["actual"] is None


def test_the_pick_is_what_generating_would_draw(trace, packed, lms, style):
    position = len(trace) - 1
    for seed in range(5):
        settings = replace(SETTINGS, seed=seed)
        kept = {"temperature": settings.temperature, "top_k": settings.top_k, "seed": seed}
        (step,) = generate(lms[style], trace.token_ids, max_new_tokens=1, **kept)
        value = packed(position, settings)
        assert (value["drawn"], value["u"]) == (step.token_id, step.u)


def test_settings_move_the_stretches_and_never_the_random_number(packed):
    cold, hot = (packed(3, replace(SETTINGS, temperature=temperature)) for temperature in (0.0, 2.0))
    assert cold["u"] == hot["u"]
    assert [(stretch["start"], stretch["end"]) for stretch in cold["stretches"]] == [(0, 1)]
    assert len(hot["stretches"]) > 1


def test_tokens_looked_for_are_shown_besides(trace, packed):
    before, value = packed(2), packed(2, find="e")
    found = [row for row in value["rows"] if row["found"]]
    assert len(found) == value["found"] == FOUND
    assert all("e" in row["token"].lower() for row in found)
    assert {row["id"] for row in before["rows"]} <= {row["id"] for row in value["rows"]}
    assert packed(2, find="no such token")["found"] == 0
    last = len(trace.vocabulary) - 1
    assert last in {row["id"] for row in packed(2, find=str(last))["rows"]}


def test_presets_are_settings_and_travel_to_the_script():
    widget = Presets(PRESETS)
    told = re.findall(r'data-settings="([^"]*)">([^<]*)<', widget.html_template)
    assert {name: json.loads(html.unescape(settings)) for settings, name in told} == PRESETS
    for settings in PRESETS.values():
        assert replace(GenerationSettings(), **settings).checked()
        assert settings.keys() == PRESETS["balanced"].keys()
    assert replace(GenerationSettings(), **PRESETS["balanced"]) == GenerationSettings()
