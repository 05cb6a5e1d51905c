"""Granite 3 (IBM 2024): Llama with four multipliers (Yang et al. 2022, "Tensor Programs V").

Two are fields of our config: that of the embeddings, and that of the scores, as 1 / `score_divisor`. The other two
are multiplied into the weights, for the same function: a sublayer's output r (W x + b) = (r W) x + r b is all that
it adds to the stream, and logits (W x) / s are (W / s) x. If the unembedding is tied, the rows are W / s, and
embeddings are multiplied by s in addition. The products are computed in float32 and then rounded to the type of
the weights, as the products of activations that they replace are.
"""

import math
from dataclasses import replace

from model.config import ModelConfig
from model.pretrained import llama
from model.pretrained.config_reader import HFConfigFields

NAMES, convert_weight = llama.NAMES, llama.convert_weight
OUTPUT_PROJECTIONS = ("o_proj", "down_proj")


def parse_config(settings: HFConfigFields) -> ModelConfig:
    """Parse a `config.json` of the family; ModelError if a value is not supported."""
    config = llama.parse_config(settings)
    multipliers = {name: float(settings.number(name)) for name in ("embedding_multiplier", "logits_scaling")}
    settings.number("residual_multiplier")
    return replace(
        config,
        score_divisor=1 / settings.number("attention_multiplier"),
        embedding_multiplier=math.prod(multipliers.values())
        if config.tie_embeddings
        else multipliers["embedding_multiplier"],
    )


def weight_multiplier(name: str, settings: HFConfigFields, config: ModelConfig) -> float:
    """Return the factor to multiply into one of our weights, in place of Granite's multiplier of its output."""
    if name.startswith("blocks.") and name.split(".")[-2] in OUTPUT_PROJECTIONS:
        return settings.number("residual_multiplier")
    if name == ("token_embedding.weight" if config.tie_embeddings else "lm_head.weight"):
        return 1 / settings.number("logits_scaling")
    return 1.0
