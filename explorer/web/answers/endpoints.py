"""Endpoints for the browser: contents of the open view's and the prediction's widgets by element id."""

from collections.abc import Callable, Mapping
from typing import Any

from explorer.analysis.steering import direction_from_texts
from explorer.explain.point import Point
from explorer.lessons.glossary import ENTRY_BY_NAME, GlossaryContext
from explorer.state.errors import UserError
from explorer.state.generation_settings import GenerationSettings
from explorer.state.page_state import PageState
from explorer.tracing.prefetch import Prefetcher
from explorer.tracing.runs import RunService
from explorer.translations import N_, _, translate
from explorer.views import VIEW_BY_NAME
from explorer.web.answers.answer_cache import AnswerCache
from explorer.web.answers.hub_endpoints import OpeningEndpoints
from explorer.web.answers.inspection import inspect
from explorer.web.answers.job_endpoints import JobEndpoints
from explorer.web.answers.lesson_contents import LessonContents
from explorer.web.answers.lesson_endpoints import LessonEndpoints
from explorer.web.answers.open_view import make_open_view
from explorer.web.answers.page_contents import PageContents
from explorer.web.answers.view_contents import continuation_contents, token_select_fields, view_contents
from explorer.web.http.clients import people_before
from explorer.web.http.request_types import About, PointFields, Stage, State
from explorer.web.http.server_functions import as_json, server_function
from explorer.web.http.turns import BELOW_DELAY_S, NO_DELAY_S, VERIFICATION_DELAY_S
from explorer.web.protocol import ABOUT, OPEN_MODEL, PICKER, PROBLEM, SERIES, STAGES, element_id
from explorer.web.stores import OptionalStore
from explorer.web.widgets.picker import ModelPicker
from explorer.web.widgets.prompt_lists import split_prompts
from explorer.web.widgets.series import TrainingStepSlider

FILES_CHANGED = N_("The model’s files have changed. Everything shown is computed with the new files.")


def request_priority(about: str, state: State, stage: int = 0) -> float:
    """Return the priority delay in seconds of a stage of an answer."""
    return (NO_DELAY_S, BELOW_DELAY_S, VERIFICATION_DELAY_S)[stage] if stage in STAGES else NO_DELAY_S


class Endpoints:
    """Endpoints that bypass Gradio's events and widget updates, which take longer than the computations.

    Args:
        runs: access to models and runs.
        lessons: contents of lessons; None for none.
        shared: store of answers shared with other processes; None for none.
    """

    def __init__(self, runs: RunService, lessons: LessonContents | None = None, shared: OptionalStore | None = None):
        self.lessons = lessons
        self.runs, self.page_contents, self.opening = runs, PageContents(runs), OpeningEndpoints(runs.library)
        self.jobs = JobEndpoints(runs, [self.opening.queue])
        self.lesson_endpoints = LessonEndpoints(runs, lessons)
        self.answer_cache = AnswerCache(runs, shared=shared)
        self.prefetcher = Prefetcher(runs.library)

    @property
    def functions(self) -> list[Callable]:
        """Server functions for the browser."""
        own_functions = self.inspect, self.define, self.direction_of_lists
        other_functions = (
            *own_functions,
            *self.lesson_endpoints.functions,
            *self.jobs.functions,
            *self.opening.functions,
        )
        return [
            server_function(self.cached_answer, request_priority, name="answer"),
            people_before,
            *map(server_function, other_functions),
        ]

    def cached_answer(self, about: About, state: State, part: Stage = 0) -> bytes:
        """Return `answer` as JSON, from the cache where it is valid."""

        def make() -> bytes:
            return as_json(self.answer(about, state, part))

        if about not in ABOUT or part not in STAGES or self.files_changed(page_state := PageState.parse(state), state):
            return make()
        return self.answer_cache.answer(about, part, page_state, GenerationSettings.parse(state), make)

    def answer(self, about: str, state: Mapping[str, Any], stage: int = 0) -> dict[str, Any]:
        """Return the contents that follow from a change of the page's state.

        Args:
            about: "show" for everything, "view" for the whole open view and the prediction, "pick" for those parts
                of them that depend on the selection, "token" for the tokens, the text and the prediction, "tune" for
                the prediction alone.
            state: the page's state, unvalidated.
            stage: 0 for what is visible at once, 1 for the other figures and the tree of continuations, 2 for the
                verifications of the figures.

        Returns:
            `contents`, element id -> content, None to hide the element; `more`, whether there is another stage;
            `version`, of the model's files, which the browser sends with its next state. If the files have changed
            since, `contents` is empty and `ask` is the scope to request instead.

        Raises:
            UserError, CheckpointError: the request is invalid.
        """
        if about not in ABOUT or stage not in STAGES:
            message = _("an answer is about {abouts}, in parts 0 to 2, got {about!r:.40}, {part!r:.40}")
            raise UserError(message.format(abouts=", ".join(ABOUT), about=about, part=stage))
        page_state, settings = PageState.parse(state), GenerationSettings.parse(state)
        version, is_changed = self.runs.version(page_state.run.checkpoint), self.files_changed(page_state, state)
        if is_changed and (about != "show" or stage):
            return {"contents": {}, "more": False, "ask": "show"}
        contents = {} if stage else {PROBLEM: translate(FILES_CHANGED) if is_changed else ""}
        if stage == 0:
            contents |= self.lessons.contents(page_state, state, about) if self.lessons else {}
            trace = self.runs.logits(page_state.run) if about == "token" else self.runs.trace(page_state.run)
            contents |= self.page_contents.prediction(page_state, settings, trace)
            contents |= self.page_contents.tokens(page_state, trace) if about in ("token", "show") else {}
            contents |= token_select_fields(page_state.selection, trace) if about == "token" else {}
        has_continuation = stage == 1 and about != "token"
        if about in ("tune", "token"):
            contents |= (
                continuation_contents(make_open_view(self.runs, page_state), settings) if has_continuation else {}
            )
            more = (
                stage == 0 and about == "tune" and VIEW_BY_NAME[page_state.selection.view].continuation_text is not None
            )
            return {"contents": contents, "more": more, "version": version}
        if about == "show" and stage == 0:
            contents |= self.page_contents.advice(page_state.run) | self.page_contents.comparison_bar(page_state)
            checkpoint, checkpoints = page_state.run.checkpoint, self.runs.library.checkpoints
            contents |= {
                PICKER: ModelPicker.pack(checkpoints),
                SERIES: TrainingStepSlider.pack(checkpoint, checkpoints),
            }
            contents[OPEN_MODEL] = self.opening.model_status(checkpoint)
        open_view = make_open_view(self.runs, page_state)
        contents |= view_contents(open_view, about in ("view", "show"), stage)
        contents |= continuation_contents(open_view, settings) if has_continuation else {}
        if stage == 2 and about == "show":
            self.prefetch(page_state)
        if stage == 1:
            contents |= self.page_contents.explanations(page_state)
            contents |= self.page_contents.tree(page_state) if about == "show" else {}
        return {"contents": contents, "more": stage < 2, "version": version}

    def files_changed(self, page_state: PageState, state: Mapping[str, Any]) -> bool:
        """Return whether the model's files differ from those that the browser's figures were computed with."""
        version, checkpoint = state.get("version"), page_state.run.checkpoint
        same_name = isinstance(version, str) and version.partition("@")[0] == checkpoint
        return same_name and version != self.runs.version(checkpoint)

    def prefetch(self, page_state: PageState):
        """Prefetch the neighbouring checkpoints, which a slider of training steps requests next."""
        for run in (page_state.run, *([self.runs.other(page_state)] if page_state.visible_other else [])):
            self.prefetcher.prefetch_steps(run.checkpoint)
            self.prefetcher.prefetch_next_token(run.checkpoint, self.runs.visible_token_ids(run), run.edits)

    def inspect(self, state: State, picture: str, point: PointFields) -> str:
        """Return the derivation of the number at a clicked point of a figure as lines of text; "" if there is none.

        Args:
            picture: element id of the figure.
            point: coordinates, see `Point`; unvalidated.

        Raises:
            UserError, CheckpointError: there is no such point or figure.
        """
        if not isinstance(picture, str):
            raise UserError(_("a picture has a name, got {got!r:.80}", got=picture))
        open_view = make_open_view(self.runs, PageState.parse(state))
        return inspect(open_view, picture.removeprefix(element_id(open_view.view.name, "")), Point.parse(point))

    def define(self, state: State, term: str) -> str:
        """Return a term's definition, and its value in this run.

        Args:
            term: name of an entry of the glossary; unvalidated.

        Raises:
            UserError, CheckpointError: the glossary has no such term, or there is no such run.
        """
        entry = ENTRY_BY_NAME.get(term) if isinstance(term, str) else None
        if entry is None:
            raise UserError(_("the glossary has no {term!r:.80}", term=term))
        page_state = PageState.parse(state)
        _lm, trace = self.runs.model_and_trace(page_state.run)  # hold the model, as it runs again
        selection, comparison = page_state.selection.clamp_to_trace(trace), self.runs.comparison(page_state)
        return entry.define(GlossaryContext(trace, selection, GenerationSettings.parse(state), comparison))

    def direction_of_lists(self, state: State, towards: str, away: str) -> str:
        """Return the spec of the direction between two prompt lists' mean activations after the selected layer.

        Args:
            towards, away: the lists, one prompt a line; unvalidated.

        Raises:
            UserError, CheckpointError: there is no such direction or run.
        """
        if not isinstance(towards, str) or not isinstance(away, str):
            raise UserError(_("a list of prompts is a text, a prompt a line"))
        page_state = PageState.parse(state)
        _lm, trace = self.runs.model_and_trace(page_state.run)
        layer = page_state.selection.clamp_to_trace(trace).layer
        return str(direction_from_texts(trace, layer, *map(split_prompts, (towards, away))))
