import json
from dataclasses import FrozenInstanceError, asdict, fields, replace

import pytest

from model.config import SWITCHES, ModelConfig, RopeScaling
from tests.subtest_loops import subtest_each

# A config.json from before any setting that is not in it existed.
OLD_CONFIG = {
    "vocab_size": 4096,
    "context_length": 256,
    "d_model": 192,
    "num_layers": 6,
    "num_heads": 6,
    "d_ff": 512,
    "rope_theta": 10000.0,
    "norm": "rmsnorm",
    "position": "rope",
    "ffn": "swiglu",
    "dropout": 0.1,
    "norm_eps": 1e-05,
    "tie_embeddings": True,
}


def test_config_round_trips_through_dict(tiny_config):
    assert ModelConfig.from_dict(asdict(tiny_config)) == tiny_config


def test_config_is_frozen_and_hashable(tiny_config):
    with pytest.raises(FrozenInstanceError):
        tiny_config.d_model = 8
    assert hash(tiny_config) == hash(replace(tiny_config))


def test_heads_share_model_width(tiny_config):
    assert tiny_config.d_head * tiny_config.num_heads == tiny_config.d_model


def test_llama_style_settings():
    config = ModelConfig.llama_style(vocab_size=300, context_length=32, d_model=192, num_layers=1, num_heads=6)
    assert (config.norm, config.position, config.ffn) == ("rmsnorm", "rope", "swiglu")
    assert config.d_ff == 512  # 8/3 · 192, a multiple of 64 already


def test_gpt_style_settings():
    sizes = {"vocab_size": 300, "context_length": 32, "d_model": 192, "num_layers": 1, "num_heads": 6}
    config = ModelConfig.gpt_style(**sizes)
    assert (config.norm, config.position, config.ffn, config.bias) == ("layernorm", "sinusoidal", "relu", True)
    assert (config.norm_placement, config.qk_norm, config.kv_heads) == ("pre", False, 6)
    assert config.d_ff == 768


@pytest.mark.parametrize("style", [ModelConfig.llama_style, ModelConfig.gpt_style])
def test_style_keeps_given_settings(style):
    settings = {"vocab_size": 300, "context_length": 32, "d_model": 192, "num_layers": 1, "num_heads": 6}
    settings |= {"d_ff": 100, "position": "learned", "ffn": "gelu", "norm": "rmsnorm", "bias": False, "dropout": 0.3}
    config = style(**settings)
    assert {name: getattr(config, name) for name in settings} == settings


def test_every_setting_round_trips_through_json(tiny_config):
    """No field has its default."""
    config = replace(
        tiny_config,
        num_kv_heads=1,
        head_dim=10,
        norm="layernorm",
        norm_placement="post",
        norm_eps=1e-6,
        qk_norm_over="all",
        position="learned",
        rope_theta=5e5,
        local_rope_theta=1e4,
        rope_layout="half_split",
        rotary_dim=4,
        score_divisor=2.0,
        score_cap=50.0,
        logit_cap=30.0,
        windows=(None, 5),
        rotary_layers=(True, False),
        embedding_multiplier=3.0,
        rope_scaling=RopeScaling(
            kind="llama3",
            factor=8.0,
            low_frequency_factor=1.5,
            high_frequency_factor=3.0,
            original_context_length=16,
        ),
        ffn="gelu_tanh",
        ffn_bias=False,
        dropout=0.1,
        attention_dropout=0.2,
        **dict.fromkeys(SWITCHES, True),
    )
    assert ModelConfig.from_dict(json.loads(json.dumps(asdict(config)))) == config
    assert [f.name for f in fields(config) if getattr(config, f.name) == f.default] == []


def test_old_config_keeps_its_meaning():
    config = ModelConfig.from_dict(OLD_CONFIG)
    assert asdict(config) == asdict(ModelConfig.llama_style(**OLD_CONFIG))
    assert (config.kv_heads, config.norm_placement, config.rope_layout) == (6, "pre", "adjacent")
    assert (config.rope_scaling, config.attention_dropout) == (None, 0)
    assert [name for name in SWITCHES if getattr(config, name)] == ["tie_embeddings"]


def test_kv_heads_default_to_num_heads(tiny_config):
    assert tiny_config.num_kv_heads is None and tiny_config.kv_heads == 3
    assert replace(tiny_config, num_kv_heads=1).kv_heads == 1


@subtest_each(
    ("change", "message"),
    [
        ({"d_model": 0}, "d_model must be a positive integer, got 0"),
        ({"num_layers": 2.0}, "num_layers must be a positive integer, got 2.0"),
        ({"vocab_size": True}, "vocab_size must be a positive integer, got True"),
        ({"d_ff": "40"}, "d_ff must be a positive integer, got '40'"),
        ({"num_heads": 5}, "num_heads must divide d_model, got 5 heads for d_model 24"),
        ({"num_heads": 8}, "RoPE needs an even head width, got 3"),
        ({"ffn_bias": 0}, "ffn_bias must be true or false, got 0"),
        ({"norm": "batchnorm"}, "norm must be one of rmsnorm.*, got 'batchnorm'"),
        ({"position": None}, "position must be one of rope.*, got None"),
        ({"ffn": ["swiglu"]}, "ffn must be one of swiglu.*, got"),
        ({"dropout": 1.0}, r"dropout must be a number in \[0, 1\), got 1.0"),
        ({"dropout": "0"}, "dropout must be a number"),
        ({"rope_theta": 0}, "rope_theta must be a positive number, got 0"),
        ({"rope_theta": float("inf")}, "rope_theta must be a positive number, got inf"),
        ({"norm_eps": float("nan")}, "norm_eps must be a positive number, got nan"),
        ({"tie_embeddings": 1}, "tie_embeddings must be true or false, got 1"),
        ({"num_kv_heads": 0}, "num_kv_heads must be a positive integer, got 0"),
        ({"num_kv_heads": True}, "num_kv_heads must be a positive integer, got True"),
        ({"num_kv_heads": 2}, "num_kv_heads must divide num_heads, got 2 for 3 heads"),
        ({"head_dim": 0}, "head_dim must be a positive integer, got 0"),
        ({"head_dim": 7}, "RoPE needs an even head width, got 7"),
        ({"rotary_dim": 3}, "rotary_dim must be even and at most the head width 8, got 3"),
        ({"rotary_dim": 10}, "rotary_dim must be even and at most the head width 8, got 10"),
        ({"windows": ()}, r"windows must be a list of positive integers, or null where a layer has none, got \(\)"),
        ({"windows": (5, 0)}, r"windows must be a list of positive integers, or null .*, got \(5, 0\)"),
        ({"windows": 5}, "windows must be a list of positive integers, or null .*, got 5"),
        ({"rotary_layers": ()}, r"rotary_layers must be a list of true or false, got \(\)"),
        ({"rotary_layers": (1, 0)}, r"rotary_layers must be a list of true or false, got \(1, 0\)"),
        ({"embedding_multiplier": 0}, "embedding_multiplier must be a positive number, got 0"),
        ({"score_divisor": 0}, "score_divisor must be a positive number, got 0"),
        ({"num_kv_heads": 6}, "num_kv_heads must divide num_heads, got 6 for 3 heads"),
        ({"norm_placement": "both"}, "norm_placement must be one of pre, post, .*, sandwich, got 'both'"),
        ({"logit_cap": 0}, "logit_cap must be a positive number, got 0"),
        ({"rope_layout": "halves"}, "rope_layout must be one of adjacent, half_split, got 'halves'"),
        ({"ffn": "gelu_new"}, "ffn must be one of swiglu, geglu, relu, relu2, gelu, gelu_tanh, got 'gelu_new'"),
        ({"position": "alibi"}, "position must be one of rope, sinusoidal, learned, none, got 'alibi'"),
        ({"rope_scaling": {"kind": "linear", "factor": 2}}, "rope_scaling must be a RopeScaling or None, got {"),
        ({"attention_dropout": 1}, r"attention_dropout must be a number in \[0, 1\), got 1"),
        ({"attention_dropout": -0.1}, r"attention_dropout must be a number in \[0, 1\), got -0.1"),
        ({"dropout": False}, r"dropout must be a number in \[0, 1\), got False"),
        ({"rope_theta": True}, "rope_theta must be a positive number, got True"),
        ({"norm_eps": 0}, "norm_eps must be a positive number, got 0"),
        *[({name: None}, f"{name} must be true or false, got None") for name in SWITCHES],
        *[
            ({name: -1}, f"{name} must be a positive integer, got -1")
            for name in ("vocab_size", "context_length", "d_model", "num_layers", "num_heads", "d_ff", "num_kv_heads")
        ],
    ],
)
def test_invalid_setting_is_refused_by_name(tiny_config, change, message):
    with pytest.raises(ValueError, match=message):
        replace(tiny_config, **change)


def test_odd_head_width_is_allowed_without_rope(tiny_config):
    assert replace(tiny_config, num_heads=8, position="none").d_head == 3


def test_sinusoidal_positions_require_even_width(tiny_config):
    odd = replace(tiny_config, d_model=15, position="learned")
    with pytest.raises(ValueError, match="sinusoidal positions need an even d_model, got 15"):
        replace(odd, position="sinusoidal")


def test_unknown_or_missing_setting_is_named(tiny_config):
    with pytest.raises(
        ValueError, match="unknown model setting d_modle; known are attention_dropout, bias, context_length"
    ):
        ModelConfig.from_dict(asdict(tiny_config) | {"d_modle": 3})
    incomplete = asdict(tiny_config)
    del incomplete["d_model"]
    with pytest.raises(ValueError, match="incomplete model config.*d_model"):
        ModelConfig.from_dict(incomplete)


@pytest.mark.parametrize("values", [[], [1], None, "x"])
def test_non_object_config_is_refused(values):
    with pytest.raises(ValueError, match="a model config is an object of named settings, got"):
        ModelConfig.from_dict(values)
