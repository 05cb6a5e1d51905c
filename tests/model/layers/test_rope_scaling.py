import math
from types import SimpleNamespace

import pytest
import torch

from model.config import RopeScaling
from model.layers.positions import RotaryPositionalEmbedding, rotary_attention_factors, rotary_frequencies
from tests.subtest_loops import subtest_each

THETA, D_HEAD = 500000.0, 64
PLAIN = rotary_frequencies(THETA, D_HEAD)
LLAMA3 = RopeScaling(
    kind="llama3", factor=8.0, low_frequency_factor=1.0, high_frequency_factor=4.0, original_context_length=8192
)


def scaled_frequencies(kind: str, factor: float, **settings) -> torch.Tensor:
    return rotary_frequencies(THETA, D_HEAD, RopeScaling(kind=kind, factor=factor, **settings))


@pytest.mark.parametrize(
    ("scaling", "theirs"),
    [
        (RopeScaling(kind="linear", factor=4.0), {"rope_type": "linear", "factor": 4.0}),
        (
            LLAMA3,
            {
                "rope_type": "llama3",
                "factor": 8.0,
                "low_freq_factor": 1.0,
                "high_freq_factor": 4.0,
                "original_max_position_embeddings": 8192,
            },
        ),
        (
            RopeScaling(kind="yarn", factor=4.0, high_frequency_factor=32.0, original_context_length=64),
            {
                "rope_type": "yarn",
                "factor": 4.0,
                "beta_slow": 1.0,
                "beta_fast": 32.0,
                "original_max_position_embeddings": 64,
                "attention_factor": 1,
            },
        ),
    ],
    ids=["linear", "llama3", "yarn"],
)
def test_rope_scaling_matches_transformers(scaling, theirs):
    pytest.importorskip("transformers")
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

    parameters = theirs | {"rope_theta": THETA}
    config = SimpleNamespace(rope_parameters=parameters, head_dim=D_HEAD, standardize_rope_params=lambda: None)
    config.hidden_size, config.num_attention_heads = D_HEAD, 1  # read by yarn
    expected, attention_factor = ROPE_INIT_FUNCTIONS[theirs["rope_type"]](config, device="cpu")
    assert attention_factor == 1
    torch.testing.assert_close(rotary_frequencies(THETA, D_HEAD, scaling).float(), expected)
    assert (expected - PLAIN).abs().max() > 1e-5


def test_linear_scaling_divides_positions():
    """Position 4 m has the angles of position m without scaling."""
    plain = RotaryPositionalEmbedding(THETA, D_HEAD)
    squeezed = RotaryPositionalEmbedding(THETA, D_HEAD, RopeScaling(kind="linear", factor=4))
    torch.testing.assert_close(squeezed(4 * torch.arange(100)), plain(torch.arange(100)))


def test_ntk_keeps_highest_and_divides_lowest_frequency():
    frequencies = scaled_frequencies("ntk", 4.0)
    assert frequencies[0] == PLAIN[0] == 1
    assert frequencies[-1].item() == pytest.approx(PLAIN[-1].item() / 4)
    base = THETA * 4 ** (D_HEAD / (D_HEAD - 2))
    expected = torch.tensor([base ** (-2 * i / D_HEAD) for i in range(D_HEAD // 2)], dtype=torch.float64)
    torch.testing.assert_close(frequencies, expected)


def test_ntk_keeps_single_pair():
    assert rotary_frequencies(THETA, 2, RopeScaling(kind="ntk", factor=4)).tolist() == [1]


def test_llama3_keeps_high_and_divides_low_frequencies():
    ratio = PLAIN / rotary_frequencies(THETA, D_HEAD, LLAMA3)
    turns = 8192 * PLAIN / (2 * math.pi)
    fast, slow = turns > 4, turns < 1
    between = ~(fast | slow)
    torch.testing.assert_close(ratio[fast], torch.ones_like(ratio[fast]))
    torch.testing.assert_close(ratio[slow], torch.full_like(ratio[slow], 8))
    assert ((ratio[between] > 1) & (ratio[between] < 8)).all()
    assert fast.any() and slow.any() and between.any()
    assert (ratio.diff() >= -1e-9).all()


@pytest.mark.parametrize("kind", ["linear", "ntk", "llama3"])
def test_factor_of_1_changes_nothing(kind):
    torch.testing.assert_close(scaled_frequencies(kind, 1), PLAIN)


@subtest_each(
    ("change", "message"),
    [
        ({"kind": "su"}, "the kind of RoPE scaling must be one of linear, ntk, llama3, yarn, longrope, got 'su'"),
        ({"kind": None}, "the kind of RoPE scaling must be one of linear, ntk, llama3, yarn, longrope, got None"),
        ({"factor": 0.5}, "the factor of RoPE scaling must be a number of at least 1, got 0.5"),
        ({"factor": "2"}, "the factor of RoPE scaling must be a number of at least 1, got '2'"),
        ({"factor": True}, "the factor of RoPE scaling must be a number of at least 1, got True"),
        ({"factor": math.inf}, "the factor of RoPE scaling must be a number of at least 1, got inf"),
        ({"factor": math.nan}, "the factor of RoPE scaling must be a number of at least 1, got nan"),
        ({"low_frequency_factor": 0}, "low_frequency_factor must be positive and below high_frequency_factor, got 0"),
        ({"low_frequency_factor": 4}, "must be positive and below high_frequency_factor, got 4 and 4.0"),
        ({"low_frequency_factor": "1"}, "must be positive and below high_frequency_factor, got '1' and 4.0"),
        ({"high_frequency_factor": None}, "must be positive and below high_frequency_factor, got 1.0 and None"),
        ({"high_frequency_factor": math.nan}, "must be positive and below high_frequency_factor, got 1.0 and nan"),
        ({"original_context_length": 0}, "original_context_length must be a positive integer, got 0"),
        ({"original_context_length": 8e3}, "original_context_length must be a positive integer, got 8000.0"),
        ({"original_context_length": True}, "original_context_length must be a positive integer, got True"),
        ({"attention_factor": 0}, "attention_factor must be a positive number, got 0"),
        ({"rounds_ramp": 1}, "rounds_ramp must be true or false, got 1"),
        ({"pair_factors": (2.0,)}, "pair_factors belong to longrope alone, which needs them"),
        ({"kind": "longrope"}, "pair_factors belong to longrope alone, which needs them"),
        ({"kind": "longrope", "pair_factors": (1.0, 0)}, "pair_factors must be positive numbers, one a pair"),
    ],
)
def test_invalid_setting_is_refused_by_name(change, message):
    with pytest.raises(ValueError, match=message):
        RopeScaling(**({"kind": "llama3", "factor": 8.0} | change))


@pytest.mark.parametrize("scaling", [None, RopeScaling(kind="linear", factor=2)])
def test_partial_rotary_dim_rotates_first_pairs(scaling):
    frequencies = rotary_frequencies(THETA, D_HEAD, scaling, 4)
    expected = torch.tensor([1, THETA ** (-2 / 4)], dtype=torch.float64) / (2 if scaling else 1)
    torch.testing.assert_close(frequencies[:2], expected)
    assert frequencies[2:].tolist() == [0.0] * (D_HEAD // 2 - 2)


def test_attention_factor_applies_only_to_rotated_pairs():
    scaling = RopeScaling(kind="yarn", factor=4, original_context_length=64, attention_factor=1.2)
    assert rotary_attention_factors(D_HEAD, scaling, 4).tolist() == [1.2] * 2 + [1.0] * (D_HEAD // 2 - 2)
