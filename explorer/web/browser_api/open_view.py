"""The open view of one or two runs at a selection, and the derivation of a selected number in it."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

from explorer.errors import PointNotFoundError
from explorer.explain.derivation import ClickedPoint, Derivation
from explorer.explain.source_code import code_text, mark_line
from explorer.interventions import DirectionSpec
from explorer.state.generation_settings import GenerationSettings
from explorer.state.page_state import PageState
from explorer.state.selection import Selection
from explorer.tracing.comparison import Comparison
from explorer.tracing.jobs import Job, ResultNotReadyError
from explorer.tracing.model_registry import ModelUnloadedError
from explorer.tracing.run_service import RunService
from explorer.tracing.trace import Trace
from explorer.translations import _, translate
from explorer.views import VIEW_BY_NAME
from explorer.views.intervention_controls import InterventionControl, available_controls
from explorer.views.labels import difference_title, format_heading
from explorer.views.selection import SelectionDropdown, make_selection_dropdowns
from explorer.views.two_run_figures import (
    FigurePlaceholder,
    NoDifferenceError,
    RunAndSelection,
    different_model_warning,
    draw_two_runs,
    likeliest_tokens_sentence,
    replaced_word_sentence,
    selection_in_other_run,
    unaligned_tokens_note,
)
from explorer.views.user_views import UserViewError
from explorer.views.verification import Verification, worse_verification
from explorer.views.view import NumbersLink, Panel, View
from explorer.web.shared_constants import OF_B, element_id


def derivation_text(derivation: Derivation | tuple[Derivation, ...] | None, depth: str) -> str:
    """Return one or several derivations as lines of text, as many as the depth has; "" for None."""
    derivations = derivation if isinstance(derivation, tuple) else (derivation,)
    return "\n".join(line for item in derivations if item for line in item.lines(depth))


def join_run_texts(texts: Sequence[str]) -> str:
    """Join the texts of both runs, labelled A and B; a single run's text stays as it is."""
    if len(texts) == 1 or not any(texts):
        return texts[0] if texts else ""
    return "\n".join(f"{name}: {text}" for name, text in zip("AB", texts, strict=True) if text)


@dataclass(frozen=True)
class OpenView:
    """View of one or two runs at a valid selection; figures are drawn on request.

    If the view does not apply to the model, its description says why, and its panels are empty.

    Attributes:
        lm: the models of the runs, held so that they are not unloaded while figures are drawn.
        comparison: with another run, or of a run with interventions with its baseline; None without either.
        has_other: whether the other run was chosen by the user, and figures can show it on its own.
        num_generated: how many of the trace's tokens were generated.
    """

    view: View
    trace: Trace
    selection: Selection
    lm: Any = field(default=None, repr=False)
    comparison: Comparison | None = None
    has_other: bool = False
    num_generated: int = 0

    @property
    def visible_run(self) -> str:
        """The run that the figures show, "a" or "b", their "difference", or "both" side by side."""
        return self.selection.shown if self.has_other else "a"

    def show_run(self, run: str) -> "OpenView":
        """Return the view whose figures show another run, see `visible_run`."""
        return replace(self, selection=replace(self.selection, shown=run))

    def split_figure_id(self, figure: str) -> tuple["OpenView", str]:
        """Return the view with the run that a figure's element shows, and the name of its panel."""
        panel = figure.removeprefix(element_id(self.view.name, "")).removesuffix(OF_B)
        return self.show_run("b" if figure.endswith(OF_B) else "a") if self.visible_run == "both" else self, panel

    @cached_property
    def runs_with_selection(self) -> tuple[RunAndSelection, ...]:
        """The run, and the other if there is one, each with its selection."""
        first = self.trace, self.selection
        if not self.has_other:
            return (first,)
        return first, (self.comparison.other, selection_in_other_run(self.comparison, self.selection))

    @property
    def visible_runs(self) -> tuple[RunAndSelection, ...]:
        """The runs whose texts, numbers and verifications are shown, each with its selection."""
        return {"a": self.runs_with_selection[:1], "b": self.runs_with_selection[1:]}.get(
            self.visible_run, self.runs_with_selection
        )

    def drawn_runs(self, panel: Panel) -> tuple[RunAndSelection, ...]:
        """Return the visible runs, each with the selection that the panel's figure is drawn by."""
        if self.visible_run != "difference":
            return self.visible_runs
        return panel.select_for_difference(self.comparison, *self.visible_runs)

    @property
    def has_single_run(self) -> bool:
        """Return whether the view has no second run to compare with."""
        comparison = self.comparison
        if comparison is None or not self.view.needs_two_prompts:
            return comparison is None
        return comparison.trace.model == comparison.other.model and comparison.prompt_ids[0] == comparison.prompt_ids[1]

    def applies_to(self, trace: Trace) -> bool:
        """Return whether the view has all that it shows of a run."""
        return self.view.is_applicable(trace)

    @property
    def description(self) -> str:
        """The view's description, or why it has nothing to show."""
        if self.view.is_comparison and self.has_single_run:
            return translate(self.view.single_run_message)
        missing = [trace for trace, _selection in self.visible_runs if not self.applies_to(trace)]
        if missing:
            return self.view.unavailable_reason(missing[0])
        subtracts = self.has_other and (self.view.is_comparison or self.visible_run == "difference")
        texts = [self.sentence or translate(self.view.description)]
        if subtracts:
            texts += [different_model_warning(self.comparison), unaligned_tokens_note(self.comparison)]
        return " ".join(filter(None, texts))

    @property
    def sentence(self) -> str:
        """The view's sentence on the visible run or on the comparison that it is about; "" where formulas are shown."""
        shows_both = self.visible_run in ("difference", "both") and not self.view.is_comparison
        if not (self.view.sentence or shows_both) or self.selection.depth in ("formula", "code"):
            return ""
        if self.view.is_comparison:
            with suppress(ResultNotReadyError):  # the figure's placeholder shows how far that is
                sentence = or_default_if_unloaded(lambda: self.view.sentence(self.comparison, self.selection), "")
                return " ".join(filter(None, (replaced_word_sentence(self.comparison), sentence)))
            return ""
        if shows_both:
            sentences = (self.view.comparison_sentence, likeliest_tokens_sentence)
            return or_default_if_unloaded(
                lambda: " ".join(filter(None, (say(self.comparison, self.selection) for say in sentences))), ""
            )
        return or_default_if_unloaded(lambda: self.view.sentence(*self.visible_runs[0]), "")

    @property
    def formula(self) -> str:
        """The view's formula of the visible runs."""
        if self.view.is_comparison:
            if self.has_single_run:
                return translate(self.view.single_run_message)
            return self.view.formula(self.comparison, self.selection)
        try:
            formulas = [
                self.view.formula(*run_and_selection) if self.applies_to(run_and_selection[0]) else ""
                for run_and_selection in self.visible_runs
            ]
        except ModelUnloadedError as gone:
            return unavailable_message(gone)
        except ResultNotReadyError:  # the figure's placeholder has the button that starts the job
            return ""
        if self.view.generated_note and self.num_generated and formulas[0]:
            formulas[0] = f"{self.view.generated_note(len(self.trace), self.num_generated)}\n{formulas[0]}"
        return join_run_texts(formulas)

    @property
    def code(self) -> str:
        """The code that computes what the view shows; "" where it is not asked for."""
        if self.selection.depth != "code" or not self.view.code:
            return ""
        code = code_text(self.lm[0], len(self.trace), self.selection.layer, self.view.code)
        return mark_line(code, self.view.code_lines)

    def continuation(self, settings: GenerationSettings) -> str:
        """Return the view's continuation of the run, or of both runs, as text."""
        return or_default_if_unloaded(lambda: self._continuation(settings), "")

    def _continuation(self, settings: GenerationSettings) -> str:
        return join_run_texts(
            [
                self.view.continuation_text(*run_and_selection, settings)
                if self.applies_to(run_and_selection[0])
                else ""
                for run_and_selection in self.visible_runs
            ]
        )

    @property
    def recipe(self) -> DirectionSpec | None:
        """Spec of the view's direction in the residual stream; None if it has none."""
        return (
            self.view.direction_spec(self.trace, self.selection)
            if self.view.direction_spec and self.applies_to(self.trace)
            else None
        )

    @property
    def numbers_view_link(self) -> NumbersLink | None:
        """Text, selection and switch of the link from a step of the story to a view of numbers; None for no link."""
        if not (self.view.numbers_view_link and self.applies_to(self.trace)):
            return None
        return or_default_if_unloaded(lambda: self.view.numbers_view_link(self.trace, self.selection), None)

    @property
    def choices(self) -> list[SelectionDropdown]:
        """The fields of the selection that the view offers as lists; none if no figure depends on the selection."""
        if not self.applies_to(self.trace) or (self.view.is_comparison and self.has_single_run):
            return []
        if self.view.panels and not any(map(self.has, self.panels(newly=False))):
            return []
        runs = self.comparison if self.view.is_comparison else None
        field_lists = (
            or_default_if_unloaded(
                lambda name=name: make_selection_dropdowns((name,), *self.runs_with_selection[0], runs), []
            )
            for name in self.view.select_controls
        )
        return [self._with_drawn_options(select_field) for fields in field_lists for select_field in fields]

    def _with_drawn_options(self, dropdown: SelectionDropdown) -> SelectionDropdown:
        """Return the list without options that A − B replaces; the chosen one is named by what is drawn for it."""
        names = [declared.name for declared in self.view.fields]
        if self.visible_run != "difference" or dropdown.field not in names:
            return dropdown
        (trace, selection), second = self.runs_with_selection
        chosen, texts = selection.option(dropdown.field), dict(dropdown.options)

        def value_in_difference(value: Any) -> Any:
            first = trace, selection.replace(**{dropdown.field: value})
            for panel in self.view.panels:
                (_trace, of_figure), _second = panel.select_for_difference(self.comparison, first, second)
                if of_figure.option(dropdown.field) != value:
                    return of_figure.option(dropdown.field)
            return value

        # A typed answer need not be among the options.
        replacements = {value: value_in_difference(value) for value in {*texts, chosen}}
        values = [value for value in texts if value == chosen or replacements[value] == value != replacements[chosen]]
        return replace(dropdown, options=[(value, texts[replacements[value]]) for value in values])

    @property
    def intervention_controls(self) -> list[tuple[InterventionControl, float]]:
        """The interventions that the view offers, with their current amounts."""
        comparison = self.comparison if self.has_other else None
        return or_default_if_unloaded(
            lambda: available_controls(self.view.intervention_controls, self.trace, self.selection, comparison), []
        )

    def panels(self, newly: bool) -> Sequence[Panel]:
        """Return all panels of a view that is `newly` shown, else those that depend on the selection."""
        return [panel for panel in self.view.panels if newly or not panel.is_selection_independent]

    def has(self, panel: Panel) -> bool:
        """Return whether the panel is shown for these runs."""
        if panel.compared_run:
            compared = None if self.view.is_comparison and self.has_single_run else self.panel_comparison(panel)
            return compared is not None and all(self.fits(panel, trace) for trace in compared.runs)
        return any(self.fits(panel, trace) for trace, _selection in self.runs_with_selection)

    def fits(self, panel: Panel, trace: Trace) -> bool:
        """Return whether the view and the panel have all that they show of a run."""
        return self.applies_to(trace) and panel.is_applicable(trace)

    def panel_comparison(self, panel: Panel) -> Comparison | None:
        """Return the comparison that a comparing panel shows; None if there is none."""
        if panel.compared_run == "other" or not self.has_other:
            return self.comparison
        return Comparison.with_unchanged(self.trace) if self.trace.baseline else None

    def heading(self, panel: Panel) -> str:
        """Return what stands above a panel's figure: its title, of a difference with what is subtracted."""
        title = translate(panel.title)
        if panel.heading and self.has(panel):
            make_heading = partial(format_heading, panel.heading) if isinstance(panel.heading, str) else panel.heading
            title = or_default_if_unloaded(lambda: make_heading(*self.visible_runs[0]), title)
        is_difference = self.visible_run == "difference" and not panel.compared_run
        return difference_title(title) if is_difference else title

    def draw(self, panel: Panel) -> Any:
        """Draw the panel's figure, or a placeholder until it is available; None if it does not apply."""
        try:
            return self._draw(panel) if self.has(panel) else None
        except ResultNotReadyError as not_yet:
            return FigurePlaceholder(_("This takes longer than a click."), not_yet.job)
        except ModelUnloadedError as gone:
            return FigurePlaceholder(unavailable_message(gone))
        except UserViewError as mistake:
            return FigurePlaceholder(str(mistake))

    def pending_job(self, figure_id: str) -> Job | None:
        """Return the job that a figure waits for; None if there is none."""
        open_view, panel_name = self.split_figure_id(figure_id)
        panels = [panel for panel in self.view.panels if panel.name == panel_name]
        figure = open_view.draw(panels[0]) if panels else None
        return figure.job if isinstance(figure, FigurePlaceholder) else None

    def _draw(self, panel: Panel) -> Any:
        if panel.compared_run:
            try:
                return panel.draw(self.panel_comparison(panel), self.selection)
            except NoDifferenceError as incomparable:
                is_shown_above = self.view.is_comparison and self.formula == str(incomparable)  # above all panels
                return None if is_shown_above else FigurePlaceholder(str(incomparable))
        if not self.has_other:
            return panel.draw(*self.runs_with_selection[0])
        first, second = (
            run_and_selection if self.fits(panel, run_and_selection[0]) else None
            for run_and_selection in self.runs_with_selection
        )
        return draw_two_runs(panel, first, second, self.comparison, self.visible_run)

    def verify(self, panel: Panel) -> Verification | None:
        """Return the verification of the panel's numbers, of both runs in a difference; None if not available."""
        try:
            return self._verify(panel) if panel.verify and self.has(panel) else None
        except (ResultNotReadyError, NoDifferenceError, ModelUnloadedError):
            return None

    def _verify(self, panel: Panel) -> Verification | None:
        if panel.compared_run:
            return panel.verify(self.panel_comparison(panel), self.selection)
        if not all(self.fits(panel, trace) for trace, _selection in self.visible_runs):
            return None
        if self.visible_run == "difference" and panel.no_difference_reason:
            return None
        verifications = [panel.verify(*run_and_selection) for run_and_selection in self.drawn_runs(panel)]
        return verifications[0] if len(verifications) == 1 else worse_verification(*verifications)


def or_default_if_unloaded(work: Callable[[], Any], default: Any) -> Any:
    """Return the result of `work`, or `default` if it needs a model that was unloaded."""
    try:
        return work()
    except ModelUnloadedError:
        return default


def unavailable_message(gone: ModelUnloadedError) -> str:
    """Return why a run without its model has no figure."""
    if not gone.needs:
        return _("This needs the run’s model, which is not loaded. Load it and run the prompt again.")
    return _(
        "This needs {name}, which the run did not store. Load the run’s model and run the prompt again.",
        name=gone.needs,
    )


def make_open_view(runs: RunService, page_state: PageState) -> OpenView:
    """Return the view that the page's state selects, with its run and the other run."""
    lm, trace = runs.model_and_trace(page_state.run)
    models = lm, page_state.other and runs.model(page_state.other.checkpoint)
    selection = page_state.selection.clamp_to_trace(trace)
    comparison = runs.comparison(page_state)
    return OpenView(
        VIEW_BY_NAME[page_state.selection.view],
        trace,
        selection,
        models,
        comparison,
        page_state.visible_second_run is not None,
        min(len(page_state.run.generated), len(trace)),
    )


def point_derivation_text(open_view: OpenView, figure_id: str, point: ClickedPoint) -> str:
    """Return the derivation of the number at a point of a figure as lines of text; "" if there is none.

    Args:
        figure_id: of its element.
        point: a point of the visible figure; in a difference, a point of the first run's figure.

    Raises:
        PointNotFoundError: the figure has no such point.
    """
    single_view, panel_name = open_view.split_figure_id(figure_id)
    _check_head(point, open_view.trace)
    panels = [
        panel for panel in open_view.view.panels if panel.name == panel_name and panel.inspect and open_view.has(panel)
    ]
    if not panels:
        return ""
    (panel,) = panels
    try:
        text = _derivation_text(single_view, panel, point)
        if single_view is open_view or panel.compared_run:
            return text
        return join_run_texts(["", text] if single_view.visible_run == "b" else [text, ""])
    except (ResultNotReadyError, NoDifferenceError):
        return ""
    except ModelUnloadedError as gone:
        return unavailable_message(gone)


def _derivation_text(open_view: OpenView, panel: Panel, point: ClickedPoint) -> str:
    depth = open_view.selection.depth
    if panel.compared_run:
        derivation = panel.inspect(open_view.panel_comparison(panel), open_view.selection, point)
        return derivation_text(derivation, depth)
    if not all(open_view.fits(panel, trace) for trace, _selection in open_view.visible_runs):
        return ""
    points = (
        [point] if len(open_view.visible_runs) == 1 else [point, _aligned_point(open_view.comparison, panel, point)]
    )
    texts = []
    for run_and_selection, run_point in zip(open_view.drawn_runs(panel), points, strict=True):
        _check_head(point, run_and_selection[0])
        texts.append(derivation_text(panel.inspect(*run_and_selection, run_point), depth) if run_point else "")
    return join_run_texts(texts)


def _aligned_point(comparison: Comparison, panel: Panel, point: ClickedPoint) -> ClickedPoint | None:
    """Return the aligned point in the second run's figure; None if there is none."""
    partners, coordinates = comparison.alignment.partners, {}
    for axis in panel.token_coordinates:
        index = point.coordinate_or_none(axis)
        if index is None:
            continue
        if index >= len(partners) or partners[index] is None:
            return None
        coordinates[axis] = partners[index]
    return replace(point, **coordinates)


def _check_head(point: ClickedPoint, trace: Trace):
    """Raise PointNotFoundError if the model has no such layer or head."""
    layer, head, config = point.coordinate_or_none("layer"), point.coordinate_or_none("head"), trace.config
    if (layer or 0) >= config.num_layers or (head or 0) >= config.num_heads:
        raise PointNotFoundError(_("the model has no layer {layer} head {head}", layer=layer, head=head))
