"""The devices besides the CPU that tests run on: one that is simulated, always, and what GPUs there are."""

import pytest
import torch

from tests import simulated_device

_THERE = {
    "simulated": (simulated_device.NAME, True),
    "cuda": ("cuda", torch.cuda.is_available()),
    "mps": ("mps", torch.backends.mps.is_available()),
}
on_each_device = pytest.mark.parametrize(
    "device",
    [
        pytest.param(device, id=name, marks=pytest.mark.skipif(not there, reason=f"needs {name}"))
        for name, (device, there) in _THERE.items()
    ],
)
