"""Weight matrices, read in chunks, and directions of the residual stream that are computed from them."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

from explorer.architecture.residual_stream import output_norm
from explorer.errors import UserError
from explorer.interventions import DirectionSpec, Prompts
from explorer.translations import _
from model.config import ModelConfig

MAX_CHUNK_BYTES = 32 << 20  # of a part of a matrix that is read at a time, as float64


class StoredMatrix:
    """A matrix of 16-bit numbers, or on another device, without a copy of it.

    Indexing reads only the selected elements, and returns them as a float32 array.
    """

    def __init__(self, shape: tuple[int, ...], read: Callable[[tuple], np.ndarray]):
        """Create the matrix; `read` returns the elements of an index tuple, which may be empty."""
        self.shape, self.ndim, self._read = shape, len(shape), read

    def __getitem__(self, index: Any) -> np.ndarray:
        return self._read(index if isinstance(index, tuple) else (index,))

    def __len__(self) -> int:
        return self.shape[0]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """Return the whole matrix; the explorer never does this for an embedding table."""
        return np.array(self[()], dtype=dtype or np.float32)


Matrix = np.ndarray | StoredMatrix


def iter_chunks(matrix: Matrix, rows: slice = slice(None)) -> Iterator[tuple[slice, np.ndarray]]:
    """Yield chunks of some rows of a matrix as float32, each with its slice among these rows."""
    first, last, _step = rows.indices(len(matrix))
    count = max(1, MAX_CHUNK_BYTES // (8 * matrix.shape[1]))
    for start in range(first, last, count):
        end = min(start + count, last)
        yield slice(start - first, end - first), matrix[start:end]


def linear(x: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return x Wᵀ, (…, D) and (N, D) -> (…, N), in the common type of both.

    In float32 PyTorch computes it, on as many cores as the model's own products (`set_num_threads`).
    """
    if x.dtype != weight.dtype:
        return x @ weight.T
    x, weight = np.ascontiguousarray(x), np.ascontiguousarray(weight)  # what runs backwards ends the process in DLPack
    return (torch.from_dlpack(x) @ torch.from_dlpack(weight).T).numpy()


def linear_by_chunks(x: np.ndarray, matrix: Matrix) -> np.ndarray:
    """Return x Wᵀ, (…, D) and (N, D) -> (…, N), in the common type of x and float32, a chunk of W at a time."""
    products = np.empty((*x.shape[:-1], len(matrix)), np.result_type(x, np.float32))
    for rows, chunk in iter_chunks(matrix):
        products[..., rows] = linear(x, chunk)
    return products


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
