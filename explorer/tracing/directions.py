"""Directions in the residual stream, computed from a model's weights or from its stream over prompts."""

from collections.abc import Callable

import numpy as np

from explorer.architecture.residual_stream import output_norm
from explorer.errors import UserError
from explorer.interventions import DirectionSpec, Prompts
from explorer.tracing.weight_matrices import Matrix
from explorer.translations import _
from model.config import ModelConfig

MeanStream = Callable[[int, Prompts], np.ndarray]  # layer, prompts -> (D,), see `explorer.tracing.forward_hooks`
Weights = Callable[[str], Matrix]


def direction_unit_vector(
    config: ModelConfig, weights: Weights, spec: DirectionSpec, mean_stream: MeanStream
) -> np.ndarray:
    """Return the unit vector of a direction, (D,) float64.

    Raises:
        UserError: the model lacks what the spec names, or the direction is 0.
    """
    spec.check(config)
    if spec.kind == "means":
        vector = np.subtract(*(mean_stream(*spec.numbers, prompts) for prompts in spec.lists))
    else:
        vector = VECTORS[spec.kind](config, weights, *spec.numbers)
    norm = np.linalg.norm(vector)
    if not norm > 0:
        message = _("{direction} is 0 and points nowhere: name another direction")
        raise UserError(message.format(direction=spec.describe()))
    return vector / norm


def token_unembedding_direction(config: ModelConfig, weights: Weights, token_id: int) -> np.ndarray:
    """Return a token's row of the unembedding, (D,): its product with the final norm's output is the token's logit."""
    return weights("lm_head.weight")[token_id].astype(np.float64)


def unembedding_difference(config: ModelConfig, weights: Weights, token_id: int, other_id: int) -> np.ndarray:
    """Return the first token's row of the unembedding minus the second's, (D,)."""
    return token_unembedding_direction(config, weights, token_id) - token_unembedding_direction(
        config, weights, other_id
    )


def neuron_output_direction(config: ModelConfig, weights: Weights, layer: int, neuron: int) -> np.ndarray:
    """Return a neuron's column of W_down, (D,), after the output norm if there is one, up to its divisor."""
    column = weights(f"blocks.{layer}.ffn.down_proj.weight")[:, [neuron]].astype(np.float64)
    return sublayer_contribution(config, weights, layer, "ffn", column)[:, 0]


def head_output_direction(config: ModelConfig, weights: Weights, layer: int, head: int, rank: int) -> np.ndarray:
    """Return the left singular vector of a head's W_O W_V at a rank, (D,); rank 0 has the largest singular value.

    The sign is chosen so that the entry of largest magnitude is positive. If a norm is applied between W_O and the
    stream, its weight is applied, but not its divisor.
    """
    d, block = config.d_head, f"blocks.{layer}.attn"
    group = head * config.kv_heads // config.num_heads  # the head of values that serves this one
    output = weights(f"{block}.o_proj.weight")[:, head * d : (head + 1) * d].astype(np.float64)  # (D, d)
    output = sublayer_contribution(config, weights, layer, "attn", output)
    values = weights(f"{block}.v_proj.weight")[group * d : (group + 1) * d].astype(np.float64)  # (d, D)
    basis, rest = np.linalg.qr(output)  # W_O W_V = Q (R W_V): the small factor has the singular values of the product
    left, _sizes, _right = np.linalg.svd(rest @ values, full_matrices=False)
    vector = basis @ left[:, rank]
    return vector * np.sign(vector[np.abs(vector).argmax()])


def sublayer_contribution(
    config: ModelConfig, weights: Weights, layer: int, sublayer: str, vectors: np.ndarray
) -> np.ndarray:
    """Return what a sublayer's outputs, (D, N), add to the stream.

    If the sublayer has an output norm, its centring and weight are applied, but not its divisor.
    """
    norm = output_norm(config, layer, sublayer)
    if norm is None:
        return vectors
    centred = vectors - vectors.mean(0) if config.norm == "layernorm" else vectors
    return centred * weights(f"{norm}.weight")[:, None]


VECTORS: dict[str, Callable[..., np.ndarray]] = {
    "unembed": token_unembedding_direction,
    "difference": unembedding_difference,
    "neuron": neuron_output_direction,
    "ov": head_output_direction,
}
