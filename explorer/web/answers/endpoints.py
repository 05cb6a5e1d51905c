"""What the browser asks for: the open view and the prediction, as the contents of widgets by their element ids."""

from collections.abc import Callable, Mapping
from typing import Any

from explorer.analysis.steering import recipe_of_texts
from explorer.explain.point import Point
from explorer.language import N_, _, look_up
from explorer.lessons.glossary import ENTRY_NAMED, Look
from explorer.state.errors import UserError
from explorer.state.page_state import PageState
from explorer.state.settings import GenerationSettings
from explorer.tracing.loading_ahead import LoadingAhead
from explorer.tracing.runs import Runs
from explorer.views import VIEW_NAMED
from explorer.web.answers.around_tabs import AroundTabs
from explorer.web.answers.inspecting import inspect
from explorer.web.answers.job_endpoints import JobEndpoints
from explorer.web.answers.kept_answers import KeptAnswers
from explorer.web.answers.lesson_answers import LessonAnswers
from explorer.web.answers.lesson_endpoints import LessonEndpoints
from explorer.web.answers.open_view import open_view_of
from explorer.web.answers.opening_endpoints import OpeningEndpoints
from explorer.web.answers.view_contents import lists_of_tokens, view_contents, written_on
from explorer.web.http.request_types import About, Part, PointFields, State
from explorer.web.http.server_functions import as_json, server_function
from explorer.web.http.turns import AT_ONCE, BELOW, BESIDES
from explorer.web.http.visitors import people_before
from explorer.web.protocol import ABOUT, OPEN_MODEL, PARTS, PICKER, PROBLEM, SERIES, in_tab
from explorer.web.shared.going_without import GoingWithout
from explorer.web.widgets.picker import Picker
from explorer.web.widgets.prompt_lists import prompts_in
from explorer.web.widgets.series import Series

RENEWED = N_("The model’s files were written anew: all that is shown is computed with the new ones.")


def waits(about: str, state: State, part: int = 0) -> float:
    """With which patience a part of an answer is waited for."""
    return (AT_ONCE, BELOW, BESIDES)[part] if part in PARTS else AT_ONCE


class Endpoints:
    """Answers that pass Gradio's events and its updates of widgets by: they take longer than all that is computed.

    Args:
        runs: know what the models compute.
        lessons: what a lesson answers; None for none.
        shared: where answers are that other processes have, too; None for none.
    """

    def __init__(self, runs: Runs, lessons: LessonAnswers | None = None, shared: GoingWithout | None = None):
        self.lessons = lessons
        self.runs, self.around_tabs, self.opening = runs, AroundTabs(runs), OpeningEndpoints(runs.library)
        self.jobs = JobEndpoints(runs, [self.opening.queue])
        self.of_lessons = LessonEndpoints(runs, lessons)
        self.kept = KeptAnswers(runs, shared=shared)
        self.loading_ahead = LoadingAhead(runs.library)

    @property
    def functions(self) -> list[Callable]:
        """For the browser to call."""
        own = self.inspect, self.define, self.direction_of_lists
        others = *own, *self.of_lessons.functions, *self.jobs.functions, *self.opening.functions
        return [server_function(self.kept_answer, waits, name="answer"), people_before, *map(server_function, others)]

    def kept_answer(self, about: About, state: State, part: Part = 0) -> bytes:
        """The same as JSON, and kept where nothing else can become of it."""

        def make() -> bytes:
            return as_json(self.answer(about, state, part))

        if about not in ABOUT or part not in PARTS or self.is_renewed(asked := PageState.parse(state), state):
            return make()
        return self.kept.answer(about, part, asked, GenerationSettings.parse(state), make)

    def answer(self, about: str, state: Mapping[str, Any], part: int = 0) -> dict[str, Any]:
        """What a change of the state asks for.

        Args:
            about: "show" for all there is, "view" for the whole open view and the prediction, "pick" for what of them
                follows the selection, "token" for the tokens, the text and the prediction, "tune" for the prediction
                alone.
            state: anything, as anybody may send it.
            part: 0 for what is seen at once, 1 for the other pictures and the tree of continuations, 2 for what vouches
                for the pictures' numbers.

        Returns:
            `contents`, element id -> what it shows, None where it gives up its place; `more`, whether there is a rest;
            `version`, of the model's files, which the browser names in the state that it asks about next. Where they
            were written anew since, there are no contents but `ask`, what to ask in place of this.

        Raises:
            UserError, CheckpointError: there is no answer to that.
        """
        if about not in ABOUT or part not in PARTS:
            told = _("an answer is about {abouts}, in parts 0 to 2, got {about!r:.40}, {part!r:.40}")
            raise UserError(told.format(abouts=", ".join(ABOUT), about=about, part=part))
        asked, settings = PageState.parse(state), GenerationSettings.parse(state)
        version, renewed = self.runs.version(asked.run.checkpoint), self.is_renewed(asked, state)
        if renewed and (about != "show" or part):
            return {"contents": {}, "more": False, "ask": "show"}
        shown = {} if part else {PROBLEM: look_up(RENEWED) if renewed else ""}
        if part == 0:
            shown |= self.lessons.contents(asked, state, about) if self.lessons else {}
            trace = self.runs.logits(asked.run) if about == "token" else self.runs.trace(asked.run)
            shown |= self.around_tabs.prediction(asked, settings, trace)
            shown |= self.around_tabs.tokens(asked, trace) if about in ("token", "show") else {}
            shown |= lists_of_tokens(asked.selection, trace) if about == "token" else {}
        writes = part == 1 and about != "token"
        if about in ("tune", "token"):
            shown |= written_on(open_view_of(self.runs, asked), settings) if writes else {}
            more = part == 0 and about == "tune" and VIEW_NAMED[asked.selection.view].written is not None
            return {"contents": shown, "more": more, "version": version}
        if about == "show" and part == 0:
            shown |= self.around_tabs.advice(asked.run) | self.around_tabs.runs_of(asked)
            checkpoint, checkpoints = asked.run.checkpoint, self.runs.library.checkpoints
            shown |= {PICKER: Picker.pack(checkpoints), SERIES: Series.pack(checkpoint, checkpoints)}
            shown[OPEN_MODEL] = self.opening.about(checkpoint)
        open_view = open_view_of(self.runs, asked)
        shown |= view_contents(open_view, about in ("view", "show"), part)
        shown |= written_on(open_view, settings) if writes else {}
        if part == 2 and about == "show":
            self.make_ready(asked)
        if part == 1:
            shown |= self.around_tabs.asked(asked)
            shown |= self.around_tabs.tree(asked) if about == "show" else {}
        return {"contents": shown, "more": part < 2, "version": version}

    def is_renewed(self, asked: PageState, state: Mapping[str, Any]) -> bool:
        """Whether the model's files are others than those that the browser's pictures are of."""
        known, checkpoint = state.get("version"), asked.run.checkpoint
        same_name = isinstance(known, str) and known.partition("@")[0] == checkpoint
        return same_name and known != self.runs.version(checkpoint)

    def make_ready(self, asked: PageState):
        """What a slider of training steps asks for next."""
        for run in (asked.run, *([self.runs.other(asked)] if asked.seen_other else [])):
            self.loading_ahead.load_steps(run.checkpoint)
            self.loading_ahead.capture_next(run.checkpoint, self.runs.seen(run), run.edits)

    def inspect(self, state: State, picture: str, point: PointFields) -> str:
        """How the number at a clicked point of a picture comes about, as lines of text; "" where there is none.

        Args:
            picture: element id.
            point: its coordinates, see `Point`; anything, as anybody may send it.

        Raises:
            UserError, CheckpointError: there is no such point, or no such picture.
        """
        if not isinstance(picture, str):
            raise UserError(_("a picture has a name, got {got!r:.80}", got=picture))
        open_view = open_view_of(self.runs, PageState.parse(state))
        return inspect(open_view, picture.removeprefix(in_tab(open_view.view.name, "")), Point.parse(point))

    def define(self, state: State, term: str) -> str:
        """What a word means, and what it is in this run.

        Args:
            term: name of an entry of the glossary; anything, as anybody may send it.

        Raises:
            UserError, CheckpointError: the glossary has no such word, or there is no such run.
        """
        entry = ENTRY_NAMED.get(term) if isinstance(term, str) else None
        if entry is None:
            raise UserError(_("the glossary has no {term!r:.80}", term=term))
        asked = PageState.parse(state)
        _lm, trace = self.runs.held(asked.run)  # the model is to stay as long as it is run again
        selection, comparison = asked.selection.within(trace), self.runs.comparison(asked)
        return entry.told(Look(trace, selection, GenerationSettings.parse(state), comparison))

    def direction_of_lists(self, state: State, towards: str, away: str) -> str:
        """The recipe of the direction between the means over two lists of prompts, after the layer that is looked at.

        Args:
            towards, away: the lists, a prompt a line; anything, as anybody may send it.

        Raises:
            UserError, CheckpointError: there is no such direction, or no such run.
        """
        if not isinstance(towards, str) or not isinstance(away, str):
            raise UserError(_("a list of prompts is a text, a prompt a line"))
        asked = PageState.parse(state)
        _lm, trace = self.runs.held(asked.run)
        layer = asked.selection.within(trace).layer
        return str(recipe_of_texts(trace, layer, *map(prompts_in, (towards, away))))
