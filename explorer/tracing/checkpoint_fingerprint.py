"""Fingerprint of a checkpoint's files, the same on every machine."""

import hashlib
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from model.checkpoint import checkpoint_files, file_stat
from model.errors import ModelError
from model.pretrained.weight_files import INDEX, find_weight_files

MAX_BYTES = 256 << 20  # of all files that are read for this: more would take longer than an answer may
CHUNK_BYTES = 1 << 20


def checkpoint_fingerprint(location: str | Path) -> str:
    """Return a hash that differs if a checkpoint's files do, and is the same on all machines with the same files.

    The smallest files are read, those of one size all or none, at most `MAX_BYTES` together. For the others that
    are not in the hub's cache, size and modification time count: files that machines share are to be copied with
    their times.

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
    read = (size for size in sizes if sum(other for other in sizes if other <= size) <= MAX_BYTES)
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
