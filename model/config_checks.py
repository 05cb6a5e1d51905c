"""Validation of a model's config."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from model.errors import ModelError

if TYPE_CHECKING:
    from model.config import ModelConfig

SWITCHES = ("bias", "qkv_bias", "unbiased_qkv", "unembedding_bias", "qk_norm", "tie_embeddings", "scale_embeddings")
MAX_SIZE = 1 << 28  # larger than any model; the product of two still fits in 64 bits
MAX_LAYERS = 10_000  # no model has half as many


def check_config(config: "ModelConfig", choices: Mapping[str, tuple[str, ...]]):
    """Check all fields, alone and together.

    Args:
        choices: field -> its allowed words.

    Raises:
        ValueError: a field is out of its range; the message names it and the valid range.
    """
    _check_sizes(config)
    _check_choices(config, choices)
    _check_numbers(config)
    _check_layers(config)
    _check_heads(config)


def check_size(name: str, value: Any, max_size: int):
    """Raise ModelError unless the value of the named field is an integer from 1 to `max_size`."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ModelError("{name} must be a positive integer, got {got!r}", name=name, got=value)
    if value > max_size:
        raise ModelError("{name} must be at most {most:,}, got {got:,}", name=name, most=max_size, got=value)


def is_number(value: Any) -> bool:
    """Return whether a value is an int or float, not a bool."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_window(value: Any) -> bool:
    return value is None or (isinstance(value, int) and not isinstance(value, bool) and value > 0)


def _check_sizes(config: "ModelConfig"):
    sizes = ["vocab_size", "context_length", "d_model", "num_layers", "num_heads", "d_ff"]
    sizes += [name for name in ("num_kv_heads", "head_dim", "rotary_dim") if getattr(config, name) is not None]
    for name in sizes:
        check_size(name, getattr(config, name), MAX_LAYERS if name == "num_layers" else MAX_SIZE)


def _check_choices(config: "ModelConfig", choices: Mapping[str, tuple[str, ...]]):
    for name, allowed in choices.items():
        if getattr(config, name) not in allowed:
            raise ModelError(
                "{name} must be one of {known}, got {got!r}",
                name=name,
                known=", ".join(allowed),
                got=getattr(config, name),
            )
    switches = [*SWITCHES, *(["ffn_bias"] if config.ffn_bias is not None else [])]
    for name in switches:
        if not isinstance(getattr(config, name), bool):
            raise ModelError("{name} must be true or false, got {got!r}", name=name, got=getattr(config, name))


def _check_numbers(config: "ModelConfig"):
    for name in ("dropout", "attention_dropout"):
        value = getattr(config, name)
        if not is_number(value) or not 0 <= value < 1:
            raise ModelError("{name} must be a number in [0, 1), got {got!r}", name=name, got=value)
    numbers = "rope_theta", "norm_eps", "embedding_multiplier"
    optional = "score_divisor", "score_cap", "logit_cap", "local_rope_theta"
    for name in (*numbers, *(name for name in optional if getattr(config, name) is not None)):
        value = getattr(config, name)
        if not is_number(value) or not 0 < value < math.inf:
            raise ModelError("{name} must be a positive number, got {got!r}", name=name, got=value)


def _check_layers(config: "ModelConfig"):
    if not isinstance(config.windows, tuple) or not config.windows or not all(map(_is_window, config.windows)):
        raise ModelError(
            "windows must be a list of positive integers, or null where a layer has none, got {got!r}",
            got=config.windows,
        )
    rotary_layers = config.rotary_layers
    if (
        not isinstance(rotary_layers, tuple)
        or not rotary_layers
        or not all(isinstance(flag, bool) for flag in rotary_layers)
    ):
        raise ModelError("rotary_layers must be a list of true or false, got {got!r}", got=rotary_layers)


def _check_heads(config: "ModelConfig"):
    if config.head_dim is None and config.d_model % config.num_heads:
        raise ModelError(
            "num_heads must divide d_model, got {heads} heads for d_model {width}",
            heads=config.num_heads,
            width=config.d_model,
        )
    if config.num_heads % config.kv_heads:
        raise ModelError(
            "num_kv_heads must divide num_heads, got {groups} for {heads} heads",
            groups=config.num_kv_heads,
            heads=config.num_heads,
        )
    if config.position == "rope" and config.d_head % 2:
        raise ModelError("RoPE needs an even head width, got {got}", got=config.d_head)
    if config.position == "rope" and (config.num_rotary_dims % 2 or config.num_rotary_dims > config.d_head):
        raise ModelError(
            "rotary_dim must be even and at most the head width {width}, got {got}",
            width=config.d_head,
            got=config.rotary_dim,
        )
    if config.position == "sinusoidal" and config.d_model % 2:
        raise ModelError("sinusoidal positions need an even d_model, got {got}", got=config.d_model)
