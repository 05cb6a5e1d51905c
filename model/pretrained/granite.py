"""Granite 3 (IBM 2024): built as Llama, with four multipliers (Yang et al. 2022, "Tensor Programs V").

Two are choices of our models: that of the embeddings, and that of the scores, which is 1 over what we divide by. The
other two are held by the weights, which say the same then: what a sublayer writes, r (W x + b) = (r W) x + r b, is all
that the stream ever gets of it, and logits (W x) / s are (W / s) x. Where the unembedding is the embedding table, the
rows are W / s, and embeddings are multiplied by s more. The products are made in float32 and then rounded to the type
of the weights, as are the products of activations that they stand for.
"""

import math
from dataclasses import replace

from model.config import ModelConfig
from model.pretrained import llama
from model.pretrained.settings import Settings

NAMES, moved = llama.NAMES, llama.moved
WRITING = ("o_proj", "down_proj")  # the maps whose results are added to the stream


def config_of(settings: Settings) -> ModelConfig:
    """The config that a `config.json` of the family stands for; ModelError where it says what is not understood."""
    config = llama.config_of(settings)
    known = {name: float(settings.number(name)) for name in ("embedding_multiplier", "logits_scaling")}
    settings.number("residual_multiplier")
    return replace(
        config,
        score_divisor=1 / settings.number("attention_multiplier"),
        embedding_multiplier=math.prod(known.values()) if config.tie_embeddings else known["embedding_multiplier"],
    )


def held(name: str, settings: Settings, config: ModelConfig) -> float:
    """What one of our weights is multiplied by, so that the model need not multiply what it gives."""
    if name.startswith("blocks.") and name.split(".")[-2] in WRITING:
        return settings.number("residual_multiplier")
    if name == ("token_embedding.weight" if config.tie_embeddings else "lm_head.weight"):
        return 1 / settings.number("logits_scaling")
    return 1.0
