"""What the browser asks of lessons besides their steps: which there are, their sheets, and walks."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from explorer.explain.walks import walk_of
from explorer.language import _, look_up
from explorer.state.errors import UserError
from explorer.state.page_state import PageState
from explorer.tracing.runs import Runs
from explorer.web.answers.lesson_answers import SHOWN_ANYWAY, LessonAnswers
from explorer.web.answers.open_view import open_view_of
from explorer.web.answers.view_contents import packed
from explorer.web.http.request_types import Index, State
from explorer.web.protocol import in_tab


class LessonEndpoints:
    """Errors are those of `Endpoints`.

    Args:
        runs: know what the models compute.
        lessons: what a lesson answers; None for none.
    """

    def __init__(self, runs: Runs, lessons: LessonAnswers | None):
        self.runs, self.lessons = runs, lessons

    @property
    def functions(self) -> list[Callable]:
        """For the browser to call."""
        return [self.listed_lessons, self.lesson_sheet, self.walk]

    def listed_lessons(self, state: State) -> list[dict[str, Any]]:
        """The lessons to choose from.

        Args:
            state: says in which language.
        """
        return self.lessons.listed() if self.lessons else []

    def lesson_sheet(self, state: State, name: str, place: Index) -> dict[str, Any]:
        """A step of a lesson as it is printed: as the widget takes it, with the truth, for a page of its own, and the
        picture that it points out.

        Args:
            state: says which model the lesson is gone through with where its own is not here.
            name, place: of the lesson, and which step of it, from 1; anything, as anybody may send it.
        """
        lesson = self.lessons.shelf.lessons.get(name) if self.lessons and isinstance(name, str) else None
        if lesson is None or not isinstance(place, int) or not 1 <= place <= len(lesson.steps):
            raise UserError(_("There is no lesson {name}.", name=f"{name!r:.60}"))
        present = PageState.parse(state)
        model = self.lessons.model_of(lesson, present.run.checkpoint) or self.lessons.offered
        wanted = lesson.state(place, model)
        asked = self.lessons.opened(wanted)
        selection = replace(asked.selection, lesson=name, step=place, reply=f"{place}:{SHOWN_ANYWAY}")
        asked, step = replace(asked, selection=selection), lesson.step(place)
        told = self.lessons.told(lesson, step, asked, wanted)
        told |= {"audience": lesson.audience, "minutes": lesson.minutes, "text": wanted["text"], "model": model}
        return told | {"figure": self._figure(asked, step.target), "is_hidden": step.target in step.hides}

    def _figure(self, asked: PageState, target: str) -> dict[str, Any] | None:
        open_view = open_view_of(self.runs, asked)
        for panel in open_view.view.panels:
            if in_tab(open_view.view.name, panel.name) == target and open_view.has(panel):
                sizes = {"kind": panel.kind, "height": panel.height}
                return sizes | {"title": look_up(panel.title), "picture": packed(open_view.draw(panel))}
        return None

    def walk(self, state: State, name: str) -> dict[str, Any]:
        """A computation gone through bit by bit, with this run's numbers.

        Args:
            name: one of `explain.walks.WALKS`; anything, as anybody may send it.

        Raises:
            UserError, CheckpointError: there is no such walk of this run.
        """
        asked = PageState.parse(state)
        _lm, trace = self.runs.held(asked.run)
        return walk_of(name, trace, asked.selection).as_dict()
