"""Devices besides the CPU that tests run on: the machine's GPU, or else a simulated one."""

import pytest
import torch

_GPUS = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
HAS_GPU = any(_GPUS.values())
if not HAS_GPU:  # of a GPU's tensors PyTorch finds no gradients once another device was added to it
    from tests import simulated_device

_IS_AVAILABLE = {"simulated": not HAS_GPU, **_GPUS}
on_each_device = pytest.mark.parametrize(
    "device",
    [
        pytest.param(
            simulated_device.NAME if there and name == "simulated" else name,
            id=name,
            marks=pytest.mark.skipif(not there, reason=f"needs {name}" if name in _GPUS else "has a GPU"),
        )
        for name, there in _IS_AVAILABLE.items()
    ],
)
