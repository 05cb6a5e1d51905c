"""All lessons that there are: those beside this folder, and a teacher's own."""

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from explorer.lessons.course.lesson import Lesson
from explorer.lessons.course.reading import read_lesson

BUNDLED = Path(__file__).parents[1]
ORDER = (  # of those beside this folder; a teacher's own come after, by their names
    "tokens-and-merges",
    "vectors-and-meaning",
    "who-looks-at-whom",
    "the-mask",
    "many-heads",
    "order",
    "residual-stream",
    "norms",
    "feed-forward",
    "choosing-the-next-word",
    "learning-to-copy",
    "silencing",
)


@dataclass(frozen=True)
class Shelf:
    """Lessons by their names, read when they are first asked for.

    Attributes:
        own: a folder with a teacher's lessons, which go before those of the same name.
        pictures: element ids of the pictures that a lesson may name.
        bundled: the folder with the others.
    """

    own: Path | None = None
    pictures: Collection[str] = ()
    bundled: Path = BUNDLED

    @cached_property
    def lessons(self) -> dict[str, Lesson]:
        """Name -> lesson, in the order in which they are listed.

        Raises:
            LessonError: a file is none.
        """
        found = {path.stem: path for folder in (self.bundled, self.own) if folder for path in files_in(folder)}
        first = [name for name in ORDER if name in found]
        names = [*first, *sorted(found.keys() - {*first})]
        return {name: read_lesson(found[name], self.pictures) for name in names}

    def check(self):
        """LessonError where a file is no lesson, and FileNotFoundError where a teacher's folder has none."""
        if self.own and not files_in(self.own):
            raise FileNotFoundError(f"there are no lessons, files that end with .md, in {self.own}")
        _all = self.lessons


def files_in(folder: Path) -> list[Path]:
    """The lessons' files of a folder: all Markdown but its README."""
    return [path for path in sorted(folder.glob("*.md")) if path.stem.lower() != "readme"]
