"""State of a training run on disk, from which it resumes exactly after it was killed."""

import json
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from model.checkpoint import write_atomically


def save_training_state(path: Path, tensors: dict[str, Tensor], values: dict[str, Any]) -> None:
    """Write tensors and JSON values to one file atomically: a failure leaves the old file as it was."""
    metadata = {"values": json.dumps(values)}
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    write_atomically(path, lambda temporary_path: save_file(tensors, temporary_path, metadata))


def load_training_state(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Return the tensors and values that `save_training_state` wrote.

    Raises:
        ValueError: there is no such file, or it is damaged.
    """
    try:
        with safe_open(path, framework="pt") as file:
            values = json.loads(file.metadata()["values"])
            return {name: file.get_tensor(name) for name in file.keys()}, values  # noqa: SIM118 it is no dict
    except (OSError, SafetensorError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"there is no run to go on with at {path}: {error}") from None


def optimizer_tensors(optimizers: list[torch.optim.Optimizer]) -> dict[str, Tensor]:
    """Return the optimizers' state of each parameter, by the name "optimizer.parameter.key"."""
    return {
        f"{i}.{parameter}.{key}": tensor
        for i, optimizer in enumerate(optimizers)
        for parameter, memory in optimizer.state_dict()["state"].items()
        for key, tensor in memory.items()
    }


def restore_optimizers(optimizers: list[torch.optim.Optimizer], tensors: dict[str, Tensor]) -> None:
    """Restore the state from `optimizer_tensors`; the settings of the groups stay as they are."""
    memories: list[dict[int, dict[str, Tensor]]] = [{} for _ in optimizers]
    for name, tensor in tensors.items():
        i, parameter, key = name.split(".")
        memories[int(i)].setdefault(int(parameter), {})[key] = tensor
    for optimizer, memory in zip(optimizers, memories, strict=True):
        optimizer.load_state_dict({"state": memory, "param_groups": optimizer.state_dict()["param_groups"]})


def random_state(device: str) -> Tensor:
    """Return the state (bytes,) of the CPU's random generator, followed by the device's own, if it has one."""
    return torch.cat([torch.get_rng_state(), *(state.cpu() for state in device_random_states(device))])


def restore_random_state(device: str, state: Tensor) -> None:
    """Restore the state from `random_state`."""
    cpu_state_size = len(torch.get_rng_state())
    torch.set_rng_state(state[:cpu_state_size].clone())
    kind = torch.device(device).type
    if kind != "cpu":
        getattr(torch, kind).set_rng_state(state[cpu_state_size:].clone())


def device_random_states(device: str) -> list[Tensor]:
    """Return the random state of a device in a list; empty for the CPU."""
    kind = torch.device(device).type
    return [] if kind == "cpu" else [getattr(torch, kind).get_rng_state()]
