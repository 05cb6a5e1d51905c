"""All available lessons: the bundled ones, and a teacher's own."""

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from explorer.lessons.course.lesson import Lesson
from explorer.lessons.course.parser import load_lesson

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
class LessonLibrary:
    """Lessons by name, loaded at the first use.

    Attributes:
        teacher_folder: a folder with a teacher's lessons, which replace bundled ones of the same name.
        figure_ids: element ids of the figures that a lesson may name.
        bundled: the folder with the bundled lessons.
    """

    teacher_folder: Path | None = None
    figure_ids: Collection[str] = ()
    bundled: Path = BUNDLED

    @cached_property
    def lessons(self) -> dict[str, Lesson]:
        """All lessons by name, in the order in which they are listed.

        Raises:
            LessonError: a file is no lesson.
        """
        paths = {
            path.stem: path for folder in (self.bundled, self.teacher_folder) if folder for path in lesson_files(folder)
        }
        first = [name for name in ORDER if name in paths]
        names = [*first, *sorted(paths.keys() - {*first})]
        return {name: load_lesson(paths[name], self.figure_ids) for name in names}

    def check(self):
        """Load all lessons.

        Raises:
            LessonError: a file is no lesson.
            FileNotFoundError: the teacher's folder has none.
        """
        if self.teacher_folder and not lesson_files(self.teacher_folder):
            raise FileNotFoundError(f"there are no lessons, files that end with .md, in {self.teacher_folder}")
        _all = self.lessons


def lesson_files(folder: Path) -> list[Path]:
    """Return the lesson files in a folder: all Markdown files except its README."""
    return [path for path in sorted(folder.glob("*.md")) if path.stem.lower() != "readme"]
