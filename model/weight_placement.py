"""Weights on devices: placed as they are read, sharded by accelerate (an optional package), and freed."""

import ctypes
import importlib.util
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial, wraps
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from model.config import ModelConfig
from model.errors import ModelError
from model.transformer_lm import TransformerLM

ARENA_MAX = -8  # M_ARENA_MAX of malloc.h


def limit_malloc_arenas(max_arenas: int = 2):
    """Limit the number of malloc arenas for threads that start from now on; no effect without glibc.

    By default glibc uses up to eight per core, and memory freed in one thread's arena is not available to
    another's.
    """
    if mallopt := _libc_function("mallopt"):
        mallopt(ARENA_MAX, max_arenas)


def trim_heap():
    """Return freed memory inside the heaps to the system; no effect without glibc.

    Otherwise each arena stays as large as it once was, and its pages are of no use to another.
    """
    if malloc_trim := _libc_function("malloc_trim"):
        malloc_trim(0)


@cache
def _libc_function(name: str) -> Callable[..., int] | None:
    try:
        return getattr(ctypes.CDLL(None), name)
    except (OSError, TypeError, AttributeError):  # another system, another library
        return None


TRIM_AFTER_BYTES = 16 << 20  # bytes of weights
MAX_TABLE_NUMBERS = 1 << 26  # that generation keeps of all positions: a million positions of heads 128 wide


class WeightPlacement:
    """Placement of the weights of one model, here of all on one device."""

    def __init__(self, device: str | torch.device = "cpu"):
        self.device = torch.device(device)

    def begin(self, lm: TransformerLM, dtype: torch.dtype) -> None:
        """Prepare for a model whose weights are not read yet; `dtype` is the type of most of them."""

    def place_weight(self, name: str, weight: Tensor) -> Tensor:
        """Return the tensor that the model is to use for this weight; the caller drops `weight`."""
        return weight.to(self.device)

    def finish(self, lm: TransformerLM) -> None:
        """Complete the placement after all weights are set."""
        lm.to(self.device)


def build_without_weights(config: ModelConfig) -> TransformerLM:
    """Build the model of a config, with all weights on the meta device."""
    numbers = config.context_length * {"rope": config.d_head // 2, "sinusoidal": config.d_model}.get(config.position, 0)
    if numbers > MAX_TABLE_NUMBERS:
        raise ModelError(
            "positions up to {most:,} need a table of {numbers:,} numbers", most=config.context_length, numbers=numbers
        )
    with torch.device("meta"):  # nothing is drawn at random: every weight is given
        return TransformerLM(config)


def build_model(
    config: ModelConfig,
    weights: Iterable[tuple[str, Tensor]],
    dtype: torch.dtype = torch.float32,
    placement: WeightPlacement | None = None,
) -> TransformerLM:
    """Build the model of a config, in eval mode, from all weights that `weight_shapes` names.

    Each weight is placed before the next is read.

    Args:
        dtype: of most weights.
        placement: of the weights; None: in the memory of the CPU.
    """
    placement = placement or WeightPlacement()
    lm = build_without_weights(config)
    placement.begin(lm, dtype)
    placed_weights, bytes_read = {}, 0
    for name, weight in weights:
        placed_weights[name], bytes_read = placement.place_weight(name, weight), bytes_read + weight.nbytes
        del weight  # before the next is read
        if (
            bytes_read >= TRIM_AFTER_BYTES
        ):  # else transposed and converted weights leave the heap fragmented, by a third of the weights
            bytes_read = 0
            trim_heap()
    trim_heap()
    set_weights(lm, placed_weights)
    placement.finish(lm)
    return lm


def set_weights(lm: TransformerLM, weights: Mapping[str, Tensor]) -> None:
    """Give a model its weights by their names, without copies, and put it in eval mode."""
    lm.load_state_dict(weights, strict=False, assign=True)
    if lm.config.tie_embeddings:
        lm.lm_head.weight = lm.token_embedding.weight
    lm.eval().requires_grad_(False)


Device = int | str  # as accelerate names them: the number of a GPU, "mps", "cpu" or "disk"


@dataclass(frozen=True)
class OffloadedWeights:
    """Weights that are stored elsewhere than they compute: on the meta device except while in use.

    Attributes:
        device: of the token ids.
        readers: name -> function that returns the stored weight; one on a disk is mapped into memory, not copied.
        in_memory: weights stored in the CPU's memory that compute on a GPU.
        folder: of the weights on a disk, as long as the model lives; None if they stay in the model's own file.
    """

    device: torch.device
    readers: Mapping[str, Callable[[], Tensor]]
    in_memory: Mapping[str, Tensor]
    folder: tempfile.TemporaryDirectory | None


def weight_reader(lm: TransformerLM, name: str) -> Callable[[], Tensor]:
    """Return a function that returns the stored weight of this name in `state_dict`.

    All code outside of modules must read weights this way. The function refers to the weight's memory, not to the
    model.
    """
    if lm.offloaded and name in lm.offloaded.readers:
        return lm.offloaded.readers[name]
    weight = lm.get_parameter(name).detach()
    return lambda: weight


def read_weight(lm: TransformerLM, name: str) -> Tensor:
    """Return the stored weight, which may be on another device than the one that computes."""
    return weight_reader(lm, name)()


class ShardedPlacement(WeightPlacement):
    """A placement of weights on several devices.

    Args:
        device_map: "auto" fills GPUs first, then the CPU, then a disk; or names of modules -> devices.
        max_memory: bytes, or a text such as "2GiB", for each of "cuda:0" (or 0), "mps", "cpu" and "disk"; None:
            all free memory, and the whole disk.

    Raises:
        ModelError: accelerate is not installed, a device is unknown, or a size is invalid.
    """

    def __init__(self, device_map: str | Mapping[str, Device], max_memory: Mapping[Device, int | str] | None = None):
        if importlib.util.find_spec("accelerate") is None:
            raise ModelError("to spread a model over several devices, install accelerate: pip install accelerate")
        if isinstance(device_map, str) and device_map != "auto":
            raise ModelError("a device map is “auto” or says where each part is, got {got!r}", got=device_map)
        self.device_map = device_map
        self.limits = (
            None if max_memory is None else {parse_device(key): parse_bytes(max_memory[key]) for key in max_memory}
        )
        self.folder = tempfile.TemporaryDirectory(prefix="weights-")
        self.index: dict[str, dict[str, str]] = {}

    def begin(self, lm: TransformerLM, dtype: torch.dtype) -> None:
        """Choose the device of each module, if the map is "auto"."""
        if self.device_map == "auto":
            from accelerate import infer_auto_device_map  # takes a second, and most have it not

            blocks = sorted({type(block).__name__ for block in lm.blocks})
            limits = None if self.limits is None else dict(self.limits)
            self.device_map = infer_auto_device_map(lm, limits, no_split_module_classes=blocks, dtype=dtype)
        max_bytes = (self.limits or {}).get("disk")
        on_disk = [weight for name, weight in lm.named_parameters() if self.device_of_weight(name) == "disk"]
        needed = sum(weight.numel() * dtype.itemsize for weight in on_disk)
        if max_bytes is not None and needed > max_bytes:
            raise ModelError(
                "{needed:,} bytes would be on the disk, and {most:,} may be", needed=needed, most=max_bytes
            )

    def device_of_weight(self, name: str) -> Device:
        """Return the device that the map gives for the smallest module containing the weight."""
        prefix = name
        while prefix not in self.device_map:
            if not prefix:
                raise ModelError("the device map does not say where {name} is", name=name)
            prefix = prefix.rpartition(".")[0]
        return self.device_map[prefix]

    def disjoint_device_map(self, name: str, module: nn.Module) -> Iterator[tuple[str, Device]]:
        """Yield the entries of the device map without modules that contain other entries.

        accelerate would move such modules as a whole.
        """
        if any(part.startswith(f"{name}." if name else name) for part in self.device_map if part != name):
            for child, part in module.named_children():
                yield from self.disjoint_device_map(f"{name}.{child}" if name else child, part)
        else:
            yield name, self.device_of_weight(name)

    def place_weight(self, name: str, weight: Tensor) -> Tensor:
        """Move a weight to its device, or save it to disk and return a meta tensor."""
        device = self.device_of_weight(name)
        if device != "disk":
            return weight.to(device)
        path = Path(self.folder.name) / f"{name}.safetensors"
        save_file({name: weight.contiguous()}, path)
        self.index[name] = {"safetensors_file": str(path), "weight_name": name}
        return torch.empty(weight.shape, dtype=weight.dtype, device="meta")

    def finish(self, lm: TransformerLM) -> None:
        """Move the model to its only device, or add the hooks that move values between several."""
        devices = set(self.device_map.values())
        if len(devices) == 1 and not self.index:
            lm.to(*devices)  # all of it fits on one, and is a model like others
            return
        from accelerate import dispatch_model

        if lm.config.tie_embeddings and "token_embedding.weight" in self.index:
            self.index["lm_head.weight"] = self.index["token_embedding.weight"]
        readers, cpu_weights = {name: partial(read_mapped_weight, **entry) for name, entry in self.index.items()}, {}
        compute_devices = [device for device in self.device_map.values() if device not in ("cpu", "disk")]
        if compute_devices:  # weights in the CPU's memory are copied to the first of them for computation
            cpu_weights = {name: weight for name, weight in lm.state_dict().items() if weight.is_cpu}
            readers |= {name: weight.detach for name, weight in cpu_weights.items()}
        device = compute_devices[0] if compute_devices else "cpu"
        dispatch_model(lm, dict(self.disjoint_device_map("", lm)), device, offload_index=self.index or None)
        for module in lm.modules():
            if getattr(getattr(module, "_hf_hook", None), "offload", False):
                lock_forward_calls(module)
        lm.offloaded = OffloadedWeights(torch.device(device), readers, cpu_weights, self.folder)


def read_mapped_weight(safetensors_file: str, weight_name: str) -> Tensor:
    """Return a weight mapped from a file, which is read on access."""
    with safe_open(safetensors_file, framework="pt") as file:
        return file.get_tensor(weight_name)


def lock_forward_calls(module: nn.Module) -> None:
    """Make concurrent calls of a module wait for each other, by a lock around its `forward`.

    An offloaded module's weights are present only during the call that loaded them.
    """
    forward, lock = module.forward, threading.Lock()

    @wraps(forward)
    def locked_forward(*args: Any, **options: Any) -> Any:
        with lock:
            return forward(*args, **options)

    module.forward = locked_forward


def parse_device(key: Device) -> Device:
    """Parse "cuda", "cuda:1", 1, "mps", "cpu" or "disk" into accelerate's name of the device."""
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


def parse_bytes(size: int | str) -> int:
    """Parse a size such as 2000000, "2GiB" or "500 MB"."""
    text = str(size).strip()
    digits = text.rstrip("BGIKMTi ").strip()
    unit = text[len(digits) :].strip()
    try:
        return round(float(digits) * UNITS["" if unit == "B" else unit])
    except (KeyError, ValueError, OverflowError):
        raise ModelError("a size is a number of bytes or such as 2GiB or 500MB, got {got!r}", got=size) from None
