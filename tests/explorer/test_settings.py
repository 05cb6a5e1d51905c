import math

import pytest

from explorer.settings import LIMITS, GenerationSettings

DEFAULTS = GenerationSettings()


@pytest.mark.parametrize("name", LIMITS)
@pytest.mark.parametrize(
    "value", [None, "", "x", [1], {}, math.nan, "nan", b"\xff", 10**400, -(10**400)], ids=lambda v: ascii(v)[:8]
)
def test_nonsense_leaves_the_default(name, value):
    assert GenerationSettings.parse({name: value}) == DEFAULTS


@pytest.mark.parametrize("name", LIMITS)
@pytest.mark.parametrize("value", [-1, -1e300, -math.inf, "-5", "-inf"], ids=lambda value: str(value)[:8])
def test_too_small_is_the_smallest(name, value):
    settings = GenerationSettings.parse({name: value})
    assert getattr(settings, name) == LIMITS[name][0]


@pytest.mark.parametrize("name", LIMITS)
@pytest.mark.parametrize("value", [10**12, 1e300, math.inf, "9" * 400, "inf"], ids=lambda v: str(v)[:8])
def test_too_large_is_the_largest(name, value):
    settings = GenerationSettings.parse({name: value})
    assert getattr(settings, name) == LIMITS[name][1]


def test_what_was_read_can_be_used():
    read = GenerationSettings.parse({"temperature": "0.5", "top_k": 7.0, "max_new_tokens": "12", "seed": 2**32 - 1})
    assert read == GenerationSettings(0.5, 7, 12, 2**32 - 1)
    assert [type(value) for value in read.as_dict().values()] == [float, int, int, int]
    assert read.checked() is read


def test_settings_are_read_back_as_they_were_written():
    settings = GenerationSettings(0.35, 0, 512, 123456789)
    assert GenerationSettings.parse(settings.as_dict()) == settings
    assert GenerationSettings.parse({name: str(value) for name, value in settings.as_dict().items()}) == settings


@pytest.mark.parametrize("name", LIMITS)
def test_checked_takes_the_limits_and_nothing_beyond(name):
    low, high = LIMITS[name]
    for value in (low, high):
        GenerationSettings(**{name: value}).checked()
    for value in (low - 1, high + 1, math.nan):
        with pytest.raises(ValueError, match=f"{name} must be {low} to {high}, got"):
            GenerationSettings(**{name: value}).checked()


def test_the_defaults_are_within_their_limits():
    assert DEFAULTS.checked() == GenerationSettings.parse({})
