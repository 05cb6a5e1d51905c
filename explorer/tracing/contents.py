"""What a checkpoint's files say, whatever the machine that they lie on."""

import hashlib
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from model.checkpoint import file_version, files_of
from model.errors import ModelError
from model.pretrained.weight_files import INDEX, find_weights

MOST_BYTES = 256 << 20  # of all files that are read for this: more would take longer than an answer may
A_PIECE = 1 << 20


def contents_of(place: str | Path) -> str:
    """Differs where a file of a checkpoint does, and is the same on all machines that have the same files.

    The smallest files are read, those of one size all or none, no more than `MOST_BYTES` together. Of the others, that
    are not in the hub's cache, it is their size and time: those that machines are to share are copied with their times.

    Args:
        place: see `OfferedModels.place`.
    """
    files = files_of(place)
    if len(files) > 1:
        folder, index = files[0].parent, files[0].with_name(INDEX)
        files += sorted(folder.glob("*.safetensors"))
        with suppress(ModelError, OSError):
            files += _weights(folder, file_version(index))  # parts that the index names, in other folders, too
    versions = {path: file_version(path) for path in files}
    sizes = [version[-1] for version in versions.values() if version]
    read = (size for size in sizes if sum(other for other in sizes if other <= size) <= MOST_BYTES)
    most = max(read, default=0)
    said = [(path.name, _contents(path, version, most)) for path, version in versions.items()]
    return hashlib.sha256(repr(said).encode()).hexdigest()


@lru_cache(64)
def _weights(folder: Path, index: tuple[int, ...] | None) -> list[Path]:
    """The files of a folder's weights, as its index names them in that version."""
    return find_weights(folder)


@lru_cache(4096)
def _contents(path: Path, version: tuple[int, ...] | None, most: int) -> str:
    """Of a file as it is in that version, which is read where it has no more than so many bytes."""
    if version is None:
        return ""
    if (blob := path.resolve()).parent.name == "blobs":  # the hub's cache names files by what they say
        return blob.name
    _node, written, size = version
    if size > most:
        return f"{size}@{written}"
    found = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(A_PIECE):
            found.update(piece)
    return found.hexdigest()
