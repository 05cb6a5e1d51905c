"""Matrices of weights, read part by part."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

MOST_BYTES = 32 << 20  # of a part of a matrix that is read at a time, as float64


class StoredMatrix:
    """A matrix of numbers in 16 bits, or on another device, without a copy of it.

    An index gives the part of it that it names as a float32 array, and reads no more than that.
    """

    def __init__(self, shape: tuple[int, ...], part: Callable[[tuple], np.ndarray]):
        """`part` gives that of an index, a tuple, which may be empty."""
        self.shape, self.ndim, self._part = shape, len(shape), part

    def __getitem__(self, index: Any) -> np.ndarray:
        return self._part(index if isinstance(index, tuple) else (index,))

    def __len__(self) -> int:
        return self.shape[0]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """All of it, for whoever asks for that; nothing in the explorer does of a table."""
        return np.array(self[()], dtype=dtype or np.float32)


Matrix = np.ndarray | StoredMatrix


def in_parts(matrix: Matrix, rows: slice = slice(None)) -> Iterator[tuple[slice, np.ndarray]]:
    """Some rows of a matrix in turn, as float32, and where among those asked for they stand."""
    first, last, _step = rows.indices(len(matrix))
    count = max(1, MOST_BYTES // (8 * matrix.shape[1]))
    for start in range(first, last, count):
        end = min(start + count, last)
        yield slice(start - first, end - first), matrix[start:end]


def linear(x: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """x Wᵀ, (…, D) and (N, D) -> (…, N), in the type of both together; of float32 on the cores that the model's own
    products take (cores.py)."""
    if x.dtype != weight.dtype:
        return x @ weight.T
    import torch

    x, weight = np.ascontiguousarray(x), np.ascontiguousarray(weight)  # what runs backwards ends the process in DLPack
    return (torch.from_dlpack(x) @ torch.from_dlpack(weight).T).numpy()


def product(x: np.ndarray, matrix: Matrix) -> np.ndarray:
    """x Wᵀ, (…, D) and (N, D) -> (…, N), in the type that x and float32 give, a part of W at a time."""
    found = np.empty((*x.shape[:-1], len(matrix)), np.result_type(x, np.float32))
    for place, part in in_parts(matrix):
        found[..., place] = linear(x, part)
    return found
