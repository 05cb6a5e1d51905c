"""Models larger than one device: weights spread over GPUs, the CPU and a disk by accelerate, an optional package."""

import importlib.util
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial, wraps
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from model.errors import ModelError
from model.transformer_lm import TransformerLM

Device = int | str  # as accelerate names them: the number of a GPU, "mps", "cpu" or "disk"


@dataclass(frozen=True)
class Offloaded:
    """What of a model is not where it computes: its parameters are on the meta device but while a module uses them.

    Attributes:
        device: on which token ids are read.
        readers: name -> what gives that weight as it is kept; one on a disk is mapped into memory, not copied.
        in_memory: those that wait in the CPU's memory for a GPU.
        folder: where those on a disk are, as long as the model lives.
    """

    device: torch.device
    readers: Mapping[str, Callable[[], Tensor]]
    in_memory: Mapping[str, Tensor]
    folder: tempfile.TemporaryDirectory


def weight_reader(lm: TransformerLM, name: str) -> Callable[[], Tensor]:
    """What gives a weight as it is kept, by its name in `state_dict`: the one way to weights from outside of modules.

    Holds the weight's memory and not the model.
    """
    if lm.offloaded and name in lm.offloaded.readers:
        return lm.offloaded.readers[name]
    weight = lm.get_parameter(name).detach()
    return lambda: weight


def weight_of(lm: TransformerLM, name: str) -> Tensor:
    """A weight as it is kept, which may be on another device than the one that computes."""
    return weight_reader(lm, name)()


class Spread:
    """A placement of weights on several devices (see `model.placement`).

    Args:
        device_map: "auto" fills GPUs first, then the CPU, then a disk; or which part is where, by names of modules.
        max_memory: how many bytes, or "2GiB", each of "cuda:0" (or 0), "mps", "cpu" and "disk" may take; None: what is
            free, and of the disk all.

    Raises:
        ModelError: accelerate is not installed, a device is unknown, or a size is none.
    """

    def __init__(self, device_map: str | Mapping[str, Device], max_memory: Mapping[Device, int | str] | None = None):
        if importlib.util.find_spec("accelerate") is None:
            raise ModelError("to spread a model over several devices, install accelerate: pip install accelerate")
        if isinstance(device_map, str) and device_map != "auto":
            raise ModelError("a device map is “auto” or says where each part is, got {got!r}", got=device_map)
        self.device_map = device_map
        self.limits = None if max_memory is None else {device_of(key): bytes_in(max_memory[key]) for key in max_memory}
        self.folder = tempfile.TemporaryDirectory(prefix="weights-")
        self.index: dict[str, dict[str, str]] = {}

    def begin(self, lm: TransformerLM, dtype: torch.dtype) -> None:
        if self.device_map == "auto":
            from accelerate import infer_auto_device_map  # takes a second, and most have it not

            blocks = sorted({type(block).__name__ for block in lm.blocks})
            limits = None if self.limits is None else dict(self.limits)
            self.device_map = infer_auto_device_map(lm, limits, no_split_module_classes=blocks, dtype=dtype)
        most = (self.limits or {}).get("disk")
        on_disk = [weight for name, weight in lm.named_parameters() if self.device_of_weight(name) == "disk"]
        needed = sum(weight.numel() * dtype.itemsize for weight in on_disk)
        if most is not None and needed > most:
            raise ModelError("{needed:,} bytes would be on the disk, and {most:,} may be", needed=needed, most=most)

    def device_of_weight(self, name: str) -> Device:
        """Where the map has a weight: what it says of the smallest part that the weight is in."""
        part = name
        while part not in self.device_map:
            if not part:
                raise ModelError("the device map does not say where {name} is", name=name)
            part = part.rpartition(".")[0]
        return self.device_map[part]

    def apart(self, name: str, module: nn.Module) -> Iterator[tuple[str, Device]]:
        """The map without parts that have other parts of it inside, of which accelerate would move the whole."""
        if any(part.startswith(f"{name}." if name else name) for part in self.device_map if part != name):
            for child, part in module.named_children():
                yield from self.apart(f"{name}.{child}" if name else child, part)
        else:
            yield name, self.device_of_weight(name)

    def keep(self, name: str, weight: Tensor) -> Tensor:
        device = self.device_of_weight(name)
        if device != "disk":
            return weight.to(device)
        path = Path(self.folder.name) / f"{name}.safetensors"
        save_file({name: weight.contiguous()}, path)
        self.index[name] = {"safetensors_file": str(path), "weight_name": name}
        return torch.empty(weight.shape, dtype=weight.dtype, device="meta")

    def finish(self, lm: TransformerLM) -> None:
        from accelerate import dispatch_model

        if lm.config.tie_embeddings and "token_embedding.weight" in self.index:
            self.index["lm_head.weight"] = self.index["token_embedding.weight"]
        readers, waiting = {name: partial(mapped, **entry) for name, entry in self.index.items()}, {}
        computing = [device for device in self.device_map.values() if device not in ("cpu", "disk")]
        if computing:  # what is in the CPU's memory is brought to the first of them to be computed with
            waiting = {name: weight for name, weight in lm.state_dict().items() if weight.is_cpu}
            readers |= {name: weight.detach for name, weight in waiting.items()}
        device = computing[0] if computing else "cpu"
        dispatch_model(lm, dict(self.apart("", lm)), device, offload_index=self.index or None)
        for module in lm.modules():
            if getattr(getattr(module, "_hf_hook", None), "offload", False):
                one_at_a_time(module)
        lm.offloaded = Offloaded(torch.device(device), readers, waiting, self.folder)


def mapped(safetensors_file: str, weight_name: str) -> Tensor:
    """A weight in a file, read from it where it is looked at."""
    with safe_open(safetensors_file, framework="pt") as file:
        return file.get_tensor(weight_name)


def one_at_a_time(module: nn.Module) -> None:
    """Have threads wait for each other: a module's weights are there for the one that brought them alone."""
    forward, lock = module.forward, threading.Lock()

    @wraps(forward)
    def locked(*args: Any, **options: Any) -> Any:
        with lock:
            return forward(*args, **options)

    module.forward = locked


def device_of(key: Device) -> Device:
    """As accelerate names it, of "cuda", "cuda:1", 1, "mps", "cpu" or "disk"."""
    kind, _colon, number = str(key).partition(":")
    if kind == "cuda" and (number or "0").isdecimal():
        return int(number or 0)
    if kind.isdecimal() and not number:
        return int(kind)
    if key in ("mps", "cpu", "disk"):
        return key
    raise ModelError("a device is cuda:0, cuda:1, …, mps, cpu or disk, got {got!r}", got=key)


UNITS = {"": 1} | {
    f"{prefix}{unit}": base**power
    for unit, base in (("B", 1000), ("iB", 1024))
    for power, prefix in enumerate("KMGT", 1)
}


def bytes_in(size: int | str) -> int:
    """Of 2000000, "2GiB" or "500 MB"."""
    text = str(size).strip()
    digits = text.rstrip("BGIKMTi ").strip()
    unit = text[len(digits) :].strip()
    try:
        return round(float(digits) * UNITS["" if unit == "B" else unit])
    except (KeyError, ValueError, OverflowError):
        raise ModelError("a size is a number of bytes or such as 2GiB or 500MB, got {got!r}", got=size) from None
