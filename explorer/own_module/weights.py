"""A model of ours with another's weights."""

import torch

from explorer.language import _
from explorer.own_module.names import Match
from explorer.state.errors import UserError
from model.config import ModelConfig
from model.errors import ModelError
from model.reading import check_weights, model_of, weight_shapes
from model.transformer_lm import TransformerLM


def with_weights(config: ModelConfig, match: Match) -> TransformerLM:
    """In float32, in eval mode and without gradients; a bias that the module has not is 0.

    Raises:
        UserError: the weights are not those of the config; the message names the first.
    """
    weights = {}
    for name, part in match.parts.items():
        weights[f"{name}.weight"] = part.weight
        if part.bias is not None:
            weights[f"{name}.bias"] = part.bias
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
            _("The module’s weights are not those of a model with {sizes}: {why}", sizes=sizes_of(config), why=error)
        ) from None
    return model_of(config, weights).eval().requires_grad_(False)


def sizes_of(config: ModelConfig) -> str:
    names = "vocab_size", "d_model", "num_layers", "num_heads", "d_ff"
    return ", ".join(f"{name}={getattr(config, name)}" for name in names)
