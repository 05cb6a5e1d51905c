"""Endpoints for lessons besides their steps: list, worksheets and walkthroughs."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from explorer.explain.walkthroughs import get_walkthrough
from explorer.state.errors import UserError
from explorer.state.page_state import PageState
from explorer.tracing.run_service import RunService
from explorer.translations import _, translate
from explorer.web.answers.lesson_contents import REVEAL_ANSWER, LessonContents
from explorer.web.answers.open_view import make_open_view
from explorer.web.answers.view_contents import figure_payload
from explorer.web.middleware.request_types import Index, State
from explorer.web.protocol import element_id


class LessonEndpoints:
    """Endpoints for lessons; errors are those of `Endpoints`.

    Args:
        runs: access to models and runs.
        lessons: contents of lessons; None for none.
    """

    def __init__(self, runs: RunService, lessons: LessonContents | None):
        self.runs, self.lessons = runs, lessons

    @property
    def functions(self) -> list[Callable]:
        """Server functions for the browser."""
        return [self.listed_lessons, self.lesson_sheet, self.walk]

    def listed_lessons(self, state: State) -> list[dict[str, Any]]:
        """Return the lessons to choose from.

        Args:
            state: the page's state, which has the locale.
        """
        return self.lessons.list_lessons() if self.lessons else []

    def lesson_sheet(self, state: State, name: str, place: Index) -> dict[str, Any]:
        """Return a step of a lesson for printing: the widget's payload with the answer, and the step's figure.

        Args:
            state: the page's state, which names the model to use if the lesson's own is not available.
            name, place: the lesson, and the number of the step, from 1; unvalidated.

        Raises:
            UserError: there is no such lesson or step.
        """
        lesson = self.lessons.lesson_library.lessons.get(name) if self.lessons and isinstance(name, str) else None
        if lesson is None or not isinstance(place, int) or not 1 <= place <= len(lesson.steps):
            raise UserError(_("There is no lesson {name}.", name=f"{name!r:.60}"))
        current_state = PageState.parse(state)
        model = self.lessons.lesson_model(lesson, current_state.run.checkpoint) or self.lessons.fallback_model
        step_state = lesson.state(place, model)
        page_state = self.lessons.open_state(step_state)
        selection = replace(page_state.selection, lesson=name, step=place, reply=f"{place}:{REVEAL_ANSWER}")
        page_state, step = replace(page_state, selection=selection), lesson.step(place)
        payload = self.lessons.step_payload(lesson, step, page_state, step_state)
        payload |= {"audience": lesson.audience, "minutes": lesson.minutes, "text": step_state["text"], "model": model}
        return payload | {
            "figure": self._target_figure(page_state, step.target),
            "is_hidden": step.target in step.hidden_figures,
        }

    def _target_figure(self, page_state: PageState, target: str) -> dict[str, Any] | None:
        open_view = make_open_view(self.runs, page_state)
        for panel in open_view.view.panels:
            if element_id(open_view.view.name, panel.name) == target and open_view.has(panel):
                sizes = {"kind": panel.kind, "height": panel.height}
                return sizes | {"title": translate(panel.title), "picture": figure_payload(open_view.draw(panel))}
        return None

    def walk(self, state: State, name: str) -> dict[str, Any]:
        """Return a step-by-step walkthrough of a computation with this run's numbers.

        Args:
            name: name of a walkthrough (`explorer.explain.walkthroughs`); unvalidated.

        Raises:
            UserError, CheckpointError: there is no such walkthrough of this run.
        """
        page_state = PageState.parse(state)
        _lm, trace = self.runs.model_and_trace(page_state.run)
        return get_walkthrough(name, trace, page_state.selection).as_dict()
