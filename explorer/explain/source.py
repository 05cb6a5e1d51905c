"""Lines of this project's own source."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Source:
    """The line that computes something, found by a fragment of it, so that it stays right as files change.

    Attributes:
        path: of the file, from the repository's root.
        fragment: text that one line of the file holds, and no other.
    """

    path: str
    fragment: str

    @property
    def line(self) -> int:
        """Its number, from 1. ValueError unless exactly one line holds the fragment."""
        return found(self)[0]

    @property
    def text(self) -> str:
        """The whole line without its indentation."""
        return found(self)[1]

    def __str__(self) -> str:
        return f"{self.path}:{self.line}  {self.text}"


@cache
def found(source: Source) -> tuple[int, str]:
    lines = (ROOT / source.path).read_text(encoding="utf-8").splitlines()
    hits = [(number, line.strip()) for number, line in enumerate(lines, 1) if source.fragment in line]
    if len(hits) != 1:
        raise ValueError(f"one line of {source.path} should hold {source.fragment!r}, but {len(hits)} do")
    return hits[0]
