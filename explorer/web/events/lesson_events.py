"""Going from step to step of a lesson."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from explorer.language import _
from explorer.state.errors import UserError
from explorer.state.page_state import PageState
from explorer.state.selection import Selection, as_index
from explorer.state.settings import GenerationSettings
from explorer.web.answers.lesson_answers import LessonAnswers

OF_A_RUN = ("prompt", "text")  # what of an address says that it has a run of its own


class LessonEvents:
    """A lesson's steps as states of the page.

    Args:
        answers: know the lessons, and the models that they are gone through with.
    """

    def __init__(self, answers: LessonAnswers):
        self.answers = answers

    def in_address(self, query: Mapping[str, str], checkpoint: str) -> dict[str, str]:
        """An address with what the step that it names asks, where it says nothing else.

        Args:
            checkpoint: of the page, where the address names none.
        """
        named = Selection.parse(query)
        lesson = self.answers.shelf.lessons.get(named.lesson)
        if lesson is None or any(name in query for name in OF_A_RUN):
            return dict(query)
        place = max(1, min(named.step, len(lesson.steps)))
        model = self.answers.model_of(lesson, query.get("checkpoint", checkpoint))
        state = lesson.state(place, model) if model else {}
        here = {"lesson": lesson.name, "step": str(place)}
        return {name: str(value) for name, value in state.items()} | dict(query) | here

    def gone_to(self, state: Mapping[str, Any], move: Mapping[str, Any]) -> tuple[PageState, GenerationSettings]:
        """What is asked in a step, with a reply that was given there before.

        Args:
            state: the page's.
            move: "lesson" and "step"; "reply", and a "checkpoint" in the place of the lesson's.

        Raises:
            UserError: there is no such lesson.
        """
        name = move.get("lesson")
        lesson = self.answers.shelf.lessons.get(name) if isinstance(name, str) else None
        if lesson is None:
            raise UserError(_("There is no lesson {name}.", name=f"{name!r:.60}"))
        place = max(1, min(as_index(move.get("step")) or 1, len(lesson.steps)))
        asked, settings = PageState.parse(state), GenerationSettings.parse(state)
        present = move.get("checkpoint") or asked.run.checkpoint
        model = self.answers.model_of(lesson, present)
        if model:
            wanted = lesson.state(place, model)
            asked, settings = self.answers.opened(wanted), GenerationSettings.parse(wanted)
        reply = move.get("reply")
        reply = reply if isinstance(reply, str) and reply.startswith(f"{place}:") else ""
        selection = replace(asked.selection, lesson=lesson.name, step=place, reply=reply)
        return replace(asked, selection=selection), settings
