"""Lines of this project's source code that compute displayed numbers, found by a fragment of their text."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class SourceLine:
    """A line of source code that computes something, identified by a unique fragment of its text.

    Attributes:
        path: path of the file, relative to the repository's root.
        fragment: text that exactly one line of the file contains.
    """

    path: str
    fragment: str

    @property
    def line(self) -> int:
        """Line number, from 1; ValueError unless exactly one line contains the fragment."""
        return find_source_line(self)[0]

    @property
    def text(self) -> str:
        """The whole line without its indentation."""
        return find_source_line(self)[1]

    def __str__(self) -> str:
        return f"{self.path}:{self.line}  {self.text}"


@cache
def find_source_line(source: SourceLine) -> tuple[int, str]:
    """Return the number and text of the line with the fragment; ValueError unless it is one line."""
    lines = (ROOT / source.path).read_text(encoding="utf-8").splitlines()
    hits = [(number, line.strip()) for number, line in enumerate(lines, 1) if source.fragment in line]
    if len(hits) != 1:
        raise ValueError(f"one line of {source.path} should hold {source.fragment!r}, but {len(hits)} do")
    return hits[0]
