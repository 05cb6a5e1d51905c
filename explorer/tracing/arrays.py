"""Tensors as arrays."""

from collections.abc import Mapping

import numpy as np
import torch


def as_array(tensor: torch.Tensor) -> np.ndarray:
    """As float32, not to be written to; the memory is shared where it can be."""
    if tensor.dtype != torch.float32 or not tensor.is_cpu:
        tensor = tensor.float().cpu()
    array = tensor.numpy()
    array.setflags(write=False)
    return array


def as_arrays(tensors: Mapping[str, torch.Tensor]) -> dict[str, np.ndarray]:
    """Those of one sequence, by name: (1, …) -> (…). One tensor under two names is one array, also where it is
    converted or comes from another device."""
    distinct = {id(tensor): tensor for tensor in tensors.values()}
    arrays = {key: as_array(tensor)[0] for key, tensor in distinct.items()}
    return {name: arrays[id(tensor)] for name, tensor in tensors.items()}
