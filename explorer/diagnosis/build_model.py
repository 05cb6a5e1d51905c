"""Build a `TransformerLM` with the weights of another module."""

import torch

from explorer.diagnosis.match_weights import WeightMatch
from explorer.errors import UserError
from explorer.translations import _
from model.checkpoint_reader import check_weights, weight_shapes
from model.config import ModelConfig
from model.errors import ModelError
from model.transformer_lm import TransformerLM
from model.weight_placement import build_model


def build_with_weights(config: ModelConfig, match: WeightMatch) -> TransformerLM:
    """Build a float32 model in eval mode without gradients; a bias that the module lacks is 0.

    Raises:
        UserError: the weights are not those of the config; the message names the first.
    """
    weights = {}
    for name, location in match.locations.items():
        weights[f"{name}.weight"] = location.weight
        if location.bias is not None:
            weights[f"{name}.bias"] = location.bias
    if config.tie_embeddings:
        weights.pop("lm_head.weight", None)
    for name, shape in weight_shapes(config):
        if name.endswith(".bias") and name not in weights:
            weights[name] = torch.zeros(shape)
    weights = {name: weight.to("cpu", torch.float32, copy=True).contiguous() for name, weight in weights.items()}
    try:
        check_weights(config, {name: tuple(weight.shape) for name, weight in weights.items()})
    except ModelError as error:
        raise UserError(
            _(
                "The module’s weights do not fit a model with {sizes}: {why}",
                sizes=format_sizes(config),
                why=error,
            )
        ) from None
    return build_model(config, weights.items())


def format_sizes(config: ModelConfig) -> str:
    """Format a config's main sizes as NAME=VALUE."""
    names = "vocab_size", "d_model", "num_layers", "num_heads", "d_ff"
    return ", ".join(f"{name}={getattr(config, name)}" for name in names)
