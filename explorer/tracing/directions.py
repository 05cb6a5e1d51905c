"""Directions in the residual stream, worked out from a model's weights or from its stream over prompts."""

from collections.abc import Callable

import numpy as np

from explorer.architecture.stream import output_norm
from explorer.language import _
from explorer.state.errors import UserError
from explorer.state.interventions import Prompts, Recipe
from explorer.tracing.matrices import Matrix
from model.config import ModelConfig

MeanStream = Callable[[int, Prompts], np.ndarray]  # layer, prompts -> (D,), see `explorer.tracing.mean_stream`
Weights = Callable[[str], Matrix]


def direction(config: ModelConfig, weights: Weights, recipe: Recipe, mean_stream: MeanStream) -> np.ndarray:
    """(D,) in float64, of length 1; UserError where the model has not what the recipe names, or that is 0."""
    recipe.check(config)
    if recipe.kind == "means":
        vector = np.subtract(*(mean_stream(*recipe.numbers, prompts) for prompts in recipe.lists))
    else:
        vector = VECTORS[recipe.kind](config, weights, *recipe.numbers)
    length = np.linalg.norm(vector)
    if not length > 0:
        told = _("{direction} is 0 and points nowhere: name another direction")
        raise UserError(told.format(direction=recipe.words()))
    return vector / length


def unembedding(config: ModelConfig, weights: Weights, token_id: int) -> np.ndarray:
    """(D,) the row of the unembedding, whose product with what the final norm gives out is the token's logit."""
    return weights("lm_head.weight")[token_id].astype(np.float64)


def difference(config: ModelConfig, weights: Weights, token_id: int, other_id: int) -> np.ndarray:
    """(D,) the first token's row less the second's."""
    return unembedding(config, weights, token_id) - unembedding(config, weights, other_id)


def written_by_neuron(config: ModelConfig, weights: Weights, layer: int, neuron: int) -> np.ndarray:
    """(D,) the neuron's column of W_down, or what a norm adds to the stream of it, but for the length."""
    column = weights(f"blocks.{layer}.ffn.down_proj.weight")[:, [neuron]].astype(np.float64)
    return added_of(config, weights, layer, "ffn", column)[:, 0]


def written_by_head(config: ModelConfig, weights: Weights, layer: int, head: int, rank: int) -> np.ndarray:
    """(D,) of W_O W_V, what a head makes of the vector that it reads, the left singular vector of a rank, 0 that of the
    largest singular value. Its largest number is positive: a singular vector has no sign of its own. Where a norm
    stands between W_O and the stream, it goes through that, but for the divisor."""
    d, block = config.d_head, f"blocks.{layer}.attn"
    group = head * config.kv_heads // config.num_heads  # the head of values that serves this one
    output = weights(f"{block}.o_proj.weight")[:, head * d : (head + 1) * d].astype(np.float64)  # (D, d)
    output = added_of(config, weights, layer, "attn", output)
    values = weights(f"{block}.v_proj.weight")[group * d : (group + 1) * d].astype(np.float64)  # (d, D)
    basis, rest = np.linalg.qr(output)  # W_O W_V = Q (R W_V): the small factor has the singular values of the product
    left, _sizes, _right = np.linalg.svd(rest @ values, full_matrices=False)
    vector = basis @ left[:, rank]
    return vector * np.sign(vector[np.abs(vector).argmax()])


def added_of(config: ModelConfig, weights: Weights, layer: int, sublayer: str, vectors: np.ndarray) -> np.ndarray:
    """What is added to the stream where a sublayer gives out vectors (D, N): they themselves, or what its norm makes of
    them, but for what that divides by."""
    norm = output_norm(config, layer, sublayer)
    if norm is None:
        return vectors
    centred = vectors - vectors.mean(0) if config.norm == "layernorm" else vectors
    return centred * weights(f"{norm}.weight")[:, None]


VECTORS: dict[str, Callable[..., np.ndarray]] = {
    "unembed": unembedding,
    "difference": difference,
    "neuron": written_by_neuron,
    "ov": written_by_head,
}
