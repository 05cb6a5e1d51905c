"""Configs of RoPE scaling."""

from dataclasses import asdict

import pytest

from model.config import ROPE_SCALINGS, ModelConfig, RopeScaling
from tests.subtest_loops import subtest_each

# A config.json from before there was a choice of anything that is not named here.
SCALING = {"kind": "linear", "factor": 2.0}


@pytest.mark.parametrize("kind", ROPE_SCALINGS)
def test_scaling_needs_only_required_settings(tiny_config, kind):
    pairs = {"pair_factors": [2.0] * (tiny_config.d_head // 2)} if kind == "longrope" else {}
    values = asdict(tiny_config) | {"rope_scaling": {"kind": kind, "factor": 2} | pairs}
    expected = RopeScaling(kind=kind, factor=2, pair_factors=tuple(pairs.get("pair_factors", ())))
    assert ModelConfig.from_dict(values).rope_scaling == expected


def test_longrope_needs_factor_per_pair(tiny_config):
    values = asdict(tiny_config) | {"rope_scaling": {"kind": "longrope", "factor": 2, "pair_factors": [1.0]}}
    with pytest.raises(ValueError, match="rope_scaling needs 4 pair_factors, one a pair, got 1"):
        ModelConfig.from_dict(values)


@subtest_each(
    ("scaling", "message"),
    [
        (
            SCALING | {"kind": "su"},
            "the kind of RoPE scaling must be one of linear, ntk, llama3, yarn, longrope, got 'su'",
        ),
        (SCALING | {"factor": "2"}, "the factor of RoPE scaling must be a number of at least 1, got '2'"),
        (SCALING | {"rope_type": "linear"}, "rope_type"),
        ({"kind": "linear"}, "factor"),
        ("linear", "rope_scaling must be a RopeScaling or None, got 'linear'"),
        ([], r"rope_scaling must be a RopeScaling or None, got \[\]"),
        (2.0, "rope_scaling must be a RopeScaling or None, got 2.0"),
    ],
    ids=str,
)
def test_invalid_scaling_is_refused(tiny_config, scaling, message):
    with pytest.raises(ValueError, match=message):
        ModelConfig.from_dict(asdict(tiny_config) | {"rope_scaling": scaling})
