"""How rotary positions are slowed, as a file says it."""

from dataclasses import asdict

import pytest

from model.config import ModelConfig
from model.rope_scaling import ROPE_SCALINGS, RopeScaling

# A config.json from before there was a choice of anything that is not named here.
SCALING = {"kind": "linear", "factor": 2.0}


@pytest.mark.parametrize("kind", ROPE_SCALINGS)
def test_a_file_may_name_only_what_a_scaling_needs(tiny_config, kind):
    values = asdict(tiny_config) | {"rope_scaling": {"kind": kind, "factor": 2}}
    assert ModelConfig.from_dict(values).rope_scaling == RopeScaling(kind=kind, factor=2)


@pytest.mark.parametrize(
    ("scaling", "message"),
    [
        (SCALING | {"kind": "yarn"}, "the kind of RoPE scaling must be one of linear, ntk, llama3, got 'yarn'"),
        (SCALING | {"factor": "2"}, "the factor of RoPE scaling must be a number of at least 1, got '2'"),
        (SCALING | {"rope_type": "linear"}, "rope_type"),
        ({"kind": "linear"}, "factor"),
        ("linear", "rope_scaling must be a RopeScaling or None, got 'linear'"),
        ([], r"rope_scaling must be a RopeScaling or None, got \[\]"),
        (2.0, "rope_scaling must be a RopeScaling or None, got 2.0"),
    ],
    ids=str,
)
def test_a_scaling_in_a_file_that_is_none_is_refused(tiny_config, scaling, message):
    with pytest.raises(ValueError, match=message):
        ModelConfig.from_dict(asdict(tiny_config) | {"rope_scaling": scaling})
