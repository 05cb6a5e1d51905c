"""Memory that a model's weights need, and memory that is available."""

import math
import os
from contextlib import suppress
from pathlib import Path

import torch

from explorer.translations import _
from model.checkpoint import CheckpointError
from model.errors import ModelError
from model.pretrained.hugging_face_loader import is_hugging_face_folder
from model.pretrained.weight_files import find_weight_files

FLOAT32_OVER_STORED = 2  # ours, and most of others, are stored in 16 bits
MEMORY_FACTOR = 1.3  # of the weights' bytes, for activations
MEMINFO = Path("/proc/meminfo")
LIMITS = (  # of a container: files with the limit and the usage
    (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current")),
    (
        Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
        Path("/sys/fs/cgroup/memory/memory.usage_in_bytes"),
    ),
)


def weight_num_bytes(path: Path, dtype: torch.dtype | None = None) -> int:
    """Return the memory of the weights in a folder or file in bytes, at most; 0 if none are found.

    Loading the model then reports the error.

    Args:
        dtype: of the weights in memory; None for the type in the files, float32 for our own checkpoints.
    """
    try:
        files = [path] if path.is_file() else find_weight_files(path)
        stored = sum(file.stat().st_size for file in files)
    except (ModelError, OSError):
        return 0
    widens = dtype == torch.float32 or not (path.is_file() or is_hugging_face_folder(path))
    return FLOAT32_OVER_STORED * stored if widens else stored


def require_memory(name: str, memory: int, device: str) -> tuple[int, int | None]:
    """Check that a model's weights fit into memory; return their bytes and the available bytes, None if unknown.

    Args:
        memory: bytes of the weights.

    Raises:
        CheckpointError: they do not fit.
    """
    left = available_bytes(device)
    if left is not None and MEMORY_FACTOR * memory > left:
        raise CheckpointError(
            _(
                "{name} takes up to {memory} of memory, and {left} are free: take a smaller one",
                name=name,
                memory=format_bytes(MEMORY_FACTOR * memory),
                left=format_bytes(left),
            )
        )
    return memory, left


def format_bytes(size: float) -> str:
    """Format a size, for example "538 MB" or "2.2 GB"."""
    if size >= 1e9:
        return _("{size:.1f} GB", size=size / 1e9)
    return _("{size} MB", size=max(1, math.ceil(size / 1e6)))


def available_bytes(device: str) -> int | None:
    """Return the free bytes on a device; None if unknown."""
    if device.startswith("cuda"):
        return torch.cuda.mem_get_info()[0]
    amounts = [
        left for left in (machine_available_bytes(), *map(container_available_bytes, LIMITS)) if left is not None
    ]
    return min(amounts, default=None)


def machine_available_bytes() -> int | None:
    """Return the free bytes of the machine's memory; None if unknown."""
    with suppress(OSError, ValueError, StopIteration):
        lines = MEMINFO.read_text(encoding="ascii").splitlines()
        return 1024 * int(next(line for line in lines if line.startswith("MemAvailable:")).split()[1])
    with suppress(OSError, ValueError, AttributeError):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2  # free memory is unknown: assume half
    return None


def container_available_bytes(files: tuple[Path, Path]) -> int | None:
    """Return the free bytes within a container's limit; None without a limit."""
    limit, used = files
    with suppress(OSError, ValueError):  # "max" where there is none
        return max(0, int(limit.read_text(encoding="ascii")) - int(used.read_text(encoding="ascii")))
    return None
