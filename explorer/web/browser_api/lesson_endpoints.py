"""Lessons for the browser: a step, its question and feedback on a reply, the list, worksheets and walkthroughs."""

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from explorer.analysis.walkthroughs import get_walkthrough
from explorer.errors import UserError
from explorer.lessons.lesson import NEXT_TOKEN as NEXT_TOKEN_PANEL
from explorer.lessons.lesson import Lesson, LessonLibrary, LessonStep, fill_placeholders
from explorer.lessons.quantities import QuantityContext, StateOpener, format_answer_number
from explorer.state.generation_settings import GenerationSettings
from explorer.state.page_state import PageState
from explorer.tracing.run_service import RunService
from explorer.translations import _
from explorer.views import VIEWS
from explorer.web.browser_api.open_view import make_open_view
from explorer.web.browser_api.page_contents import figure_payload
from explorer.web.request_validation import Index, State
from explorer.web.shared_constants import (
    BRIEF,
    CHANGES,
    CHOOSERS,
    GUESS,
    LESSON,
    NEXT_TOKEN,
    NEXT_TOKEN_WORDS,
    RUNS,
    SERIES,
    STAND_INS,
    STRIP,
    WHAT_IFS,
    WHY,
    element_id,
)

SAMPLING_FIELDS = {field.name for field in fields(GenerationSettings)}
BUNDLED_MODEL = "llama-fables"
REVEAL_ANSWER = "?"  # in a reply's place: the user asked for the answer
ELEMENTS_AROUND_TABS = ("prompt", "generation", STRIP, NEXT_TOKEN, WHY, STAND_INS, CHANGES, RUNS, SERIES)
TAB_ELEMENTS = (WHAT_IFS, CHOOSERS)
NEXT_TOKEN_ELEMENTS = (
    NEXT_TOKEN,
    NEXT_TOKEN_WORDS,
    GUESS,
    BRIEF,
)  # elements outside the tabs that reveal the next token
ELEMENT_IDS = frozenset(
    [*ELEMENTS_AROUND_TABS]
    + [element_id(view.name, panel.name) for view in VIEWS for panel in view.panels]
    + [element_id(view.name, name) for view in VIEWS for name in TAB_ELEMENTS]
)


class LessonContents:
    """Contents of the lesson's widget for the page's state.

    Args:
        lesson_library: the lessons.
        runs: access to models and runs.
        open_state: parses a state's mapping, and tokenizes its text.
    """

    def __init__(self, lesson_library: LessonLibrary, runs: RunService, open_state: StateOpener):
        self.lesson_library, self.runs, self.open_state = lesson_library, runs, open_state

    def list_lessons(self) -> list[dict[str, Any]]:
        """Return the lessons to choose from."""
        return [
            {
                "name": lesson.name,
                "title": lesson.title,
                "audience": lesson.audience,
                "minutes": lesson.minutes,
                "steps": len(lesson.steps),
                "against": lesson.misconception,
            }
            for lesson in self.lesson_library.lessons.values()
        ]

    def lesson_model(self, lesson: Lesson, page_checkpoint: str) -> str | None:
        """Return the checkpoint that a lesson runs with.

        The lesson's own model if it is available, or else the page's if that is the fallback; None otherwise.
        """
        if self.runs.library.catalog.resolve(lesson.model) in self.runs.library.checkpoints:
            return lesson.model
        return page_checkpoint if page_checkpoint == self.fallback_model else None

    @property
    def fallback_model(self) -> str:
        """The checkpoint used in place of a lesson's model that is not available."""
        checkpoints = self.runs.library.checkpoints
        return BUNDLED_MODEL if BUNDLED_MODEL in checkpoints else checkpoints[0]

    def contents(self, page_state: PageState, state: Mapping[str, Any], about: str) -> dict[str, Any]:
        """Return the lesson's contents by its element id; empty if they are unchanged.

        Args:
            about: scope of the browser's request, see `BrowserEndpoints.answer`.
        """
        selection = page_state.selection
        if not selection.lesson:
            return {}
        lesson = self.lesson_library.lessons.get(selection.lesson)
        if lesson is None:
            message = _("There is no lesson {name}.", name=selection.lesson)
            return {LESSON: {"problem": message}}
        step = lesson.step(selection.step)
        if about not in ("show", "tune") and step.task is None:
            return {}
        return {LESSON: self.step_payload(lesson, step, page_state, state)}

    def step_payload(
        self, lesson: Lesson, step: LessonStep, page_state: PageState, state: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return a step as the widget takes it; the answer is included only as far as the reply entitles to it."""
        step_number, model = lesson.steps.index(step) + 1, self.lesson_model(lesson, page_state.run.checkpoint)
        payload = {"name": lesson.name, "title": lesson.title, "against": lesson.misconception, "heading": step.title}
        payload |= {"step": step_number, "steps": len(lesson.steps), "before": step.before, "target": step.target}
        payload |= {"view": step.state["view"], "sets_sampling": sets_sampling(step)}
        if following := lesson.steps[step_number : step_number + 1]:
            payload["next"] = {"heading": following[0].title, "before": following[0].before}
        if model is None:
            message = _(
                "This lesson is about {model}, which is not here. You can use {offered} instead; its numbers differ.",
                model=lesson.model,
                offered=self.fallback_model,
            )
            return payload | {"missing": {"words": message, "offered": self.fallback_model}}
        if model != lesson.model:
            payload["note"] = _("{model} is not here: all numbers are from {other}.", model=lesson.model, other=model)
        context = QuantityContext(self.runs, self.open_state, lesson.state(step_number, model))
        try:
            return payload | self._question_payload(step, context, page_state, state)
        except ValueError as error:  # the model lacks something that the step needs
            problem = _("This step does not work with {model}: {why}.", model=model, why=str(error).rstrip("."))
            return payload | {"problem": problem, "after": []}

    def _question_payload(
        self, step: LessonStep, context: QuantityContext, page_state: PageState, state: Mapping[str, Any]
    ) -> dict[str, Any]:
        if step.task:
            done = step.task.check(context, QuantityContext(self.runs, PageState.parse, state))
            payload = {"task": {"is_done": done.is_done, "words": done.text}}
            return payload | ({"after": self._explanation(step, context)} if done.is_done else {})
        if step.question is None:
            return {"after": self._explanation(step, context)}
        reply = page_state.selection.current_reply
        grade = None
        if reply is not None:
            grade = step.question.grade(context, None if reply == REVEAL_ANSWER else reply)
        payload = {"question": {"words": step.question_text, **step.question.prompt_payload(context)}}
        if payload["question"].get("is_example"):
            return payload | {"after": self._explanation(step, context)}
        if grade is None:
            return payload | {"hides": hidden_elements(step)}
        graded_reply = None if grade.is_right is None else reply
        verdict = {"is_right": grade.is_right, "words": grade.text, "truth": dict(grade.truth), "reply": graded_reply}
        return payload | {"judged": verdict, "after": self._explanation(step, context)}

    @staticmethod
    def _explanation(step: LessonStep, context: QuantityContext) -> list[dict[str, Any]]:
        return fill_placeholders(step.after, lambda name: format_answer_number(step.values[name].evaluate(context)))


def sets_sampling(step: LessonStep) -> bool:
    """Return whether a step sets temperature, top-k or another setting of sampling."""
    return not SAMPLING_FIELDS.isdisjoint(step.state)


def hidden_elements(step: LessonStep) -> dict[str, Any] | None:
    """Return the elements that would reveal the answer; None if the step hides nothing.

    Those that the step names, and all figures of other tabs, which show the same run.
    """
    if not step.hidden_figures:
        return None
    next_token_ids = NEXT_TOKEN_ELEMENTS if NEXT_TOKEN_PANEL in step.hidden_figures else ()
    return {
        "ids": [*dict.fromkeys((*step.hidden_figures, *next_token_ids, WHY, STAND_INS))],
        "view": step.state["view"],
    }


class LessonEndpoints:
    """Endpoints for lessons; errors are those of `BrowserEndpoints`.

    Args:
        runs: access to models and runs.
        lessons: contents of lessons; None for none.
    """

    def __init__(self, runs: RunService, lessons: LessonContents | None):
        self.runs, self.lessons = runs, lessons

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
            name, place: the lesson, and the number of the step, from 1.

        Raises:
            UserError: there is no such lesson or step.
        """
        lesson = self.lessons.lesson_library.lessons.get(name) if self.lessons else None
        if lesson is None or not 1 <= place <= len(lesson.steps):
            raise UserError(_("There is no lesson {name}.", name=f"{name!r:.60}"))
        current_state = PageState.parse(state)
        model = self.lessons.lesson_model(lesson, current_state.run.checkpoint) or self.lessons.fallback_model
        step_state = lesson.state(place, model)
        page_state = self.lessons.open_state(step_state)
        selection = replace(page_state.selection, lesson=name, step=place, reply=f"{place}:{REVEAL_ANSWER}")
        page_state, step = replace(page_state, selection=selection), lesson.step(place)
        payload = self.lessons.step_payload(lesson, step, page_state, page_state.as_dict())
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
                return sizes | {"title": open_view.heading(panel), "content": figure_payload(open_view.draw(panel))}
        return None

    def walk(self, state: State, name: str) -> dict[str, Any]:
        """Return the numbers of a walkthrough, a computation of this run step by step.

        Args:
            name: name of a walkthrough (`explorer.analysis.walkthroughs`); unvalidated.

        Raises:
            UserError, CheckpointError: there is no such walkthrough of this run.
        """
        page_state = PageState.parse(state)
        _lm, trace = self.runs.model_and_trace(page_state.run)
        return get_walkthrough(name, trace, page_state.selection)
