"""Rotary position embeddings of a Hugging Face config."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from model.config import ModelConfig, RopeScaling
from model.errors import ModelError
from model.pretrained.config_reader import HFConfigReader


def parse_rope(
    settings: HFConfigReader, parameters: dict[str, Any] | None = None
) -> tuple[float, RopeScaling | None, int | None]:
    """Return θ, the scaling of the frequencies, and the number of rotated dimensions per head, None for all.

    Older files have them as fields of their own. `parameters` replace those of the config.

    Raises:
        ModelError: the kind of scaling is not supported, or lacks a number that it needs.
    """
    name = "rope_scaling" if settings.get("rope_scaling") else "rope_parameters"
    rope = settings.read_object(name, (settings.get(name) or {}) if parameters is None else parameters)
    theta = rope.number("rope_theta") or settings.number("rope_theta") or settings.number("rotary_emb_base")
    d_head = settings.size("head_dim") or settings.size("hidden_size") // settings.size("num_attention_heads")
    rotary_dim = rotary_width(settings, rope, d_head)
    kind = rope.get("rope_type") or rope.get("type", "default")
    rope.get("type")
    if kind == "su" or (kind == "yarn" and settings["model_type"] == "phi3"):  # as LongRoPE was called at first
        kind = "longrope"
    if not isinstance(kind, str) or kind not in SCALINGS:
        raise ModelError(
            "rope_type {got!r} is not understood, only {known}", got=kind, known=", ".join(sorted(SCALINGS))
        )
    scaling = SCALINGS[kind](rope, settings)
    return theta, scaling, rotary_dim


def rotary_width(settings: HFConfigReader, rope: HFConfigReader, d_head: int) -> int | None:
    """Return the number of rotated dimensions per head; None for all, unless the family has a field for the share.

    Raises:
        ModelError: it is more than the head's width, 0, or odd.
    """
    for name in ("partial_rotary_factor", "rotary_pct"):
        if settings.reads(name):
            share = rope.number("partial_rotary_factor") or settings.number(name)
            width = int(d_head * share)
            if width % 2 or not 0 < width <= d_head:
                raise ModelError(
                    "{name} {got!r} turns {width} of a head’s {all} dimensions: it must be an even number of them",
                    name=name,
                    got=share,
                    width=width,
                    all=d_head,
                )
            return width if width < d_head else None
    return None


def limit_longrope_context(config: ModelConfig) -> ModelConfig:
    """Limit the context to the length that LongRoPE's short factors are for.

    One token more would change the rotation of all positions.
    """
    scaling = config.rope_scaling
    if scaling is None or scaling.kind != "longrope":
        return config
    return replace(config, context_length=min(config.context_length, scaling.original_context_length))


def _read_linear(rope: HFConfigReader, settings: HFConfigReader) -> RopeScaling:
    return RopeScaling(kind="linear", factor=rope["factor"])


def _read_llama3(rope: HFConfigReader, settings: HFConfigReader) -> RopeScaling:
    return RopeScaling(
        kind="llama3",
        factor=rope["factor"],
        low_frequency_factor=rope["low_freq_factor"],
        high_frequency_factor=rope["high_freq_factor"],
        original_context_length=_original_context_length(rope, settings),
    )


def _read_yarn(rope: HFConfigReader, settings: HFConfigReader) -> RopeScaling:
    original = _original_context_length(rope, settings)
    factor = rope.number("factor") or settings.size("max_position_embeddings") / original
    fast, slow = rope.number("beta_fast") or 32, rope.number("beta_slow") or 1
    numerator, denominator = rope.number("mscale"), rope.number("mscale_all_dim")
    attention_factor = rope.number("attention_factor")
    if attention_factor is None and numerator and denominator:
        attention_factor = _yarn_scale(factor, numerator) / _yarn_scale(factor, denominator)
    elif attention_factor is None:
        attention_factor = _yarn_scale(factor)
    return RopeScaling(
        kind="yarn",
        factor=factor,
        low_frequency_factor=slow,
        high_frequency_factor=fast,
        original_context_length=original,
        rounds_ramp=rope.get("truncate", True),
        attention_factor=attention_factor,
    )


def _yarn_scale(factor: float, weight: float = 1.0) -> float:
    """Return 0.1 ln s + 1 (Peng et al. 2023, eq. 22), its slope times `weight`."""
    return 0.1 * weight * math.log(factor) + 1.0


def _read_longrope(rope: HFConfigReader, settings: HFConfigReader) -> RopeScaling:
    original = _original_context_length(rope, settings)
    rope.get("long_factor")  # of texts longer than `limit_longrope_context` lets be
    factor = rope.number("factor") or settings.size("max_position_embeddings") / original
    attention_factor = rope.number("attention_factor")
    if attention_factor is None:
        attention_factor = math.sqrt(1 + math.log(factor) / math.log(original)) if factor > 1 else 1.0
    return RopeScaling(
        kind="longrope",
        factor=max(factor, 1.0),
        original_context_length=original,
        pair_factors=tuple(rope["short_factor"]),
        attention_factor=attention_factor,
    )


def _ignore_dynamic(rope: HFConfigReader, settings: HFConfigReader) -> None:
    """Return None: dynamic NTK changes θ only for texts longer than max_position_embeddings.

    This model reads no longer ones.
    """
    rope.get("factor")


SCALINGS: dict[str, Callable[[HFConfigReader, HFConfigReader], RopeScaling | None]] = {
    "default": lambda found, settings: None,
    "linear": _read_linear,
    "dynamic": _ignore_dynamic,
    "llama3": _read_llama3,
    "yarn": _read_yarn,
    "longrope": _read_longrope,
}


def _original_context_length(rope: HFConfigReader, settings: HFConfigReader) -> int:
    """Return the positions in training; as in transformers, the config's field takes precedence over the rotation's."""
    rope_length = rope.size("original_max_position_embeddings")
    config_length = settings.size("original_max_position_embeddings")
    length = config_length or rope_length or settings.size("max_position_embeddings")
    if length < 2:
        raise ModelError("{name} must be at least 2, got {got}", name="original_max_position_embeddings", got=length)
    return length


def reorder_rotary_rows(weight: Tensor, config: ModelConfig) -> Tensor:
    """Reorder the rows of q_proj or k_proj, or of their biases, to our layout: (heads · d, …), same shape.

    If only r dimensions of a head are rotated, the file has them first, in two halves, then the others; we have
    them first in each half of all d. Scores do not depend on the order of dimensions.
    """
    num_rotated, num_fixed = config.num_rotary_dims // 2, (config.d_head - config.num_rotary_dims) // 2
    first, second, rest, last = weight.unflatten(0, (-1, config.d_head)).split(
        (num_rotated, num_rotated, num_fixed, num_fixed), dim=1
    )
    return torch.cat((first, rest, second, last), dim=1).flatten(0, 1)
