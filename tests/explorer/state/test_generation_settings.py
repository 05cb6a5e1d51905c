import math
from inspect import signature

import pytest

from explorer.state.generation_settings import MAX_STOP_CHARS, RANGES, GenerationSettings
from model.generation.autoregressive import generate
from tests.subtest_loops import subtest_each

DEFAULTS = GenerationSettings()


@subtest_each("name", RANGES)
def test_invalid_value_keeps_default(name):
    for value in (None, "", "x", [1], {}, math.nan, "nan", b"\xff", 10**400, -(10**400)):
        assert GenerationSettings.parse({name: value}) == DEFAULTS


@subtest_each("name", RANGES)
def test_out_of_range_value_is_clamped(name):
    low, high = RANGES[name]
    for value in (-1, -1e300, -math.inf, "-5", "-inf"):
        assert getattr(GenerationSettings.parse({name: value}), name) == low, value
    for value in (10**12, 1e300, math.inf, "9" * 400, "inf"):
        assert getattr(GenerationSettings.parse({name: value}), name) == high, value


def test_parsed_settings_are_typed_and_valid():
    read = GenerationSettings.parse({"temperature": "0.5", "top_k": 7.0, "max_new_tokens": "12", "seed": 2**32 - 1})
    assert read == GenerationSettings(0.5, 7, 12, 2**32 - 1)
    assert [type(value) for value in read.as_dict().values()] == [float, int, int, int, float, float, float, str]
    assert read.validate() is read


def test_settings_round_trip():
    settings = GenerationSettings(0.35, 0, 512, 123456789, 0.9, 0.05, 1.2, "\n\n")
    assert GenerationSettings.parse(settings.as_dict()) == settings
    assert GenerationSettings.parse({name: str(value) for name, value in settings.as_dict().items()}) == settings


@subtest_each("name", RANGES)
def test_validate_accepts_only_range(name):
    low, high = RANGES[name]
    for value in (low, high):
        GenerationSettings(**{name: value}).validate()
    for value in (low - 1, high + 1, math.nan):
        with pytest.raises(ValueError, match=f"{name} must be {low} to {high}, got"):
            GenerationSettings(**{name: value}).validate()


def test_defaults_are_valid():
    assert DEFAULTS.validate() == GenerationSettings.parse({})


@pytest.mark.parametrize("value", [None, 5, ["a", "b"], {"a": 1}, b"x"], ids=str)
def test_non_text_stop_string_is_ignored(value):
    assert GenerationSettings.parse({"stop_strings": value}) == DEFAULTS


@pytest.mark.parametrize("value", ["", "The End", "\n", "<b>${1}", "ﷺ" * 64])
def test_any_short_stop_string_is_accepted(value):
    settings = GenerationSettings.parse({"stop_strings": value})
    assert settings.validate().stop_strings == value


def test_long_stop_string_is_cut_or_refused():
    assert GenerationSettings.parse({"stop_strings": "x" * 10**6}).stop_strings == "x" * MAX_STOP_CHARS
    for value in ("x" * 65, None, ["."]):
        with pytest.raises(ValueError, match="stop_strings must be a text of at most 64 characters"):
            GenerationSettings(stop_strings=value).validate()


def test_settings_are_arguments_of_generate():
    parameters = signature(generate).parameters
    assert set(DEFAULTS.as_dict()) <= set(parameters)
    off = {name: getattr(DEFAULTS, name) for name in ("top_p", "min_p", "repetition_penalty", "stop_strings")}
    assert off == {"top_p": 1, "min_p": 0, "repetition_penalty": 1, "stop_strings": ""}
