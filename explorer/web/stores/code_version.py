"""Version of the code, which is part of the key of cached answers."""

import hashlib
from functools import cache
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).parents[3]
SOURCE_PATTERNS = ("**/*.py", "**/*.mo")  # of the code and of what it is told in
LIBRARIES = ("torch", "numpy")


@cache
def code_version(root: Path = ROOT) -> str:
    """Return a hash of all source files and catalogues, and of the versions of the numerical libraries."""
    digest = hashlib.sha256(repr([version(name) for name in LIBRARIES]).encode())
    for path in sorted(
        path
        for package in ("explorer", "model")
        for pattern in SOURCE_PATTERNS
        for path in (root / package).glob(pattern)
    ):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()
