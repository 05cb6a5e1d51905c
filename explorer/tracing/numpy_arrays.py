"""Tensors and a model's stored weights as NumPy arrays."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
import torch

from explorer.tracing.weight_matrices import Matrix, StoredMatrix
from model.transformer_lm import TransformerLM
from model.weight_placement import weight_reader


def as_array(tensor: torch.Tensor) -> np.ndarray:
    """Return a tensor as a read-only float32 array; it shares the tensor's memory if possible."""
    if tensor.dtype != torch.float32 or not tensor.is_cpu:
        tensor = tensor.float().cpu()
    array = tensor.numpy()
    array.setflags(write=False)
    return array


def as_unbatched_arrays(tensors: Mapping[str, torch.Tensor]) -> dict[str, np.ndarray]:
    """Return named tensors without their batch axis as arrays, (1, …) -> (…).

    One tensor under two names gives one array, also if it is converted or comes from another device.
    """
    distinct = {id(tensor): tensor for tensor in tensors.values()}
    arrays = {key: as_array(tensor)[0] for key, tensor in distinct.items()}
    return {name: arrays[id(tensor)] for name, tensor in tensors.items()}


class StoredWeights(Mapping):
    """Name -> weight, read-only.

    An array that shares the model's memory, or is mapped from a file, if possible; otherwise a copy of a vector, or
    a `StoredMatrix`. Holds the memory of the weights and not the model, which is freed with them.
    """

    def __init__(self, lm: TransformerLM):
        self._readers = {name: weight_reader(lm, name) for name in lm.state_dict()}
        self._cached: dict[str, Matrix] = {}
        self._offloaded = lm.offloaded  # with its folder

    def __getitem__(self, name: str) -> Matrix:
        if name not in self._cached:
            read = self._readers[name]
            stored = read()
            stays_in_file = self._offloaded is not None and self._offloaded.folder is None
            shares = stored.dtype == torch.float32 and stored.is_cpu and not stays_in_file
            is_array = shares or stored.ndim < 2
            self._cached[name] = (
                as_array(stored) if is_array else StoredMatrix(tuple(stored.shape), partial(_read_index, read))
            )
        return self._cached[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._readers)

    def __len__(self) -> int:
        return len(self._readers)


def _read_index(read: Callable[[], torch.Tensor], index: tuple) -> np.ndarray:
    return as_array(read()[tuple(map(_as_torch, index))])


def _as_torch(index: Any) -> Any:
    """Convert one NumPy index to PyTorch's."""
    if isinstance(index, (np.ndarray, list, range)):
        return torch.as_tensor(np.asarray(index))
    return int(index) if isinstance(index, np.integer) else index
