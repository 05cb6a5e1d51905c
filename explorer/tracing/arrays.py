"""Tensors as arrays."""

import numpy as np
import torch


def as_array(tensor: torch.Tensor) -> np.ndarray:
    """As float32, not to be written to; the memory is shared where it can be."""
    if tensor.dtype != torch.float32 or not tensor.is_cpu:
        tensor = tensor.float().cpu()
    array = tensor.numpy()
    array.setflags(write=False)
    return array
