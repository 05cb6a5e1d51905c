"""What a checkpoint's files say, whatever the machine that they lie on."""

import hashlib
from functools import lru_cache
from pathlib import Path

from model.checkpoint import file_version, files_of

MOST_BYTES = 256 << 20  # of a file that is read for this: that of larger ones would take longer than an answer may
A_PIECE = 1 << 20


def contents_of(place: str | Path) -> str:
    """Differs where a file of a checkpoint does, and is the same on all machines that have the same files.

    Of files that are too large to read, that are not in the hub's cache, it is their size and time: those that machines
    are to share are copied with their times.

    Args:
        place: see `OfferedModels.place`.
    """
    files = files_of(place)
    files += sorted(files[0].parent.glob("*.safetensors")) if len(files) > 1 else []  # parts that the index names
    said = [(path.name, _contents(path, file_version(path))) for path in files]
    return hashlib.sha256(repr(said).encode()).hexdigest()


@lru_cache(4096)
def _contents(path: Path, version: tuple[int, ...] | None) -> str:
    """Of a file as it is in that version."""
    if version is None:
        return ""
    if (blob := path.resolve()).parent.name == "blobs":  # the hub's cache names files by what they say
        return blob.name
    _node, written, size = version
    if size > MOST_BYTES:
        return f"{size}@{written}"
    found = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(A_PIECE):
            found.update(piece)
    return found.hexdigest()
