"""A training run on disk, so that it can go on after it was killed as if it had not been."""

import json
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from model.checkpoint import write_whole


def save_run(path: Path, tensors: dict[str, Tensor], values: dict[str, Any]) -> None:
    """Write both to one file, or leave the one that is there. `values` must be JSON."""
    metadata = {"values": json.dumps(values)}
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    write_whole(path, lambda part: save_file(tensors, part, metadata))


def load_run(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """What `save_run` wrote.

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
    """What the optimizers remember of each parameter: "optimizer.parameter.what" -> tensor."""
    return {
        f"{i}.{parameter}.{what}": tensor
        for i, optimizer in enumerate(optimizers)
        for parameter, memory in optimizer.state_dict()["state"].items()
        for what, tensor in memory.items()
    }


def restore_optimizers(optimizers: list[torch.optim.Optimizer], tensors: dict[str, Tensor]) -> None:
    """The inverse of `optimizer_tensors`; the settings of the groups stay as they are."""
    memories: list[dict[int, dict[str, Tensor]]] = [{} for _ in optimizers]
    for name, tensor in tensors.items():
        i, parameter, what = name.split(".")
        memories[int(i)].setdefault(int(parameter), {})[what] = tensor
    for optimizer, memory in zip(optimizers, memories, strict=True):
        optimizer.load_state_dict({"state": memory, "param_groups": optimizer.state_dict()["param_groups"]})


def random_state(device: str) -> Tensor:
    """The state of the generator that dropout on the device draws from (bytes,), after the CPU's own."""
    return torch.cat([torch.get_rng_state(), *(state.cpu() for state in device_states(device))])


def restore_random_state(device: str, state: Tensor) -> None:
    """The inverse of `random_state`."""
    on_cpu = len(torch.get_rng_state())
    torch.set_rng_state(state[:on_cpu].clone())
    kind = torch.device(device).type
    if kind != "cpu":
        getattr(torch, kind).set_rng_state(state[on_cpu:].clone())


def device_states(device: str) -> list[Tensor]:
    kind = torch.device(device).type
    return [] if kind == "cpu" else [getattr(torch, kind).get_rng_state()]
