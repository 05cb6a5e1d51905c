"""A model's weights by name, as they are stored."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
import torch

from explorer.tracing.arrays import as_array
from explorer.tracing.matrices import Matrix, StoredMatrix
from model.offloading import weight_reader
from model.transformer_lm import TransformerLM


class StoredWeights(Mapping):
    """Name -> weight, not to be written to: an array that shares the model's memory, or is mapped from a file, where it
    can; else of a vector a copy, of a matrix a `StoredMatrix`.

    Holds the memory of the weights and not the model, which is let go with them.
    """

    def __init__(self, lm: TransformerLM):
        self._readers = {name: weight_reader(lm, name) for name in lm.state_dict()}
        self._known: dict[str, Matrix] = {}
        self._offloaded = lm.offloaded  # with its folder

    def __getitem__(self, name: str) -> Matrix:
        if name not in self._known:
            read = self._readers[name]
            stored = read()
            shares = stored.dtype == torch.float32 and stored.is_cpu
            is_array = shares or stored.ndim < 2
            self._known[name] = (
                as_array(stored) if is_array else StoredMatrix(tuple(stored.shape), partial(_part, read))
            )
        return self._known[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._readers)

    def __len__(self) -> int:
        return len(self._readers)


def _part(read: Callable[[], torch.Tensor], index: tuple) -> np.ndarray:
    return as_array(read()[tuple(map(_as_torch, index))])


def _as_torch(part: Any) -> Any:
    """Torch's index for numpy's."""
    if isinstance(part, (np.ndarray, list, range)):
        return torch.as_tensor(np.asarray(part))
    return int(part) if isinstance(part, np.integer) else part
