"""Navigation between the steps of a lesson."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from explorer.state.errors import UserError
from explorer.state.generation_settings import GenerationSettings
from explorer.state.page_state import PageState
from explorer.state.selection import Selection, parse_index
from explorer.translations import _
from explorer.web.answers.lesson_contents import LessonContents

TEXT_FIELDS = ("prompt", "text")  # a query with one of these fields has a run of its own


class LessonSteps:
    """A lesson's steps as states of the page.

    Args:
        lesson_contents: access to the lessons and their models.
    """

    def __init__(self, lesson_contents: LessonContents):
        self.lesson_contents = lesson_contents

    def complete_query(self, query: Mapping[str, str], checkpoint: str) -> dict[str, str]:
        """Return a URL's query with the fields of its lesson step as defaults.

        Args:
            checkpoint: the page's, if the query names none.
        """
        selection = Selection.parse(query)
        lesson = self.lesson_contents.lesson_library.lessons.get(selection.lesson)
        if lesson is None or any(name in query for name in TEXT_FIELDS):
            return dict(query)
        step_number = max(1, min(selection.step, len(lesson.steps)))
        model = self.lesson_contents.lesson_model(lesson, query.get("checkpoint", checkpoint))
        state = lesson.state(step_number, model) if model else {}
        step_fields = {"lesson": lesson.name, "step": str(step_number)}
        return {name: str(value) for name, value in state.items()} | dict(query) | step_fields

    def go_to_step(self, state: Mapping[str, Any], command: Mapping[str, Any]) -> tuple[PageState, GenerationSettings]:
        """Return the state and settings of a lesson step, with an earlier reply to it.

        Args:
            state: the page's.
            command: "lesson" and "step"; optionally "reply", and a "checkpoint" in place of the lesson's.

        Raises:
            UserError: there is no such lesson.
        """
        name = command.get("lesson")
        lesson = self.lesson_contents.lesson_library.lessons.get(name) if isinstance(name, str) else None
        if lesson is None:
            raise UserError(_("There is no lesson {name}.", name=f"{name!r:.60}"))
        step_number = max(1, min(parse_index(command.get("step")) or 1, len(lesson.steps)))
        page_state, settings = PageState.parse(state), GenerationSettings.parse(state)
        checkpoint = command.get("checkpoint") or page_state.run.checkpoint
        model = self.lesson_contents.lesson_model(lesson, checkpoint)
        if model:
            step_state = lesson.state(step_number, model)
            page_state, settings = self.lesson_contents.open_state(step_state), GenerationSettings.parse(step_state)
        reply = command.get("reply")
        reply = reply if isinstance(reply, str) and reply.startswith(f"{step_number}:") else ""
        selection = replace(page_state.selection, lesson=lesson.name, step=step_number, reply=reply)
        return replace(page_state, selection=selection), settings
