"""How much memory there is for another model, and how much one takes."""

import math
import os
from contextlib import suppress
from pathlib import Path

import torch

from explorer.language import _
from model.checkpoint import CheckpointError
from model.errors import ModelError
from model.pretrained.hugging_face import is_of_transformers
from model.pretrained.weight_files import find_weights

FLOAT32_OVER_STORED = 2  # ours, and most of others, are stored in 16 bits
ROOM = 1.3  # times the weights, for what is computed with them
MEMINFO = Path("/proc/meminfo")
LIMITS = (  # of a container: the file that says how much it may use, and that of what it uses
    (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current")),
    (
        Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
        Path("/sys/fs/cgroup/memory/memory.usage_in_bytes"),
    ),
)


def bytes_of_weights(place: Path, dtype: torch.dtype | None = None) -> int:
    """What those of a folder or a file take in memory, at most; 0 where none are found, which loading tells.

    Args:
        dtype: of them there; None for that of the files, of ours float32.
    """
    try:
        files = [place] if place.is_file() else find_weights(place)
        stored = sum(file.stat().st_size for file in files)
    except (ModelError, OSError):
        return 0
    widens = dtype == torch.float32 or not (place.is_file() or is_of_transformers(place))
    return FLOAT32_OVER_STORED * stored if widens else stored


def check_room(name: str, memory: int, device: str) -> tuple[int, int | None]:
    """How many bytes a model's weights take, and how many are free: None where nobody can tell.

    Args:
        memory: bytes of the weights.

    Raises:
        CheckpointError: it does not fit.
    """
    left = bytes_left(device)
    if left is not None and ROOM * memory > left:
        raise CheckpointError(
            _(
                "{name} takes up to {memory} of memory, and {left} are free: take a smaller one",
                name=name,
                memory=in_bytes(ROOM * memory),
                left=in_bytes(left),
            )
        )
    return memory, left


def in_bytes(size: float) -> str:
    """As in "538 MB" or "2.2 GB"."""
    if size >= 1e9:
        return _("{size:.1f} GB", size=size / 1e9)
    return _("{size} MB", size=max(1, math.ceil(size / 1e6)))


def bytes_left(device: str) -> int | None:
    """Bytes that are free where models of a device are; None where nobody can tell."""
    if device.startswith("cuda"):
        return torch.cuda.mem_get_info()[0]
    found = [left for left in (of_machine(), *map(of_container, LIMITS)) if left is not None]
    return min(found, default=None)


def of_machine() -> int | None:
    with suppress(OSError, ValueError, StopIteration):
        lines = MEMINFO.read_text(encoding="ascii").splitlines()
        return 1024 * int(next(line for line in lines if line.startswith("MemAvailable:")).split()[1])
    with suppress(OSError, ValueError, AttributeError):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2  # what is free is not told
    return None


def of_container(files: tuple[Path, Path]) -> int | None:
    limit, used = files
    with suppress(OSError, ValueError):  # "max" where there is none
        return max(0, int(limit.read_text(encoding="ascii")) - int(used.read_text(encoding="ascii")))
    return None
