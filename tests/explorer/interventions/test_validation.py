"""Validation of an intervention's positions and indices against a model."""

import pytest

from explorer.interventions import PositionSet, index_axis, make_intervention, parse_intervention
from tests.subtest_loops import each_style, subtest_each


@each_style
def test_index_is_checked_against_captured_shape(trace):
    for tap, value in trace.values.items():
        size = index_axis(tap).size(trace.config)
        assert size == (len(value) if value.ndim == 3 else value.shape[-1]), tap
        make_intervention(tap, "zero", index=size - 1).check(trace.config, trace.values)
        for index in (size, -1):
            with pytest.raises(ValueError, match=f"{tap} has [a-z ]+s 0 to {size - 1}, got {index}"):
                make_intervention(tap, "zero", index=index).check(trace.config, trace.values)


@each_style
def test_missing_tap_is_refused(trace):
    for tap in ("rope.angles", "position_embed", "blocks.2.attn.z"):
        intervention = make_intervention(tap, "zero")
        if tap in trace:
            intervention.check(trace.config, trace.values)
        else:
            with pytest.raises(ValueError, match=f"no value {tap} that could be changed"):
                intervention.check(trace.config, trace.values)


def test_positions_are_parsed_and_simplified():
    positions = PositionSet.parse("3-5.9.20-")
    assert [position for position in range(25) if position in positions] == [3, 4, 5, 9, *range(20, 25)]
    assert str(PositionSet.parse("9.3.4.5-6.4-5")) == "3-6.9"
    assert str(PositionSet.parse("7-.3-9")) == "3-"
    assert str(PositionSet.parse("3-5.7")) == "3-5.7" and 6 not in PositionSet.parse("3-5.7")
    assert PositionSet.parse(None) is None and str(PositionSet.parse(7)) == "7"


@pytest.mark.parametrize("text", ["embed@32*zero", "embed@3-40*zero", "blocks.0.attn.pattern@31-*mask*32"])
def test_position_beyond_context_is_refused(tiny_config, text):
    with pytest.raises(ValueError, match=f"this model sees positions 0 to 31, got {text[-2:]}|got 32|got 40"):
        parse_intervention(text).check(tiny_config, [parse_intervention(text).tap])


@each_style
def test_invalid_direction_is_refused(trace):
    for direction, message in (
        ("unembed.300", "token ids run from 0 to 299, got 300"),
        ("ov.0.9.0", "heads run from 0 to"),
    ):
        with pytest.raises(ValueError, match=message):
            make_intervention("embed", "add", 1, by=direction).check(trace.config, trace.values)


@each_style
@subtest_each(
    ("text", "message"),
    [
        ("blocks.*.attn.pattern.6@9*drop*4", "has heads 0 to [25], got 6"),
        ("blocks.*.attn.pattern@32*drop*4", "positions 0 to 31, got 32"),
        ("blocks.*.attn.z*zero", r"no value blocks\.\*\.attn\.z that could be changed"),
    ],
)
def test_invalid_all_layer_intervention_is_refused(trace, text, message):
    with pytest.raises(ValueError, match=message):
        parse_intervention(text).check(trace.config, trace.values)
