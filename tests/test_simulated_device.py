"""Simulated device: as strict as a GPU, with the CPU's results."""

import pytest
import torch
from torch import nn

from tests.devices import HAS_GPU

if HAS_GPU:
    pytest.skip("has a GPU", allow_module_level=True)

from tests.simulated_device import NAME


@pytest.mark.parametrize(
    "compute",
    [
        lambda there: there + torch.ones(3),
        lambda there: torch.ones(3) @ there,
        lambda there: nn.functional.embedding(torch.tensor([1]), torch.stack([there, there])),
        lambda there: torch.zeros(3)[there.long()],
        lambda there: torch.cat([there, torch.ones(3)]),
        lambda there: there.index_put_((torch.tensor([0]),), torch.ones(1)),
        lambda there: there.numpy(),
        lambda there: there.double(),
        lambda there: torch.zeros(3, dtype=torch.float64, device=NAME),
    ],
)
@pytest.mark.parametrize("inference", [False, True])
def test_refuses_mixed_devices_and_float64(compute, inference):
    with torch.inference_mode(inference), pytest.raises((RuntimeError, TypeError), match=f"on {NAME}|{NAME} has|numpy"):
        compute(torch.ones(3).to(NAME))


@pytest.mark.parametrize("inference", [False, True])
def test_allows_cpu_scalars_and_indices(inference):
    with torch.inference_mode(inference):
        on_device = torch.tensor([1.0, 2.0, 3.0], device=NAME)
        assert on_device.device.type == NAME and not on_device.is_cpu
        assert (on_device * torch.tensor(2.0))[torch.tensor([2, 0])].tolist() == [6, 2]
        on_device[1:] = torch.zeros(2, device=NAME)
        on_device[0] += 4
        assert on_device.cpu().numpy().tolist() == [5, 0, 0]


def test_transfer_to_cpu_copies():
    on_device = torch.zeros(2, device=NAME)
    on_cpu = on_device.cpu()
    on_device += 1
    assert on_cpu.tolist() == [0, 0] and on_device.tolist() == [1, 1]


def test_gradients_agree_with_cpu():
    torch.manual_seed(0)
    on_cpu = nn.Sequential(nn.Linear(3, 4), nn.GELU(), nn.Linear(4, 1))
    device_model, x = nn.Sequential(nn.Linear(3, 4), nn.GELU(), nn.Linear(4, 1)).to(NAME), torch.randn(5, 3)
    device_model.load_state_dict(on_cpu.state_dict())
    on_cpu(x).sum().backward()
    device_model(x.to(NAME)).sum().backward()
    for parameter, expected_parameter in zip(device_model.parameters(), on_cpu.parameters(), strict=True):
        assert torch.equal(parameter.grad.cpu(), expected_parameter.grad)
