"""Endpoints for the browser: contents of the widgets by element id; search; long computations and models of the Hub."""

import base64
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from explorer.analysis.next_token import find_tokens, token_rank
from explorer.analysis.steering import direction_from_texts
from explorer.architecture.summary import summarise_files
from explorer.errors import UserError
from explorer.explain.derivation import ClickedPoint
from explorer.lessons.glossary import ENTRY_BY_NAME, GlossaryExampleContext
from explorer.state.generation_settings import GenerationSettings
from explorer.state.page_state import PageState
from explorer.state.selection import MAX_SEARCH_CHARS, Selection
from explorer.tracing.jobs import JobProgress, JobScheduler
from explorer.tracing.model_catalog import format_bytes
from explorer.tracing.model_library import ModelLibrary, ModelOpener, TrainingStepPrefetcher
from explorer.tracing.run_service import RunService
from explorer.translations import N_, _, current_locale, translate
from explorer.views import VIEW_BY_NAME
from explorer.views.selection import make_selection_dropdowns
from explorer.views.story import ATTENTION_STEP, largest_look_back
from explorer.views.view import Panel, View
from explorer.web.browser_api.answer_cache import AnswerCache
from explorer.web.browser_api.lesson_endpoints import LessonContents, LessonEndpoints
from explorer.web.browser_api.open_view import make_open_view, point_derivation_text
from explorer.web.browser_api.page_contents import (
    PageContents,
    continuation_contents,
    token_selection_dropdowns,
    view_contents,
)
from explorer.web.browser_api.python_script import python_script
from explorer.web.key_value_stores import FaultTolerantStore
from explorer.web.layout import view_markup
from explorer.web.request_validation import ClickedPointFields, Index, ShortName, State, to_json_bytes
from explorer.web.shared_constants import OPEN_MODEL, PICKER, PROBLEM, SERIES, STAGES, VIEW, element_id
from explorer.web.user_messages import user_message
from explorer.web.widgets.header import ModelPicker, OpenModelForm
from explorer.web.widgets.view_tools import TrainingStepSlider, split_prompts

MAX_MATCHES = 8
# What people call the subject of a view, besides its title and those of its figures.
ALIASES = {
    "overview": (N_("whole model"), N_("architecture"), N_("map of the model")),
    "tokens": (N_("tokenizer"), N_("BPE"), N_("embedding"), N_("unembedding"), N_("vocabulary"), "PCA"),
    "attention": (
        N_("attention heads"),
        N_("attention pattern"),
        N_("self-attention"),
        N_("pre-softmax"),
        "QK",
        "softmax",
        "MHA",
        "GQA",
    ),
    "positions": ("RoPE", N_("rotary position embedding"), N_("position embedding"), "ALiBi"),
    "kv_cache": (N_("key-value cache"), N_("keys and values")),
    "feed_forward": ("MLP", "FFN", N_("neurons"), N_("activation function"), "SwiGLU", "GELU", N_("sparsity")),
    "residual": (
        N_("skip connection"),
        N_("norms"),
        "RMSNorm",
        "LayerNorm",
        N_("outlier dimensions"),
        "resid_pre",
        "resid_mid",
        "resid_post",
    ),
    "prediction": (N_("logit lens"), N_("direct logit attribution"), "DLA", N_("attention rollout"), N_("logits")),
    "activations": (N_("hidden states"), N_("captured values"), N_("histogram")),
    "experiments": (N_("ablation"), N_("mean ablation"), N_("interventions"), N_("what if")),
    "directions": (N_("steering vector"), N_("activation steering"), N_("concept direction"), N_("OV circuit"), "OV"),
    "compare": (N_("two prompts"), N_("two models"), N_("difference")),
    "patching": (N_("activation patching"), N_("path patching"), N_("attribution patching"), N_("causal tracing")),
    "training": (N_("loss curve"), N_("checkpoints"), N_("training steps")),
    "own_module": (N_("my own module"), N_("diagnosis"), N_("bugs")),
}

# Other names of a figure, by its element id, that its title does not begin with.
FIGURE_ALIASES = {
    "attention-stages": ("QK",),
    "prediction-parts": (N_("direct logit attribution"), "DLA"),
    "prediction-rollout": (N_("attention rollout"), N_("rollout")),
}


class JobEndpoints:
    """Endpoints of job queues. A visitor is a random name that the page chooses when it is opened.

    Args:
        runs: access to models and runs.
        other_queues: queues whose jobs are started elsewhere; their progress is reported here, too.
    """

    def __init__(self, runs: RunService, other_queues: Sequence[JobScheduler] = ()):
        self.runs, self.queue, self.other_queues = runs, JobScheduler(), other_queues

    def begin_job(self, state: State, figure: ShortName, visitor: ShortName) -> dict[str, Any]:
        """Start the job that a figure needs, and return its progress (see `progress_payload`).

        Raises:
            UserError, CheckpointError: there is no such figure, or the queue is full.
        """
        open_view = make_open_view(self.runs, PageState.parse(state))
        job = open_view.pending_job(figure)
        return progress_payload(self.queue.begin(visitor, job) if job else JobProgress("done"))

    def job_progress(self, visitor: ShortName, name: ShortName) -> dict[str, Any]:
        """Return the progress of a visitor's job; visitors who stop polling are dropped."""
        progresses = (queue.progress(visitor, name) for queue in (self.queue, *self.other_queues))
        return progress_payload(
            next((progress for progress in progresses if progress.state != "gone"), JobProgress("gone"))
        )

    def leave_job(self, visitor: ShortName, name: ShortName) -> dict[str, Any]:
        """Remove a visitor from those waiting for a job."""
        for queue in (self.queue, *self.other_queues):
            queue.leave(visitor, name)
        return progress_payload(JobProgress("gone"))


def progress_payload(progress: JobProgress) -> dict[str, Any]:
    """Return a job's progress for the browser.

    Returns:
        `state`; `done` and `of`, units done and in all; `seconds` that remain; `error`, a sentence or "".
    """
    return {
        "state": progress.state,
        "done": progress.done,
        "of": progress.total,
        "seconds": progress.seconds,
        "error": user_message(progress.error) if progress.error else "",
    }


MAX_CONCURRENT_JOBS = 2  # models that are fetched or compared


class OpeningEndpoints:
    """Endpoints that open and check models of the Hub and of paths; `JobEndpoints` reports progress and cancels.

    Args:
        library: to which opened models are added.
    """

    def __init__(self, library: ModelLibrary):
        self.library, self.opening, self.queue = library, ModelOpener(library), JobScheduler(MAX_CONCURRENT_JOBS)

    def model_needs(self, name: str) -> dict[str, str]:
        """Return the requirements of opening a model.

        Returns:
            `words`, what is in its files, and the memory that it takes; `job`, the name of the job that opens it;
            `checkpoint`, the model's name then.

        Args:
            name: on the Hub, or a path, if users may open any.

        Raises:
            UserError, CheckpointError: see `ModelOpener.requirements`.
        """
        needs = self.opening.requirements(name)
        fetch = _("It is on this machine.")
        if needs.download:
            fetch = _("{size} to be fetched.", size=format_bytes(needs.download))
        elif needs.files and (contents := summarise_files(needs.files)):
            fetch = _("On this machine: {contents}.", contents=contents)
        takes = _("Its weights take up to {size} of memory.", size=format_bytes(needs.memory)) if needs.memory else ""
        left = "" if needs.left is None else _("{size} are free.", size=format_bytes(needs.left))
        words = " ".join(filter(None, (fetch, takes, left)))
        return {"words": words, "job": self.opening.open_job(name).name, "checkpoint": needs.checkpoint}

    def begin_opening(self, name: str, visitor: ShortName) -> dict[str, Any]:
        """Start downloading and loading a model, and return the progress; raises the errors of `model_needs`."""
        return progress_payload(self.queue.begin(visitor, self.opening.open_job(name)))

    def begin_check(self, checkpoint: str, visitor: ShortName) -> dict[str, Any]:
        """Start comparing a model with another implementation, and return the progress.

        Raises:
            UserError: there is no such checkpoint.
        """
        if checkpoint not in self.library.checkpoints:
            raise UserError(_("the checkpoint must be a name, got {got!r}", got=checkpoint))
        job = self.opening.self_check_job(checkpoint)
        return progress_payload(self.queue.begin(visitor, job) if job else JobProgress("done"))

    def model_status(self, checkpoint: str) -> dict[str, Any]:
        """Return the Hub widget's contents for the visible model."""
        catalog, job = self.library.catalog, self.opening.self_check_job(checkpoint)
        is_external = catalog.is_external(checkpoint) and checkpoint != catalog.own_module  # a view compares that
        return OpenModelForm.pack(catalog.allowed_names, self.opening.agreement(checkpoint), job, is_external)


FILES_CHANGED = N_("The model’s files have changed. Everything shown is computed with the new files.")


@cache
def localized_markup(view: str, locale: str) -> str:
    """Return the markup of a view in the current language, which is `locale`."""
    return view_markup(VIEW_BY_NAME[view])


class BrowserEndpoints:
    """Endpoints that bypass Gradio's events and widget updates, which take longer than the computations.

    Args:
        runs: access to models and runs.
        lessons: contents of lessons; None for none.
        shared: store of answers shared with other processes; None for none.
    """

    def __init__(
        self, runs: RunService, lessons: LessonContents | None = None, shared: FaultTolerantStore | None = None
    ):
        self.lessons = lessons
        self.runs, self.page_contents, self.opening = runs, PageContents(runs), OpeningEndpoints(runs.library)
        self.jobs = JobEndpoints(runs, [self.opening.queue])
        self.lesson_endpoints = LessonEndpoints(runs, lessons)
        self.answer_cache = AnswerCache(runs, shared=shared)
        self.prefetcher = TrainingStepPrefetcher(runs.library)

    @property
    def functions(self) -> list[Callable]:
        """Server functions for the browser."""
        lessons, jobs, opening = self.lesson_endpoints, self.jobs, self.opening
        return [
            *(self.inspect, self.next_token_scores, self.define, self.direction_of_lists, self.python_script),
            *(lessons.listed_lessons, lessons.lesson_sheet, lessons.walk),
            *(self.search_index, self.find_tokens, self.rank_of_token),
            *(jobs.begin_job, jobs.job_progress, jobs.leave_job),
            *(opening.model_needs, opening.begin_opening, opening.begin_check),
        ]

    def num_stages(self, about: str, state: Mapping[str, Any]) -> int:
        """Return how many stages an answer has."""
        if about == "tune":
            selection = Selection.parse(state)
            says_chance = selection.is_story and selection.why == "open"  # with the settings
            return 2 if says_chance or VIEW_BY_NAME[selection.view].continuation_text else 1
        return 1 if about == "token" else len(STAGES)

    def answered_scope(self, about: str, state: Mapping[str, Any]) -> str:
        """Return the scope of the answer to a question: everything, if the model's files have changed since."""
        return "show" if self.files_changed(PageState.parse(state), state) else about

    def cached_answer(self, about: str, state: Mapping[str, Any], stage: int = 0) -> bytes:
        """Return `answer` as JSON, from the cache where it is valid."""

        def make() -> bytes:
            return to_json_bytes(self.answer(about, state, stage))

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
            contents |= token_selection_dropdowns(page_state.selection, trace) if about == "token" else {}
        has_continuation = stage == 1 and about != "token"
        if about in ("tune", "token"):
            if has_continuation:
                contents |= continuation_contents(make_open_view(self.runs, page_state), settings)
                is_story = page_state.selection.is_story  # whose explanation follows the settings
                contents |= self.page_contents.explanations(page_state, settings) if is_story else {}
            return {"contents": contents, "version": version}
        if about == "show" and stage == 0:
            contents |= self.page_contents.model_facts(page_state.run.checkpoint)
            contents |= self.page_contents.advice(page_state) | self.page_contents.comparison_bar(page_state)
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
            contents |= self.page_contents.explanations(page_state, settings)
            contents |= self.page_contents.tree(page_state) if about == "show" else {}
        return {"contents": contents, "version": version}

    def files_changed(self, page_state: PageState, state: Mapping[str, Any]) -> bool:
        """Return whether the model's files differ from those that the browser's figures were computed with."""
        version, checkpoint = state.get("version"), page_state.run.checkpoint
        same_name = isinstance(version, str) and version.partition("@")[0] == checkpoint
        return same_name and version != self.runs.version(checkpoint)

    def prefetch(self, page_state: PageState):
        """Prefetch the neighbouring checkpoints, which a slider of training steps requests next."""
        for run in (page_state.run, *([self.runs.second_run(page_state)] if page_state.visible_second_run else [])):
            self.prefetcher.prefetch_steps(run.checkpoint)
            self.prefetcher.prefetch_next_token(run.checkpoint, self.runs.visible_token_ids(run), run.edits)

    def inspect(self, state: State, figure: str, point: ClickedPointFields) -> str:
        """Return the derivation of the number at a clicked point of a figure as lines of text; "" if there is none.

        Args:
            figure: element id of the figure.
            point: coordinates, see `ClickedPoint`.

        Raises:
            UserError, CheckpointError: there is no such point or figure.
        """
        open_view = make_open_view(self.runs, PageState.parse(state))
        return point_derivation_text(open_view, figure, ClickedPoint(**point))

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
            term: name of an entry of the glossary.

        Raises:
            UserError, CheckpointError: the glossary has no such term, or there is no such run.
        """
        if (entry := ENTRY_BY_NAME.get(term)) is None:
            raise UserError(_("the glossary has no {term!r:.80}", term=term))
        page_state = PageState.parse(state)
        _lm, trace = self.runs.model_and_trace(page_state.run)  # hold the model, as it runs again
        selection, comparison = page_state.selection.clamp_to_trace(trace), self.runs.comparison(page_state)
        if selection.view == ATTENTION_STEP.name and not ATTENTION_STEP.missing_taps(trace):
            layer, head, _key = largest_look_back(trace, selection.query)  # the head that the step shows
            selection = selection.replace(layer=layer, head=head)
        settings, start = GenerationSettings.parse(state), page_state.run.first_visible(len(trace))
        return entry.define(GlossaryExampleContext(trace, selection, settings, comparison, start))

    def direction_of_lists(self, state: State, towards: str, away: str) -> str:
        """Return the spec of the direction between two prompt lists' mean activations after the selected layer.

        Args:
            towards, away: the lists, one prompt a line.

        Raises:
            UserError, CheckpointError: there is no such direction or run.
        """
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

    def search_index(self, state: State) -> dict[str, Any]:
        """Return what can be found in the state's run.

        Returns:
            `layers`, `heads` and `neurons`: numbers of layers, of heads a layer, and of neurons a layer;
            `checkpoints`: names; `lessons`: as in `listed_lessons`; `views`: view -> its `aliases`, its `figures` as
            (element id, title, aliases), and its figures' lists, `choices`, as (element id, field, title, (value, text)
            pairs).

        Raises:
            UserError, CheckpointError: there is no such run.
        """
        page_state = PageState.parse(state)
        trace = self.runs.trace(page_state.run)
        config, selection = trace.config, page_state.selection.clamp_to_trace(trace)

        def panels(view: View) -> list[Panel]:
            return [
                panel
                for panel in view.panels
                if view.is_applicable(trace) and panel.is_applicable(trace) and not panel.compared_run
            ]

        return {
            "layers": config.num_layers,
            "heads": config.num_heads,
            "neurons": config.d_ff,
            "checkpoints": list(self.runs.library.checkpoints),
            "lessons": self.lessons.list_lessons() if self.lessons else [],
            "views": {
                view.name: {
                    "aliases": [translate(alias) for alias in ALIASES.get(view.name, ())],
                    "figures": [
                        (name, translate(panel.title), [translate(alias) for alias in FIGURE_ALIASES.get(name, ())])
                        for panel in panels(view)
                        for name in [element_id(view.name, panel.name)]
                    ],
                    "choices": [
                        (element_id(view.name, panel.name), panel.chooser, dropdown.title, dropdown.options)
                        for panel in panels(view)
                        if panel.chooser
                        for dropdown in make_selection_dropdowns((panel.chooser,), trace, selection)
                    ],
                }
                for view in VIEW_BY_NAME.values()
            },
        }

    def find_tokens(self, state: State, text: str) -> list[tuple[int, str]]:
        """Return the (id, text) of tokens that match a search text best.

        Args:
            text: part of a token's text, with · for a space and ↵ for a line break, or a token's id. Whole tokens with
                the same spaces and capitals come first, tokens that begin with the text before others.

        Raises:
            UserError, CheckpointError: there is no such model.
        """
        _lm, tokenizer = self.runs.model(PageState.parse(state).run.checkpoint)
        vocabulary = tokenizer.vocabulary
        text = text[:MAX_SEARCH_CHARS].replace("·", " ").replace("↵", "\n")

        def rank(i: int) -> tuple[bool, bool, int]:
            begins = vocabulary[i].casefold().lstrip().startswith(text.casefold().strip())
            return vocabulary[i] != text, not begins, len(vocabulary[i])

        ranking = sorted(range(len(vocabulary)), key=rank)
        matches = find_tokens(vocabulary, text, ranking, MAX_MATCHES)
        return [(i, vocabulary[i]) for i in matches]

    def rank_of_token(self, state: State, token: Index) -> int:
        """Return a token's rank among the next tokens after the selected one, from 1.

        Raises:
            UserError, CheckpointError: there is no such token or run.
        """
        page_state = PageState.parse(state)
        trace = self.runs.trace(page_state.run)
        if token >= len(trace.vocabulary):
            raise UserError(_("There is no token {id}.", id=token))
        return int(token_rank(trace, page_state.selection.clamp_to_trace(trace).query, token))
