"""Catalogue of the available models: their names, the memory that they need, and fingerprints of their files."""

import hashlib
import math
import os
from collections.abc import Collection, Container
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch

from explorer.tracing.training_history import checkpoints_of_training
from explorer.translations import _
from model.checkpoint import (
    CheckpointError,
    checkpoint_files,
    checkpoint_folder,
    file_stat,
    find_base_model,
    find_checkpoint,
    format_checkpoint_names,
    is_checkpoint,
    is_gguf,
    is_remote_checkpoint,
    list_checkpoints,
)
from model.errors import LoadingNote, ModelError
from model.gguf.gguf_loader import gguf_num_bytes
from model.pretrained.hub import cached_model, get_or_download_model, is_hub_name
from model.pretrained.hugging_face_loader import is_hugging_face_folder
from model.pretrained.lora import base_model_name, is_adapter
from model.pretrained.weight_files import INDEX, find_weight_files


class _AnyName(Container):
    def __contains__(self, name: object) -> bool:
        return True


ANY_NAME = _AnyName()


class ModelCatalog:
    """The checkpoints in `checkpoints/`, models opened from elsewhere, and models of the hub on this machine.

    Args:
        hub_names: names on the hub that users may open in the page.

    Attributes:
        own_module: name of the checkpoint made from the owner's own module; "" if there is none.
        tokenizers: of models whose folder has none, by name.
        own_vocabulary: a note for users about its vocabulary; None for none.
        base_models: names of the base models of opened adapters, by the adapters' names.
    """

    def __init__(self, hub_names: Collection[str] | _AnyName = ()):
        self.hub_names = hub_names
        self._opened: dict[str, Path] = {}
        self.own_module = ""
        self.tokenizers: dict[str, Any] = {}
        self.own_vocabulary: LoadingNote | None = None
        self.base_models: dict[str, str] = {}

    @property
    def names(self) -> list[str]:
        return sorted({*list_checkpoints(), *self._opened})

    def resolve(self, name: str) -> str:
        """Return the checkpoint that a name stands for.

        For the name of a model with checkpoints at several steps of its training, this is the last step. Any other
        name is returned unchanged.
        """
        if not isinstance(name, str) or name in self._opened or is_checkpoint(name):
            return name
        return next(reversed(checkpoints_of_training(name, self.names)), name)

    def open(self, name_or_path: str | Path, tokenizer: Any = None) -> str:
        """Add a model from a path or the hub to the catalog and return its name.

        The name is that on the hub, or the last part of the path of a folder, or of a file without its extension. A
        model of the hub that is not on this machine is downloaded. An adapter brings its base model, which must be on
        this machine.

        Args:
            tokenizer: of the model; None: the one in its folder.

        Raises:
            CheckpointError: there is nothing that can be opened, or a checkpoint has that name already.
            ModelError: the hub has no such model, or cannot be reached.
        """
        name, path = self.name_and_path(name_or_path)
        if path is None:
            path = get_or_download_model(name)
        if is_checkpoint(name):
            return name
        if is_adapter(path):
            self.base_models[name] = self._open_base_model(path)
        self._opened[name] = path
        if tokenizer is not None:
            self.tokenizers[name] = tokenizer
        return name

    def name_and_path(self, name_or_path: str | Path) -> tuple[str, Path | None]:
        """Return the name that a model has once it is open, and its path; None for one of the hub; opens nothing.

        Raises:
            CheckpointError: there is nothing that can be opened, or a checkpoint has that name already.
        """
        if is_remote_checkpoint(name_or_path):
            return str(name_or_path), None
        path, last_part = find_checkpoint(name_or_path).absolute(), Path(name_or_path).absolute().name
        name = path.stem if path.is_file() else path.name if (path / last_part).is_file() else last_part
        if is_checkpoint(name) and checkpoint_folder(name).samefile(path):
            return name, path
        if is_checkpoint(name) or self._opened.get(name, path) != path:
            message = _("a checkpoint has the name {name!r} already: give the folder or file another", name=name)
            raise CheckpointError(message)
        return name, path

    def _open_base_model(self, adapter: Path) -> str:
        base, path = base_model_name(adapter), find_base_model(adapter)
        if not is_remote_checkpoint(base):
            return self.open(path)
        self._opened[base] = path
        return base

    @property
    def allows_opening(self) -> bool:
        """True if users may open models."""
        return self.hub_names is ANY_NAME or bool(self.allowed_names)

    @property
    def allows_paths(self) -> bool:
        """True if users may open any file or folder of this machine: it serves nobody else."""
        return self.hub_names is ANY_NAME

    @property
    def allowed_names(self) -> list[str]:
        """Names on the hub that users may open; empty if they may open any."""
        return [] if self.hub_names is ANY_NAME else sorted(self.hub_names)

    def is_external(self, name: str) -> bool:
        """Return True if the model was opened from elsewhere."""
        return name in self._opened

    def may_open(self, name: object) -> bool:
        """Return True if a user may open the model."""
        return isinstance(name, str) and is_hub_name(name) and name in self.hub_names

    def locate(self, name: str) -> str | Path:
        """Return the path of a model, or its name in `checkpoints/`; downloads nothing.

        Raises:
            CheckpointError: the model is not in the catalog: a path in a request, for example, is never opened.
        """
        if name in self._opened:
            return self._opened[name]
        if is_checkpoint(name):
            return name
        if self.may_open(name):
            if path := cached_model(name):
                self._opened[name] = path
                return path
            message = _("{name} is not on this machine: choose “Open a model…” in the list of models", name=name)
            raise CheckpointError(message)
        message = _("there is no checkpoint {name!r}; there are: {names}")
        raise CheckpointError(message.format(name=name, names=format_checkpoint_names(self.names)))


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
        path = find_base_model(path) if is_adapter(path) else path
        if path.is_file() and is_gguf(path):
            return gguf_num_bytes(path, dtype)
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


MAX_FINGERPRINT_BYTES = 256 << 20  # of all files that are read for this: more would take longer than an answer may
CHUNK_BYTES = 1 << 20


def checkpoint_fingerprint(location: str | Path) -> str:
    """Return a hash that differs if a checkpoint's files do, and is the same on all machines with the same files.

    The smallest files are read, those of one size all or none, at most `MAX_FINGERPRINT_BYTES` together. For the
    others that are not in the hub's cache, size and modification time count: files that machines share are to be
    copied with their times.

    Args:
        location: see `ModelCatalog.locate`.
    """
    files = checkpoint_files(location)
    if len(files) > 1:
        folder, index = files[0].parent, files[0].with_name(INDEX)
        files += sorted(folder.glob("*.safetensors"))
        with suppress(ModelError, OSError):
            files += _weights(folder, file_stat(index))  # parts that the index names, in other folders, too
    versions = {path: file_stat(path) for path in files}
    sizes = [version[-1] for version in versions.values() if version]
    read = (size for size in sizes if sum(other for other in sizes if other <= size) <= MAX_FINGERPRINT_BYTES)
    max_bytes = max(read, default=0)
    entries = [(path.name, _file_fingerprint(path, version, max_bytes)) for path, version in versions.items()]
    return hashlib.sha256(repr(entries).encode()).hexdigest()


@lru_cache(64)
def _weights(folder: Path, index: tuple[int, ...] | None) -> list[Path]:
    """Return the weight files of a folder, as this version of its index names them."""
    return find_weight_files(folder)


@lru_cache(4096)
def _file_fingerprint(path: Path, version: tuple[int, ...] | None, max_bytes: int) -> str:
    """Return the hash of a file, or its size and time if it is larger than `max_bytes`; "" without a version."""
    if version is None:
        return ""
    if (blob := path.resolve()).parent.name == "blobs":  # the hub's cache names files by what they say
        return blob.name
    _node, written, size = version
    if size > max_bytes:
        return f"{size}@{written}"
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()
