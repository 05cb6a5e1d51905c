"""Devices besides the CPU that tests run on: the machine's GPU, or else a simulated one."""

import pytest
import torch

_GPUS = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
HAS_GPU = any(_GPUS.values())
if not HAS_GPU:  # PyTorch finds no gradients of GPU tensors once another device is added
    from tests import simulated_device

_NAMES = [name for name, is_available in _GPUS.items() if is_available]
on_each_device = pytest.mark.parametrize(
    "device", _NAMES if HAS_GPU else [pytest.param(simulated_device.NAME, id="simulated")]
)
