"""How another's model turns its queries and keys."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from model.config import ModelConfig
from model.errors import ModelError
from model.pretrained.settings import Settings
from model.rope_scaling import RopeScaling


def rotation(
    settings: Settings, parameters: dict[str, Any] | None = None
) -> tuple[float, RopeScaling | None, int | None]:
    """θ, how the frequencies are slowed, and how many dimensions of a head turn, None where all do; older files have
    them as fields of their own. `parameters` are those to be read in the place of the config's.

    Raises:
        ModelError: the rotation is slowed in a way that is not known here, or lacks a number that it needs.
    """
    name = "rope_scaling" if settings.get("rope_scaling") else "rope_parameters"
    found = settings.read_object(name, (settings.get(name) or {}) if parameters is None else parameters)
    theta = found.number("rope_theta") or settings.number("rope_theta") or settings.number("rotary_emb_base")
    d_head = settings.size("head_dim") or settings.size("hidden_size") // settings.size("num_attention_heads")
    rotary_dim = rotary_width(settings, found, d_head)
    kind = found.get("rope_type") or found.get("type", "default")
    found.get("type")
    if kind == "su" or (kind == "yarn" and settings["model_type"] == "phi3"):  # as LongRoPE was called at first
        kind = "longrope"
    if not isinstance(kind, str) or kind not in SCALINGS:
        raise ModelError(
            "rope_type {got!r} is not understood, only {known}", got=kind, known=", ".join(sorted(SCALINGS))
        )
    scaling = SCALINGS[kind](found, settings)
    return theta, scaling, rotary_dim


def rotary_width(settings: Settings, found: Settings, d_head: int) -> int | None:
    """Return how many dimensions of a head turn; None: all do, but in families that have a field for their share.

    Raises:
        ModelError: they are more than there are, none, or not an even number.
    """
    for name in ("partial_rotary_factor", "rotary_pct"):
        if settings.reads(name):
            share = found.number("partial_rotary_factor") or settings.number(name)
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


def limit_context(config: ModelConfig) -> ModelConfig:
    """The config with no more positions than LongRoPE's short factors are for: one token more would turn all of them
    otherwise, those before it as well."""
    scaling = config.rope_scaling
    if scaling is None or scaling.kind != "longrope":
        return config
    return replace(config, context_length=min(config.context_length, scaling.original_context_length))


def _read_linear(found: Settings, settings: Settings) -> RopeScaling:
    return RopeScaling(kind="linear", factor=found["factor"])


def _read_llama3(found: Settings, settings: Settings) -> RopeScaling:
    return RopeScaling(
        kind="llama3",
        factor=found["factor"],
        low_frequency_factor=found["low_freq_factor"],
        high_frequency_factor=found["high_freq_factor"],
        original_context_length=_original_context_length(found, settings),
    )


def _read_yarn(found: Settings, settings: Settings) -> RopeScaling:
    original = _original_context_length(found, settings)
    factor = found.number("factor") or settings.size("max_position_embeddings") / original
    fast, slow = found.number("beta_fast") or 32, found.number("beta_slow") or 1
    numerator, denominator = found.number("mscale"), found.number("mscale_all_dim")
    attention_factor = found.number("attention_factor")
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
        rounds_ramp=found.get("truncate", True),
        attention_factor=attention_factor,
    )


def _yarn_scale(factor: float, weight: float = 1.0) -> float:
    """0.1 ln s + 1 (Peng et al. 2023, eq. 22), its slope times `weight`."""
    return 0.1 * weight * math.log(factor) + 1.0


def _read_longrope(found: Settings, settings: Settings) -> RopeScaling:
    original = _original_context_length(found, settings)
    found.get("long_factor")  # of texts longer than `limit_context` lets be
    factor = found.number("factor") or settings.size("max_position_embeddings") / original
    attention_factor = found.number("attention_factor")
    if attention_factor is None:
        attention_factor = math.sqrt(1 + math.log(factor) / math.log(original)) if factor > 1 else 1.0
    return RopeScaling(
        kind="longrope",
        factor=max(factor, 1.0),
        original_context_length=original,
        pair_factors=tuple(found["short_factor"]),
        attention_factor=attention_factor,
    )


def _ignore_dynamic(found: Settings, settings: Settings) -> None:
    """Dynamic NTK changes θ for texts longer than max_position_embeddings alone, and this model reads none."""
    found.get("factor")


SCALINGS: dict[str, Callable[[Settings, Settings], RopeScaling | None]] = {
    "default": lambda found, settings: None,
    "linear": _read_linear,
    "dynamic": _ignore_dynamic,
    "llama3": _read_llama3,
    "yarn": _read_yarn,
    "longrope": _read_longrope,
}


def _original_context_length(found: Settings, settings: Settings) -> int:
    """Positions in training: a field of the config comes before the same of its rotation, as with transformers."""
    of_rotation = found.size("original_max_position_embeddings")
    of_config = settings.size("original_max_position_embeddings")
    length = of_config or of_rotation or settings.size("max_position_embeddings")
    if length < 2:
        raise ModelError("{name} must be at least 2, got {got}", name="original_max_position_embeddings", got=length)
    return length


def turning_first(weight: Tensor, config: ModelConfig) -> Tensor:
    """Rows of q_proj or k_proj, or of their biases, in our order: (heads · d, …) -> the same shape.

    Where some dimensions of a head turn, theirs are the first r in two halves, and the others come after those; ours
    are the first of each half of all d. Scores do not care in which order dimensions are listed.
    """
    turning, still = config.turned_dims // 2, (config.d_head - config.turned_dims) // 2
    first, second, rest, last = weight.unflatten(0, (-1, config.d_head)).split((turning, turning, still, still), dim=1)
    return torch.cat((first, rest, second, last), dim=1).flatten(0, 1)
