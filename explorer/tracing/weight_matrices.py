"""Weight matrices, read in chunks."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

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
    import torch

    x, weight = np.ascontiguousarray(x), np.ascontiguousarray(weight)  # what runs backwards ends the process in DLPack
    return (torch.from_dlpack(x) @ torch.from_dlpack(weight).T).numpy()


def linear_by_chunks(x: np.ndarray, matrix: Matrix) -> np.ndarray:
    """Return x Wᵀ, (…, D) and (N, D) -> (…, N), in the common type of x and float32, a chunk of W at a time."""
    products = np.empty((*x.shape[:-1], len(matrix)), np.result_type(x, np.float32))
    for rows, chunk in iter_chunks(matrix):
        products[..., rows] = linear(x, chunk)
    return products
