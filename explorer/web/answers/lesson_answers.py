"""What the page's lesson shows: a step, its question, and what is said of a reply."""

from collections.abc import Mapping
from typing import Any

from explorer.language import _
from explorer.lessons.course.lesson import NEXT_TOKEN as NEXT_TOKEN_PANEL
from explorer.lessons.course.lesson import Lesson, Step
from explorer.lessons.course.look import Look, Opened
from explorer.lessons.course.questions.judged import written
from explorer.lessons.course.shelf import Shelf
from explorer.lessons.course.words import with_values
from explorer.state.page_state import PageState
from explorer.tracing.runs import Runs
from explorer.views import VIEWS
from explorer.web.protocol import (
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
    in_tab,
)

BUNDLED = "llama-fables"
SHOWN_ANYWAY = "?"  # in a reply's place: the truth was asked for without one
AROUND = ("prompt", "generation", STRIP, NEXT_TOKEN, WHY, STAND_INS, CHANGES, RUNS, SERIES)
OF_TABS = (WHAT_IFS, CHOOSERS)
TELLS_NEXT_TOKEN = (NEXT_TOKEN, NEXT_TOKEN_WORDS, GUESS, BRIEF)  # all that does beside the tabs
PICTURES = frozenset(
    [*AROUND]
    + [in_tab(view.name, panel.name) for view in VIEWS for panel in view.panels]
    + [in_tab(view.name, name) for view in VIEWS for name in OF_TABS]
)


class LessonAnswers:
    """What a lesson answers to the page's state.

    Args:
        shelf: the lessons.
        runs: know what models compute.
        opened: a state's mapping -> what it asks, with its text as tokens.
    """

    def __init__(self, shelf: Shelf, runs: Runs, opened: Opened):
        self.shelf, self.runs, self.opened = shelf, runs, opened

    def listed(self) -> list[dict[str, Any]]:
        """What there is to choose from."""
        return [
            {
                "name": lesson.name,
                "title": lesson.title,
                "audience": lesson.audience,
                "minutes": lesson.minutes,
                "steps": len(lesson.steps),
                "against": lesson.against,
            }
            for lesson in self.shelf.lessons.values()
        ]

    def model_of(self, lesson: Lesson, present: str) -> str | None:
        """The model that a lesson is gone through with: its own, or where that is not here, the page's if that is the
        one that is offered in its place; None for neither."""
        if self.runs.library.offered.resolve(lesson.model) in self.runs.library.checkpoints:
            return lesson.model
        return present if present == self.offered else None

    @property
    def offered(self) -> str:
        """The model in the place of one that is not here."""
        there = self.runs.library.checkpoints
        return BUNDLED if BUNDLED in there else there[0]

    def contents(self, asked: PageState, state: Mapping[str, Any], about: str) -> dict[str, Any]:
        """The lesson's column, by its element id; nothing where it stays as it is.

        Args:
            about: what the browser asked.
        """
        selection = asked.selection
        if not selection.lesson:
            return {}
        lesson = self.shelf.lessons.get(selection.lesson)
        if lesson is None:
            words = _("There is no lesson {name}.", name=selection.lesson)
            return {LESSON: {"problem": words}}
        step = lesson.step(selection.step)
        if about not in ("show", "tune") and step.task is None:
            return {}
        return {LESSON: self.told(lesson, step, asked, state)}

    def told(self, lesson: Lesson, step: Step, asked: PageState, state: Mapping[str, Any]) -> dict[str, Any]:
        """A step as the widget takes it: of the truth only what a reply has earned."""
        place, model = lesson.steps.index(step) + 1, self.model_of(lesson, asked.run.checkpoint)
        told = {"name": lesson.name, "title": lesson.title, "against": lesson.against, "heading": step.title}
        told |= {"step": place, "steps": len(lesson.steps), "before": step.before, "target": step.target}
        if following := lesson.steps[place : place + 1]:
            told["next"] = {"heading": following[0].title, "before": following[0].before}
        if model is None:
            words = _(
                "This lesson is about {model}, which is not here. It can be gone through with {offered}, whose numbers "
                "differ.",
                model=lesson.model,
                offered=self.offered,
            )
            return told | {"missing": {"words": words, "offered": self.offered}}
        if model != lesson.model:
            told["note"] = _("{model} is not here: all numbers are those of {other}.", model=lesson.model, other=model)
        look = Look(self.runs, self.opened, lesson.state(place, model))
        try:
            return told | self._question(step, look, asked, state)
        except ValueError as error:  # this model has not what is asked for
            problem = _("This step cannot be asked of {model}: {why}.", model=model, why=str(error).rstrip("."))
            return told | {"problem": problem, "after": []}

    def _question(self, step: Step, look: Look, asked: PageState, state: Mapping[str, Any]) -> dict[str, Any]:
        if step.task:
            done = step.task.done(look, Look(self.runs, PageState.parse, state))
            told = {"task": {"is_done": done.is_done, "words": done.words}}
            return told | ({"after": self._after(step, look)} if done.is_done else {})
        if step.question is None:
            return {"after": self._after(step, look)}
        reply = asked.selection.reply_here
        judged = None
        if reply is not None:
            judged = step.question.judged(look, None if reply == SHOWN_ANYWAY else reply)
        told = {"question": {"words": step.asks, **step.question.asked(look)}}
        if told["question"].get("is_example"):
            return told | {"after": self._after(step, look)}
        if judged is None:
            return told | {"hides": hidden(step)}
        given = None if judged.is_right is None else reply
        verdict = {"is_right": judged.is_right, "words": judged.words, "truth": dict(judged.truth), "reply": given}
        return told | {"judged": verdict, "after": self._after(step, look)}

    @staticmethod
    def _after(step: Step, look: Look) -> list[dict[str, Any]]:
        return with_values(step.after, lambda name: written(step.values[name].at(look)))


def hidden(step: Step) -> dict[str, Any] | None:
    """What would tell the answer: what the step names, and all pictures of other tabs, as they show the same run."""
    if not step.hides:
        return None
    others = TELLS_NEXT_TOKEN if NEXT_TOKEN_PANEL in step.hides else ()
    return {"ids": [*dict.fromkeys((*step.hides, *others, WHY, STAND_INS))], "view": step.state["view"]}
