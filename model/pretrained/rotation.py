"""How another's model turns its queries and keys."""

from typing import Any

import torch
from torch import Tensor

from model.config import ModelConfig
from model.pretrained.settings import Settings
from model.rope_scaling import RopeScaling


def rotation(
    settings: Settings, unsaid: float = 1.0, parameters: dict[str, Any] | None = None
) -> tuple[float, RopeScaling | None, int | None]:
    """θ, how the frequencies are slowed, and how many dimensions of a head turn, None where all do; older files have
    them as fields of their own. `unsaid` is the share of the dimensions that turn where none is named; `parameters` are
    those to be read in the place of the config's."""
    said = settings.get("rope_parameters") or settings.get("rope_scaling") or {}
    found = Settings(dict(said if parameters is None else parameters))
    older_theta = settings.get("rope_theta") or settings.get("rotary_emb_base", 10000.0)
    theta = found.get("rope_theta") or older_theta
    older_share = settings.get("partial_rotary_factor") or settings.get("rotary_pct", unsaid)
    share = found.get("partial_rotary_factor") or older_share
    d_head = settings.get("head_dim") or settings["hidden_size"] // settings["num_attention_heads"]
    kind = found.get("rope_type") or found.get("type", "default")
    scaling = None
    if kind == "linear":
        scaling = RopeScaling(kind="linear", factor=found["factor"])
    elif kind == "llama3":
        scaling = RopeScaling(
            kind="llama3",
            factor=found["factor"],
            low_frequency_factor=found["low_freq_factor"],
            high_frequency_factor=found["high_freq_factor"],
            original_context_length=found["original_max_position_embeddings"],
        )
    else:
        found.only("rope_type", "default")
        found.only("type", "default")
    found.get("type")
    found.finish()
    return theta, scaling, int(d_head * share) if share != 1 else None


def turning_first(weight: Tensor, config: ModelConfig) -> Tensor:
    """Rows of q_proj or k_proj, or of their biases, in our order: (heads · d, …) -> the same shape.

    Where some dimensions of a head turn, theirs are the first r in two halves, and the others come after those; ours
    are the first of each half of all d. Scores do not care in which order dimensions are listed.
    """
    turning, still = config.turned_dims // 2, (config.d_head - config.turned_dims) // 2
    first, second, rest, last = weight.unflatten(0, (-1, config.d_head)).split((turning, turning, still, still), dim=1)
    return torch.cat((first, rest, second, last), dim=1).flatten(0, 1)
