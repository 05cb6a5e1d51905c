"""Which code answers: what another version of it answered is another answer."""

import hashlib
from functools import cache
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).parents[3]
ANSWERS = ("**/*.py", "**/*.mo")  # of the code and of what it is told in
BESIDES = ("torch", "numpy")


@cache
def code_version(root: Path = ROOT) -> str:
    """Of all that an answer is made by, and the versions of what computes it."""
    found = hashlib.sha256(repr([version(name) for name in BESIDES]).encode())
    for path in sorted(path for room in ("explorer", "model") for kind in ANSWERS for path in (root / room).glob(kind)):
        found.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return found.hexdigest()
