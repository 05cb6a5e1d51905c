from dataclasses import FrozenInstanceError, asdict, replace

import pytest

from model.config import ModelConfig


def test_a_config_survives_the_way_through_a_dictionary(tiny_config):
    assert ModelConfig.from_dict(asdict(tiny_config)) == tiny_config


def test_a_config_is_frozen_and_hashable(tiny_config):
    with pytest.raises(FrozenInstanceError):
        tiny_config.d_model = 8
    assert hash(tiny_config) == hash(replace(tiny_config))


def test_the_heads_share_the_width(tiny_config):
    assert tiny_config.d_head * tiny_config.num_heads == tiny_config.d_model


def test_llama_style_is_what_it_says():
    config = ModelConfig.llama_style(vocab_size=300, context_length=32, d_model=192, num_layers=1, num_heads=6)
    assert (config.norm, config.position, config.ffn) == ("rmsnorm", "rope", "swiglu")
    assert config.d_ff == 512  # 8/3 · 192, a multiple of 64 already


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"d_model": 0}, "d_model must be a positive integer, got 0"),
        ({"num_layers": 2.0}, "num_layers must be a positive integer, got 2.0"),
        ({"vocab_size": True}, "vocab_size must be a positive integer, got True"),
        ({"d_ff": "40"}, "d_ff must be a positive integer, got '40'"),
        ({"num_heads": 5}, "num_heads must divide d_model, got 5 heads for d_model 24"),
        ({"num_heads": 8}, "RoPE needs an even head width, got d_model / num_heads = 3"),
        ({"norm": "batchnorm"}, "norm must be one of rmsnorm.*, got 'batchnorm'"),
        ({"position": None}, "position must be one of rope.*, got None"),
        ({"ffn": ["swiglu"]}, "ffn must be one of swiglu.*, got"),
        ({"dropout": 1.0}, r"dropout must be a number in \[0, 1\), got 1.0"),
        ({"dropout": "0"}, "dropout must be a number"),
        ({"rope_theta": 0}, "rope_theta must be a positive number, got 0"),
        ({"rope_theta": float("inf")}, "rope_theta must be a positive number, got inf"),
        ({"norm_eps": float("nan")}, "norm_eps must be a positive number, got nan"),
        ({"tie_embeddings": 1}, "tie_embeddings must be true or false, got 1"),
    ],
)
def test_a_setting_out_of_range_is_refused_by_name(tiny_config, change, message):
    with pytest.raises(ValueError, match=message):
        replace(tiny_config, **change)


def test_an_odd_head_width_is_fine_without_rope(tiny_config):
    assert replace(tiny_config, num_heads=8, position="none").d_head == 3


def test_an_unknown_or_missing_setting_is_named(tiny_config):
    with pytest.raises(
        ValueError, match="unknown model setting d_modle; known are attention_dropout, bias, context_length"
    ):
        ModelConfig.from_dict(asdict(tiny_config) | {"d_modle": 3})
    incomplete = asdict(tiny_config)
    del incomplete["d_model"]
    with pytest.raises(ValueError, match="incomplete model config.*d_model"):
        ModelConfig.from_dict(incomplete)


@pytest.mark.parametrize("values", [[], [1], None, "x"])
def test_a_config_that_is_no_object_is_refused(values):
    with pytest.raises(ValueError, match="a model config is an object of named settings, got"):
        ModelConfig.from_dict(values)
