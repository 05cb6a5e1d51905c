import html
import json
import re
from dataclasses import replace

import pytest

from explorer.analysis.next_token import next_token_distribution
from explorer.state.generation_settings import GenerationSettings
from explorer.web.layout import PRESETS
from explorer.web.widgets.next_token import MAX_MATCHES, NUM_ROWS, NextTokenTable, SamplingPresets
from model.generation.autoregressive import generate

SETTINGS = GenerationSettings(temperature=0.9, top_k=8)


@pytest.fixture
def widget_value(trace):
    """Function that returns the widget's value at a position of the captured run: `packed(position)`."""

    def pack_position(position: int, settings: GenerationSettings = SETTINGS, find: str = "") -> dict:
        prediction = next_token_distribution(trace, position, settings.temperature, settings.top_k, seed=settings.seed)
        value = NextTokenTable.pack(prediction, trace.vocabulary, settings, find)
        assert json.loads(json.dumps(value, allow_nan=False)) == value
        return value

    return pack_position


def test_every_row_has_a_cell_and_its_arithmetic_for_every_stage(trace, widget_value):
    value = widget_value(4)
    assert len(value["rows"]) == NUM_ROWS
    for row in value["rows"]:
        assert len(row["cells"]) == len(row["notes"]) == len(value["columns"])
        assert row["token"] == trace.vocabulary[row["id"]]
        assert row["cut"] == (row["probability"] == 0)


def test_the_token_of_the_text_and_the_one_drawn_are_shown_wherever_they_rank(trace, widget_value):
    for position in range(len(trace) - 1):
        value = widget_value(position)
        assert value["actual"] == trace.token_ids[position + 1]
        row_ids = {row["id"] for row in value["rows"]}
        assert {value["actual"], value["drawn"]} <= row_ids and len(row_ids) == NUM_ROWS
        assert value["drawn"] in {stretch["id"] for stretch in value["stretches"]}
    assert widget_value(len(trace) - 1)["actual"] is None


def test_the_pick_is_what_generating_would_draw(trace, widget_value, lms, style):
    position = len(trace) - 1
    for seed in range(5):
        settings = replace(SETTINGS, seed=seed)
        limits = {"temperature": settings.temperature, "top_k": settings.top_k, "seed": seed}
        (step,) = generate(lms[style], trace.token_ids, max_new_tokens=1, **limits)
        value = widget_value(position, settings)
        assert (value["drawn"], value["u"]) == (step.token_id, step.u)


def test_settings_move_the_stretches_and_never_the_random_number(widget_value):
    cold, hot = (widget_value(3, replace(SETTINGS, temperature=temperature)) for temperature in (0.0, 2.0))
    assert cold["u"] == hot["u"]
    assert [(stretch["start"], stretch["end"]) for stretch in cold["stretches"]] == [(0, 1)]
    assert len(hot["stretches"]) > 1


def test_tokens_looked_for_are_shown_besides(trace, widget_value):
    before, value = widget_value(2), widget_value(2, find="e")
    matches = [row for row in value["rows"] if row["found"]]
    assert len(matches) == value["found"] == MAX_MATCHES
    assert all("e" in row["token"].lower() for row in matches)
    assert {row["id"] for row in before["rows"]} <= {row["id"] for row in value["rows"]}
    assert widget_value(2, find="no such token")["found"] == 0
    last = len(trace.vocabulary) - 1
    assert last in {row["id"] for row in widget_value(2, find=str(last))["rows"]}


def test_presets_are_settings_and_travel_to_the_script():
    widget = SamplingPresets(PRESETS)
    preset_texts = re.findall(r'data-settings="([^"]*)">([^<]*)<', widget.html)
    assert {name: json.loads(html.unescape(settings)) for settings, name in preset_texts} == PRESETS
    for settings in PRESETS.values():
        assert replace(GenerationSettings(), **settings).validate()
        assert settings.keys() == PRESETS["balanced"].keys()
    assert replace(GenerationSettings(), **PRESETS["balanced"]) == GenerationSettings()
