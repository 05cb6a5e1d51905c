"""Conversion of tensors to NumPy arrays."""

from collections.abc import Mapping

import numpy as np
import torch


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
