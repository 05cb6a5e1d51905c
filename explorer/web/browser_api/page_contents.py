"""Contents of the page by element id: of the open view, and around it tokens, text, next token, continuations."""

from collections.abc import Callable, Hashable, Iterator
from dataclasses import replace
from functools import lru_cache
from os import PathLike
from typing import Any

import numpy as np

from explorer.analysis.next_token import (
    SHADES,
    NextTokenDistribution,
    align_to_vocabulary,
    next_token_distribution,
    predict_next_token,
    ranking_without_interventions,
    shade_by_surprisal_difference,
    shade_tokens,
)
from explorer.analysis.prediction_reasons import find_redundancy, prediction_reasons
from explorer.architecture.summary import model_summary, summarise_files
from explorer.explain.notation import quote_token, quote_word
from explorer.interventions import Intervention
from explorer.lessons import prediction_explanation
from explorer.lessons.example_prompts import prompt_advice
from explorer.lessons.prediction_explanation import (
    ExplanationSentence,
    explain_prediction,
    explain_prediction_in_story,
    explain_written_token,
    is_unlikely_token,
)
from explorer.state.generation_settings import GenerationSettings
from explorer.state.page_state import PageState, Path, RunRequest, build_tree, chat_messages
from explorer.state.selection import MAX_SEARCH_CHARS, Selection
from explorer.tracing.jobs import BudgetExceededError, check_budget
from explorer.tracing.lru_cache import LRUCache
from explorer.tracing.model_library import ModelLibrary
from explorer.tracing.model_registry import get_identity
from explorer.tracing.run_service import RunService
from explorer.tracing.token_ids import has_bos, strip_bos, token_roles
from explorer.tracing.trace import Trace
from explorer.translations import _, current_locale, ngettext, translate
from explorer.views import VIEW_BY_NAME
from explorer.views.overview.map_parts import ModelMap
from explorer.views.overview.whole_model import WholeModelFigure
from explorer.views.selection import TOKEN_FIELDS, make_selection_dropdowns
from explorer.views.two_run_figures import FigurePlaceholder
from explorer.views.view import HeadHeatmaps, HeadTable, Panel
from explorer.web.browser_api.open_view import OpenView
from explorer.web.shared_constants import (
    ADVICE,
    BRANCHES,
    BRIEF,
    CHANGES,
    CHAT,
    CHOOSERS,
    CODE,
    EFFECT,
    FACTS,
    FORMULA,
    GUESS,
    HEADING,
    IN_FULL,
    LISTS,
    MARK,
    NEXT_TOKEN,
    NEXT_TOKEN_WORDS,
    OF_B,
    PLAYBACK,
    PROBLEM,
    QUESTION,
    RUNS,
    STAND_INS,
    STORY,
    STRIP,
    STRIP_B,
    VOCABULARY,
    WHAT_IFS,
    WHY,
    WORDS,
    WRITTEN,
    element_id,
)
from explorer.web.widgets.figure import (
    HeadGridWidget,
    HeadTableWidget,
    ModelMapWidget,
    PlotlyFigureWidget,
    WholeModelWidget,
)
from explorer.web.widgets.header import NumbersViewLink
from explorer.web.widgets.next_token import (
    ExplanationButton,
    NextTokenSummary,
    NextTokenTable,
    SecondRunPrediction,
    pack_change_effect,
)
from explorer.web.widgets.tokens import (
    ChatForm,
    ContinuationTree,
    GenerationPlayer,
    NextTokenGuessForm,
    NextTokenPreview,
    TokenStrip,
    guessed_token,
)
from explorer.web.widgets.view_tools import (
    ActiveInterventionList,
    DirectionPromptBoxes,
    InterventionControls,
    PromptAdviceLine,
    RunComparisonControls,
    SelectionDropdowns,
)
from model.checkpoint import find_checkpoint, is_gguf
from model.config import window_start
from model.describe import NOT_NAMED, Description, describe_model
from model.gguf.gguf_file import read_licence
from model.pretrained.chat_template import has_chat_template
from model.tokenizer import Tokenizer

MAX_CACHE_BYTES = 8 << 20  # of runs and their surprisals: a few kB each, where their traces are tens of MB
BYTES_PER_TOKEN = 40  # of a run: a number and a reference to it


class ContinuationSurprisals:
    """Surprisals of the tokens of a page's continuations, cached by run; raises the errors of `ModelLibrary.trace`."""

    def __init__(self, library: ModelLibrary):
        self.library = library
        self._surprisals = LRUCache(
            MAX_CACHE_BYTES, size=lambda entry: len(entry[0].token_ids) * BYTES_PER_TOKEN + entry[1].nbytes
        )

    def surprisals(self, page_state: PageState) -> dict[Path, np.ndarray]:
        """Return the surprisal in bits of each token of every path of the tree, including the run's own.

        Branches with tokens outside the model's vocabulary are left out.
        """
        lm, _tokenizer = self.library.model(page_state.run.checkpoint)
        paths = {branch.path for branch in page_state.branches} | ({page_state.run.generated} - {()})
        valid_paths = [path for path in paths if max(path) < lm.config.vocab_size]
        return {path: self.surprisals_of_run(replace(page_state.run, generated=path)) for path in valid_paths}

    def surprisals_of_run(self, run: RunRequest) -> np.ndarray:
        """Return the surprisals (G,) of the generated tokens in bits: -log₂ of their probability at temperature 1."""
        lm, _tokenizer = self.library.model(run.checkpoint)
        _run, bits = self._surprisals.get((get_identity(lm), run), lambda: (run, self.compute_surprisals(run)))
        return bits

    def compute_surprisals(self, run: RunRequest) -> np.ndarray:
        """Compute each token's surprisal given the window of tokens that the generator reads: one trace per window."""
        lm, _tokenizer = self.library.model(run.checkpoint)
        ids, context = np.array(run.token_ids), lm.config.context_length
        indices = np.arange(len(run.prompt), len(ids))
        starts = np.array([window_start(index, context) for index in indices])
        bits = np.empty(len(indices))
        for start in np.unique(starts):
            in_window = starts == start
            last = int(indices[in_window][-1])
            end = last + (last - start < context)  # if it fits, include the last token: then this is the visible trace
            logits = self.library.trace(run.checkpoint, tuple(ids[start:end].tolist()), run.edits).logits
            before = indices[in_window] - 1 - start
            bits[in_window] = (
                logits.log_sum_exp[before] - logits.token_logits(ids[indices[in_window]], before)
            ) / np.log(2)
        return bits


@lru_cache(maxsize=128)
def files_facts(location: str | PathLike[str], identity: Hashable, locale: str) -> str:
    """Return what a model's files say of it; of a GGUF file, whose notes name its types, the licence alone.

    A vocabulary in its header would take seconds.

    Args:
        location: of the model, see `ModelCatalog.locate`.
        identity: of the model, which is another when its files change.
        locale: the current one.
    """
    path = find_checkpoint(location)
    if not is_gguf(path):
        return summarise_files(describe_model(location))
    return summarise_files(Description((("licence", read_licence(path) or NOT_NAMED),)))


class PageContents:
    """Contents of the widgets around the tabs; errors are those of `RunService`."""

    def __init__(self, runs: RunService):
        self.runs, self.continuations = runs, ContinuationSurprisals(runs.library)

    def model_facts(self, checkpoint: str) -> dict[str, Any]:
        """Return what is said of the model: its size, its files, and a note on a vocabulary that it lacks."""
        (lm, tokenizer), catalog = self.runs.model(checkpoint), self.runs.library.catalog
        location = catalog.locate(checkpoint)
        facts = [model_summary(lm), files_facts(location, get_identity(lm), current_locale())]
        if is_gguf(find_checkpoint(location)) and has_chat_template(tokenizer):
            facts.append(_("with a chat template"))
        note = catalog.own_vocabulary if checkpoint == catalog.own_module else None
        vocabulary = translate(note.template, **note.values) + "." if note else ""
        return {FACTS: " · ".join(filter(None, facts)), VOCABULARY: vocabulary}

    def tokens(self, page_state: PageState, trace: Trace) -> dict[str, Any]:
        """Return the contents of the token strips."""
        run = page_state.run
        prompt, generated = self.runs.text(run)
        strip = token_strip_fields(run, trace)
        messages, (_lm, tokenizer) = chat_messages(page_state.chat), self.runs.model(run.checkpoint)
        if has_chat_template(tokenizer):
            roles = token_roles(messages, run.token_ids, len(run.prompt), run.dropped, tokenizer)
            strip["roles"] = roles[-len(trace) :]
        other = {STRIP_B: None}
        if page_state.visible_second_run:
            comparison = self.runs.comparison(page_state, get_trace=self.runs.logits)
            shades_a, shades_b = shade_by_surprisal_difference(comparison)
            other_run = self.runs.second_run(page_state)
            strip_b = token_strip_fields(other_run, comparison.other)
            if other_run.token_ids == run.token_ids:
                strip_b["roles"] = strip.get("roles", [])
            other = {STRIP_B: TokenStrip.pack(**strip_b | {"shades": {"change": shades_b}})}
            strip["shades"] = {"change": shades_a}
        return other | {
            CHAT: ChatForm.pack(messages, generated) if has_chat_template(tokenizer) else None,
            STRIP: TokenStrip.pack(**strip, beginning=("", False) if messages else self.bos_text(run)),
            STORY: {"prompt": prompt, "generated": generated, "ended": describe_end(run, tokenizer)}
            | {"tokens": list(strip["tokens"][strip["num_prompt"] :]), "position": strip["num_prompt"]},
            PLAYBACK: GenerationPlayer.pack(strip["tokens"], strip["num_prompt"], len(run.generated)),
        }

    def bos_text(self, run: RunRequest) -> tuple[str, bool]:
        """Return the model's BOS text, "" for none, and whether the prompt begins with it.

        The text is "" for a truncated prompt, too, whose beginning the model does not see.
        """
        _lm, tokenizer = self.runs.model(run.checkpoint)
        expected = "" if run.dropped else "".join(map(tokenizer.token_text, tokenizer.bos_ids))
        return expected, has_bos(run.prompt, tokenizer)

    def prediction(self, page_state: PageState, settings: GenerationSettings, trace: Trace) -> dict[str, Any]:
        """Return the contents of the next-token table."""
        position, vocabulary = min(page_state.selection.query, len(trace) - 1), trace.vocabulary
        prediction = next_token_distribution_in_run(page_state.run, position, settings, trace)
        find, guess = (text[:MAX_SEARCH_CHARS] for text in (page_state.selection.find, page_state.selection.guess))
        sampled_id = prediction.sampled_token_id
        written = self.written_token(page_state, position, trace)
        other = self.other_prediction(page_state, position, settings) if page_state.visible_second_run else None
        unchanged = trace.baseline.logits.row(position) if trace.baseline else None
        guess_id, is_token = guessed_token(prediction, vocabulary, guess) if guess.strip() else (None, False)
        own_row = {"guess_id": guess_id if is_token else None}
        quote = quote_word if page_state.selection.is_story else quote_token
        contents = {
            NEXT_TOKEN: NextTokenTable.pack(prediction, vocabulary, settings, find, other, unchanged, **own_row)
            | {"after": quote(trace.tokens[position])},
            NEXT_TOKEN_WORDS: NextTokenSummary.pack(prediction, vocabulary, trace.tokens[position], position),
            GUESS: NextTokenGuessForm.pack(
                prediction, vocabulary, trace.tokens[position], guess, written, is_changed=bool(trace.baseline)
            ),
            BRIEF: NextTokenPreview.pack(
                trace.tokens[: position + 1], vocabulary[sampled_id], prediction.sampled[sampled_id]
            ),
        }
        contents[GUESS]["text"] = contents[BRIEF]["text"]
        if page_state.selection.why != "open":  # else it comes with its answer
            contents |= explanation_question(page_state, trace)
        contents[CHANGES + EFFECT] = None
        if trace.baseline:
            start = page_state.run.first_visible(len(trace))
            before_changes = predict_next_token(trace.baseline, position, settings, start)
            is_story = page_state.selection.is_story
            logits = unchanged, trace.logits.row(position)
            contents[CHANGES + EFFECT] = pack_change_effect(prediction, before_changes, vocabulary, logits, is_story)
        if other is None or page_state.selection.shown in ("a", "both"):
            return contents
        if page_state.selection.shown == "b":
            table = NextTokenTable.pack_other(prediction, settings, find, other) | {"after": quote(other.after)}
            words = NextTokenSummary.pack(other.prediction, other.vocabulary, other.after, other.position, "b")
            return contents | {NEXT_TOKEN: table, NEXT_TOKEN_WORDS: words}
        contents[NEXT_TOKEN_WORDS] = NextTokenSummary.pack_difference(prediction, vocabulary, other)
        if other.has_common_tokens:
            table = NextTokenTable.pack_difference(prediction, vocabulary, settings, find, other)
            contents[NEXT_TOKEN] = table | {"after": quote(trace.tokens[position])}
        return contents

    def next_token_scores(self, page_state: PageState, settings: GenerationSettings, trace: Trace) -> np.ndarray:
        """Return the logits (V,) after the selected token with the repetition penalty applied, the largest first."""
        position = min(page_state.selection.query, len(trace) - 1)
        penalised = next_token_distribution_in_run(page_state.run, position, settings, trace).stages.penalised
        return -np.sort(-penalised)

    def written_token(
        self, page_state: PageState, position: int, trace: Trace
    ) -> tuple[str, NextTokenDistribution] | None:
        """Return the generated token after a position, or else the last: the token before it, and its prediction.

        None for the prompt's tokens, and on pages that do not show it.
        """
        written = min(position + 1, len(trace) - 1)
        is_generated = written + len(page_state.run.token_ids) - len(trace) >= len(page_state.run.prompt)
        if not page_state.selection.is_story or not is_generated or not written:
            return None
        return trace.tokens[written - 1], next_token_distribution(trace, written - 1)

    def other_prediction(
        self, page_state: PageState, position: int, settings: GenerationSettings
    ) -> SecondRunPrediction:
        """Return B's prediction after the token aligned with A's, sampled with the same random number."""
        comparison = self.runs.comparison(page_state, get_trace=self.runs.logits)
        trace, other = comparison.runs
        aligned = comparison.alignment.nearest_aligned(position)
        start = page_state.run.first_visible(len(trace)) + position - aligned
        prediction = predict_next_token(other, aligned, settings, start)
        plain, sampled, logits = (
            align_to_vocabulary(values, other.vocabulary, trace.vocabulary)
            for values in (prediction.plain, prediction.sampled, prediction.stages.logits)
        )
        return SecondRunPrediction(prediction, other.vocabulary, plain, sampled, logits, other.tokens[aligned], aligned)

    def comparison_bar(self, page_state: PageState) -> dict[str, Any]:
        """Return the contents of the bar that compares two runs."""
        comparison = self.runs.comparison(page_state) if page_state.visible_second_run else None
        texts = (
            self.runs.text(page_state.run)[0],
            self.runs.text(self.runs.second_run(page_state))[0] if page_state.visible_second_run else "",
        )
        return {RUNS: RunComparisonControls.pack(page_state, comparison, self.runs.library.checkpoints, texts)}

    def advice(self, page_state: PageState) -> dict[str, Any]:
        """Return advice on how to end the prompt; empty for a conversation, and once tokens were generated."""
        run = page_state.run
        advice = None if run.generated or page_state.chat else prompt_advice(self.runs.trace(run))
        if advice is None:
            return {ADVICE: PromptAdviceLine.pack()}
        _lm, tokenizer = self.runs.model(run.checkpoint)
        text = tokenizer.decode(run.prompt)
        better = advice.follow(text)
        prompt_ids = strip_bos(run.prompt, tokenizer)
        is_whole_text = not run.dropped and tuple(tokenizer.encode(text)) == prompt_ids  # else the text is truncated
        return {ADVICE: PromptAdviceLine.pack(advice.text, better if is_whole_text and better != text else "")}

    def explanations(self, page_state: PageState, settings: GenerationSettings) -> dict[str, Any]:
        """Return the prediction's reasons and the redundancy of components, as far as these panels are open."""
        _lm, trace = self.runs.model_and_trace(page_state.run)  # hold the model, as it runs again
        selection, contents = page_state.selection.clamp_to_trace(trace), {WHY: [], STAND_INS: []}
        if selection.why == "open":
            contents |= explanation_question(page_state, trace)
            contents[WHY] = ExplanationButton.pack(self.explain(page_state, settings, trace))
        if selection.stand_ins == "open":
            redundancy = find_redundancy(trace, selection.query, selection.target)
            prediction = next_token_distribution_in_run(page_state.run, selection.query, settings, trace)
            contents[STAND_INS] = ExplanationButton.pack(
                prediction_explanation.explain_redundancy(trace, selection.query, redundancy, prediction)
            )
        return contents

    def explain(
        self, page_state: PageState, settings: GenerationSettings, trace: Trace
    ) -> Iterator[ExplanationSentence]:
        """Yield the sentences on why the explained token follows; an unlikely one that was written has no reasons."""
        selection, rank = page_state.selection.clamp_to_trace(trace), explained_rank(page_state, trace)

        def predict_without(*ablations: Intervention) -> NextTokenDistribution:
            run = replace(page_state.run, edits=(*page_state.run.edits, *ablations))
            return next_token_distribution_in_run(run, selection.query, settings, self.runs.trace(run))

        prediction, written = predict_without(), ()
        if is_written_token_explained(page_state, trace) and not trace.edits:
            quote = quote_word if selection.is_story else quote_token
            written = tuple(explain_written_token(trace, prediction, settings.temperature, quote))
            if is_unlikely_token(prediction, prediction.actual):
                if selection.is_story:
                    yield from written
                    return
                rank = selection.target  # what the model itself expected
        reasons = prediction_reasons(trace, selection.query, rank)
        if selection.is_story:
            yield from explain_prediction_in_story(trace, prediction, reasons, predict_without, written)
            return
        yield from written
        for sentence in explain_prediction(trace, selection.query, reasons, prediction):
            yield replace(sentence, selection_change=sentence.selection_change | {"target": rank})

    def tree(self, page_state: PageState) -> dict[str, Any]:
        """Return the contents of the tree of continuations."""
        _lm, tokenizer = self.runs.model(page_state.run.checkpoint)
        try:
            segments = build_tree(self.continuations.surprisals(page_state))
        except BudgetExceededError as error:  # and what there is beside the tree is shown
            return {PROBLEM: str(error)}
        generated, branches = page_state.run.generated, page_state.branches
        return {BRANCHES: ContinuationTree.pack(segments, generated, branches, tokenizer.vocabulary.__getitem__)}


def explained_rank(page_state: PageState, trace: Trace) -> int:
    """Return the rank of the token that is explained: of the written one if there is one, else the target."""
    selection = page_state.selection.clamp_to_trace(trace)
    if not is_written_token_explained(page_state, trace):
        return selection.target
    ranking = ranking_without_interventions(trace, selection.query).tolist()
    return 1 + ranking.index(trace.token_ids[selection.query + 1])


def is_written_token_explained(page_state: PageState, trace: Trace) -> bool:
    """Return whether a generated token follows the selected one, and the user has not chosen another target."""
    run, selection = page_state.run, page_state.selection.clamp_to_trace(trace)
    position = selection.query + 1
    is_written = position < len(trace) and position + len(run.token_ids) - len(trace) >= len(run.prompt)
    return is_written and (selection.is_story or selection.target == 1)


def explanation_question(page_state: PageState, trace: Trace) -> dict[str, str]:
    """Return the question that names the explained token."""
    selection = page_state.selection.clamp_to_trace(trace)
    token_id = ranking_without_interventions(trace, selection.query)[explained_rank(page_state, trace) - 1]
    quote = quote_word if selection.is_story else quote_token
    return {WHY + QUESTION: _("Why {token}?", token=quote(trace.vocabulary[token_id]))}


def describe_end(run: RunRequest, tokenizer: Tokenizer) -> str:
    """Return a sentence if the model ended the text itself, else ""."""
    if not run.generated or run.generated[-1] not in tokenizer.eos_ids:
        return ""
    count = len(run.generated)
    return ngettext(
        "The model ended the text after {count} token.", "The model ended the text after {count} tokens.", count
    )


def token_strip_fields(run: RunRequest, trace: Trace) -> dict[str, Any]:
    """Return the tokens that the model sees, their shading, and the number of tokens before them.

    Args:
        trace: of the run; logits suffice.
    """
    num_unseen = len(run.token_ids) - len(trace)
    return {
        "tokens": trace.tokens,
        "shades": {name: shade_tokens(trace, name) for name in SHADES},
        "num_prompt": max(0, len(run.prompt) - num_unseen),
        "earlier": num_unseen + run.dropped,
    }


def next_token_distribution_in_run(
    run: RunRequest, position: int, settings: GenerationSettings, trace: Trace
) -> NextTokenDistribution:
    """Return the next-token distribution after a position of a run.

    Args:
        position: index in the trace.
        trace: of the run; logits suffice.
    """
    return predict_next_token(trace, position, settings, run.first_visible(len(trace)))


FOLDED = {"folded": True}  # content of a figure that is not drawn until its title is pressed
WIDGETS = {
    HeadHeatmaps: HeadGridWidget,
    HeadTable: HeadTableWidget,
    ModelMap: ModelMapWidget,
    WholeModelFigure: WholeModelWidget,
}  # widgets of figures that are not Plotly's


def figure_contents(open_view: OpenView, newly: bool, stage: int) -> dict[str, Any]:
    """Return the figures, headings and verifications of `view_contents`."""
    name, panels = open_view.view.name, open_view.panels(newly)
    shown_panels = [panel for panel in open_view.view.panels if open_view.has(panel)]
    is_difference = open_view.visible_run == "difference"
    # a figure that never has a difference leaves its place to one that has
    with_difference = [panel for panel in shown_panels if not (is_difference and panel.no_difference_reason)]
    first_row = _first_row(with_difference or shown_panels)
    later_panels = [panel for panel in shown_panels if panel not in first_row]
    folded_panels = [p for p in later_panels if not open_view.selection.is_unfolded(element_id(name, p.name))]
    if stage == 2:
        verifications = {
            panel.name: _draw_if_wanted(open_view.verify, panel) for panel in panels if panel not in folded_panels
        }
        return {
            element_id(name, panel) + MARK: verification and verification.as_dict()
            for panel, verification in verifications.items()
        }
    stage_panels = [p for p in panels if (p in later_panels) == bool(stage) and p not in folded_panels]
    contents = {
        element_id(name, panel.name): figure_payload(_draw_if_wanted(open_view.draw, panel)) for panel in stage_panels
    }
    if stage:
        return contents
    contents |= {element_id(name, panel.name): FOLDED for panel in folded_panels}
    contents |= {
        element_id(name, panel.name) + HEADING: translate(panel.title)  # which fits one line
        if panel in folded_panels
        else open_view.heading(panel)
        for panel in shown_panels
    }
    return contents


def paired_figure_contents(open_view: OpenView, newly: bool, stage: int) -> dict[str, Any]:
    """Return `figure_contents` of both runs, B's under ids of their own; figures of the comparison itself are A's."""
    first, second = (figure_contents(open_view.show_run(run), newly, stage) for run in "ab")
    contents = dict(first)
    for panel in open_view.view.panels:
        figure = element_id(open_view.view.name, panel.name)
        for suffix in ("", MARK, HEADING):
            if figure + suffix not in first:
                continue
            content = second[figure + suffix]
            if panel.compared_run or FOLDED in (content, second.get(figure)):
                content = None
            elif suffix == HEADING:
                contents[figure + suffix], content = f"A: {first[figure + suffix]}", f"B: {content}"
            contents[figure + OF_B + suffix] = content
    return contents


def view_contents(open_view: OpenView, newly: bool, stage: int) -> dict[str, Any]:
    """Return a view's contents in a stage of an answer (see `BrowserEndpoints.answer`); None for a figure it lacks.

    Figures below the first row are drawn once the user has unfolded them.

    Args:
        newly: whether the run is new; otherwise only the selection has changed.
    """
    name = open_view.view.name
    draw = paired_figure_contents if open_view.visible_run == "both" else figure_contents
    contents = draw(open_view, newly, stage)
    if stage:
        return contents
    if open_view.view.numbers_view_link:
        link = open_view.numbers_view_link
        contents[element_id(name, IN_FULL)] = NumbersViewLink.pack(*link) if link else None
    if open_view.view.direction_spec:
        recipe, layer = open_view.recipe, open_view.selection.layer
        contents[element_id(name, LISTS)] = (
            DirectionPromptBoxes.pack(open_view.trace, recipe, layer) if recipe else None
        )
    if open_view.view.code:
        contents[element_id(name, CODE)] = open_view.code
    return contents | {
        CHANGES: ActiveInterventionList.pack(
            open_view.trace, open_view.comparison.other if open_view.has_other else None
        ),
        element_id(name, WORDS): open_view.description,
        element_id(name, FORMULA): open_view.formula,
        element_id(name, CHOOSERS): SelectionDropdowns.pack(open_view.choices),
        element_id(name, WHAT_IFS): InterventionControls.pack(open_view.intervention_controls),
    }


def continuation_contents(open_view: OpenView, settings: GenerationSettings) -> dict[str, Any]:
    """Return the open tab's continuation with these generation settings; empty if it has none."""
    name = open_view.view.name
    return {element_id(name, WRITTEN): open_view.continuation(settings)} if open_view.view.continuation_text else {}


def token_selection_dropdowns(selection: Selection, trace: Trace) -> dict[str, Any]:
    """Return the open tab's select fields of tokens."""
    view = VIEW_BY_NAME[selection.view]
    fields = make_selection_dropdowns(
        [field for field in view.select_controls if field in TOKEN_FIELDS], trace, selection.clamp_to_trace(trace)
    )
    return {element_id(view.name, CHOOSERS): SelectionDropdowns.pack(fields, all_of_them=False)}


def _first_row(panels: list[Panel]) -> list[Panel]:
    """Return the panels of the first row, one or two side by side: they are sent without waiting for the others."""
    return panels[: 2 if [panel.width for panel in panels[:2]] == ["half", "half"] else 1]


def _draw_if_wanted(work: Callable[[Panel], Any], panel: Panel) -> Any:
    """Apply `work` to a panel, unless the request was cancelled or exceeds its budget."""
    check_budget()
    return work(panel)


def figure_payload(figure: Any) -> Any:
    """Return a figure as its widget takes it, or the text of its placeholder."""
    if isinstance(figure, FigurePlaceholder):
        job = figure.job
        job_fields = {"job": {"name": job.name, "seconds": job.seconds}} if job else {}
        return {"instead": figure.message} | job_fields
    return None if figure is None else WIDGETS.get(type(figure), PlotlyFigureWidget).pack(figure)
