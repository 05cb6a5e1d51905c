"""Endpoints for the browser: contents of the open view's and the prediction's widgets by element id."""

import base64
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from explorer.analysis.steering import direction_from_texts
from explorer.errors import UserError
from explorer.explain.clicked_point import ClickedPoint
from explorer.lessons.glossary import ENTRY_BY_NAME, GlossaryContext
from explorer.state.generation_settings import GenerationSettings
from explorer.state.page_state import PageState
from explorer.state.selection import Selection
from explorer.tracing.model_loading import Prefetcher
from explorer.tracing.run_service import RunService
from explorer.translations import N_, _, current_locale, translate
from explorer.views import VIEW_BY_NAME
from explorer.web.answers.answer_cache import AnswerCache
from explorer.web.answers.job_endpoints import HubEndpoints, JobEndpoints
from explorer.web.answers.lesson_endpoints import LessonContents, LessonEndpoints
from explorer.web.answers.open_view import make_open_view, point_derivation_text
from explorer.web.answers.page_contents import PageContents
from explorer.web.answers.python_script import python_script
from explorer.web.answers.search_endpoints import SearchEndpoints
from explorer.web.answers.view_contents import continuation_contents, token_select_fields, view_contents
from explorer.web.middleware.request_types import PointFields, State, as_json
from explorer.web.protocol import OPEN_MODEL, PICKER, PROBLEM, SERIES, STAGES, VIEW, element_id
from explorer.web.stores import OptionalStore
from explorer.web.view_markup import view_markup
from explorer.web.widgets.header import ModelPicker
from explorer.web.widgets.view_tools import TrainingStepSlider, split_prompts

FILES_CHANGED = N_("The model’s files have changed. Everything shown is computed with the new files.")


@cache
def localized_markup(view: str, locale: str) -> str:
    """Return the markup of a view in the current language, which is `locale`."""
    return view_markup(VIEW_BY_NAME[view])


class Endpoints:
    """Endpoints that bypass Gradio's events and widget updates, which take longer than the computations.

    Args:
        runs: access to models and runs.
        lessons: contents of lessons; None for none.
        shared: store of answers shared with other processes; None for none.
    """

    def __init__(self, runs: RunService, lessons: LessonContents | None = None, shared: OptionalStore | None = None):
        self.lessons = lessons
        self.runs, self.page_contents, self.opening = runs, PageContents(runs), HubEndpoints(runs.library)
        self.jobs = JobEndpoints(runs, [self.opening.queue])
        self.lesson_endpoints, self.search = LessonEndpoints(runs, lessons), SearchEndpoints(runs, lessons)
        self.answer_cache = AnswerCache(runs, shared=shared)
        self.prefetcher = Prefetcher(runs.library)

    @property
    def functions(self) -> list[Callable]:
        """Server functions for the browser."""
        own_functions = [self.inspect, self.next_token_scores, self.define, self.direction_of_lists, self.python_script]
        others = (self.lesson_endpoints, self.search, self.jobs, self.opening)
        return own_functions + [function for part in others for function in part.functions]

    def num_stages(self, about: str, state: Mapping[str, Any]) -> int:
        """Return how many stages an answer has."""
        if about == "tune":
            return 2 if VIEW_BY_NAME[Selection.parse(state).view].continuation_text else 1
        return 1 if about == "token" else len(STAGES)

    def answered_scope(self, about: str, state: Mapping[str, Any]) -> str:
        """Return the scope of the answer to a question: everything, if the model's files have changed since."""
        return "show" if self.files_changed(PageState.parse(state), state) else about

    def cached_answer(self, about: str, state: Mapping[str, Any], stage: int = 0) -> bytes:
        """Return `answer` as JSON, from the cache where it is valid."""

        def make() -> bytes:
            return as_json(self.answer(about, state, stage))

        if self.files_changed(page_state := PageState.parse(state), state):
            return make()
        return self.answer_cache.answer(about, stage, page_state, GenerationSettings.parse(state), make)

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
            `contents`, element id -> content, None to hide the element; `version`, of the model's files, which the
            browser sends with its next state.

        Raises:
            UserError, CheckpointError: the request is invalid.
        """
        page_state, settings = PageState.parse(state), GenerationSettings.parse(state)
        version, is_changed = self.runs.version(page_state.run.checkpoint), self.files_changed(page_state, state)
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
            return {"contents": contents, "version": version}
        if about == "show" and stage == 0:
            contents |= self.page_contents.model_facts(page_state.run.checkpoint)
            contents |= self.page_contents.advice(page_state.run) | self.page_contents.comparison_bar(page_state)
            checkpoint, checkpoints = page_state.run.checkpoint, self.runs.library.checkpoints
            contents |= {
                PICKER: ModelPicker.pack(checkpoints),
                SERIES: TrainingStepSlider.pack(checkpoint, checkpoints),
            }
            contents[OPEN_MODEL] = self.opening.model_status(checkpoint)
        open_view = make_open_view(self.runs, page_state)
        if stage == 0 and about in ("view", "show"):
            view = open_view.view
            contents = {VIEW: {"name": view.name, "markup": localized_markup(view.name, current_locale())}} | contents
        contents |= view_contents(open_view, about in ("view", "show"), stage)
        contents |= continuation_contents(open_view, settings) if has_continuation else {}
        if stage == 2 and about == "show":
            self.prefetch(page_state)
        if stage == 1:
            contents |= self.page_contents.explanations(page_state)
            contents |= self.page_contents.tree(page_state) if about == "show" else {}
        return {"contents": contents, "version": version}

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
            point: coordinates, see `ClickedPoint`; unvalidated.

        Raises:
            UserError, CheckpointError: there is no such point or figure.
        """
        if not isinstance(picture, str):
            raise UserError(_("a figure has a name, got {got!r:.80}", got=picture))
        open_view = make_open_view(self.runs, PageState.parse(state))
        return point_derivation_text(
            open_view, picture.removeprefix(element_id(open_view.view.name, "")), ClickedPoint.parse(point)
        )

    def next_token_scores(self, state: State) -> dict[str, Any]:
        """Return the scores of the token after the selected one, from which sliders work out probabilities.

        Returns:
            `scores`: base64 of the logits (V,) after the repetition penalty, the largest first; little-endian floats,
                of 4 bytes, or of 8 where there is a penalty. `size`: V.

        Raises:
            UserError, CheckpointError: there is no such run.
        """
        page_state, settings = PageState.parse(state), GenerationSettings.parse(state)
        scores = self.page_contents.next_token_scores(page_state, settings, self.runs.trace(page_state.run))
        return {"scores": base64.b64encode(scores.astype(scores.dtype.newbyteorder("<"))).decode(), "size": len(scores)}

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

    def python_script(self, state: State, figure: str) -> str:
        """Return a Python script that shows a figure of the open view.

        Args:
            figure: its element id; for any other id it is the view's first.

        Raises:
            UserError, CheckpointError: there is no such run.
        """
        return python_script(self.runs, PageState.parse(state), figure)
