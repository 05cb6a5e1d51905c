"""Views and their panels."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from explorer.explain.notation import join_names
from explorer.interventions import DirectionSpec
from explorer.state.generation_settings import GenerationSettings
from explorer.state.selection import Group, Selection, SelectionField
from explorer.tracing.comparison import Comparison
from explorer.tracing.trace import LazyLayerStack, Trace
from explorer.translations import N_, _
from explorer.views.figure_template import FigureTemplate
from explorer.views.intervention_controls import InterventionControl
from explorer.views.verification import Inspect, Verifier
from model.config import ModelConfig


@dataclass(frozen=True)
class TwoRunRenderer:
    """Functions that draw figures of one kind for two runs.

    Attributes:
        share_scale: (figure, other) -> the figure with the colour and value ranges of both.
        difference: (first, second, comparison, title) -> the figure of A − B; raises NoDifferenceError if there
            is none.
    """

    share_scale: Callable[[Any, Any], Any]
    difference: Callable[[Any, Any, Comparison, str], Any]


NumbersLink = tuple[str, dict[str, Any]] | tuple[str, dict[str, Any], str]  # text, selection, and the switch to open
LISTS = N_("Each run has a list of its own here: look at A and B in turn.")
COURSE = N_(
    "A running sum is drawn of one run: look at A and B in turn, or at each part’s difference in the tab Prediction."
)
PLANE = N_("Each run’s vectors are drawn along directions of their own: look at A and B in turn.")
BINS = N_("Each run’s values are counted in intervals of their own: look at A and B in turn.")
ROWS = N_("Each row has a scale of its own in each run: look at A and B in turn, or at the pattern’s difference.")
LINES = N_("Lines have no difference: look at A and B in turn, or at the difference of the pattern.")
CURVES = N_("Each run has curves of its own here: look at A and B in turn, or at the map.")
CLOCKS = N_("Arrows have no difference: look at A and B in turn, or at the difference of the angles.")


@dataclass(frozen=True)
class HeadHeatmaps:
    """Many small square images of values in [0, 1], one for each layer and head.

    Attributes:
        values: (L, H, T, T), an array or a layer at a time; row = query, column = key.
        alt: what they show, in a sentence.
        signed: whether the values are in [-1, 1] instead.
    """

    values: np.ndarray | LazyLayerStack
    alt: str
    signed: bool = False


@dataclass(frozen=True)
class HeadTableColumn:
    """A column of a `HeadTable`.

    Attributes:
        label: its heading.
        description: what its numbers say, in a sentence.
        values: (L, H), NaN for a head without a number.
        limit: the absolute value that fills a cell with its bar.
        signed: whether numbers are written with their sign.
    """

    label: str
    description: str
    values: np.ndarray
    limit: float = 1.0
    signed: bool = False


@dataclass(frozen=True)
class HeadTable:
    """A table with a row for each head, which can be sorted by any column.

    Attributes:
        columns: all of one shape (L, H).
        alt: what it shows, in a sentence.
        note: how it was measured, in a sentence above it; "" for none.
    """

    columns: tuple[HeadTableColumn, ...]
    alt: str
    note: str = ""


PAGE_KINDS = ("head_table", "model_map", "whole_model")  # kinds of panels that scripts of the page draw, not Plotly


@dataclass(frozen=True)
class Panel:
    """One figure of a view: a pure function of the run and the selection. Only name, title and draw are required.

    Title and `no_inspection` are translated on use.

    Attributes:
        name: unique within its view.
        title: what it shows, in a line.
        draw: (trace, selection) -> `go.Figure`, `HeadHeatmaps` for a head grid, `HeadTable`, `ModelMap` for a map of
            the model, or `WholeModelFigure`; a user's own view may return a figure of Plotly's.
        kind: which of them `draw` returns.
        required_taps: values it draws besides those its view needs; without them the panel is hidden.
        compared_run: what the run is compared with, if anything: "unchanged" is the same run without
            interventions, "other" the other run that the user chose, or else the unchanged one. `draw`,
            `verify` and `inspect` then get a `Comparison` in the trace's place; without one the panel is
            hidden.
        no_difference_reason: why two runs' figures have no difference, in a sentence that is translated on use; "" if
            they have one.
        two_run_renderer: how two runs' figures are drawn, if they are neither plain figures nor grids of heads.
        select_for_difference: (comparison, first, second) -> the two runs with the selections that A − B is drawn
            and derived by, if not by their own.
        condition: trace -> whether the panel is shown, besides.
        click_opens_checkpoint: whether points' "customdata" are names of checkpoints of the model's training,
            which a click opens.
        is_selection_independent: whether the figure ignores the selection, so that it is drawn once for each
            run.
        click_selects: what a click on a point selects: the point's "x", "y" or "customdata" -> a field of
            `Selection`, or several for a "customdata" with several values; with "view" among them another tab
            opens. Parts of the map have their own.
        verify: (trace, selection) -> whether the captured values that it shows or is derived from, all of them,
            are what their own inputs give.
        inspect: (trace, selection, clicked point) -> the derivation of the number there, or the derivations of
            the two numbers that a point stands for; None where there is no number. Raises PointNotFoundError
            for a point that the figure does not have.
        no_inspection: why a click has no number to explain, where `inspect` is None.
        height: of the figure, in pixels.
        min_width: of the figure, in pixels; on a narrower screen it scrolls sideways, except a map of the
            model, which has a portrait layout.
        width: share of the row it takes on a wide screen.
        chooser: field of the selection whose list stands in the figure's line; "" for none.
        template: its figure as data, which the page without a server fills itself.
        heading: the title where something is chosen, with what `format_heading` fills in; or (trace, selection) -> the
            title in this run.
    """

    name: str
    title: str
    draw: Callable[[Trace, Selection], Any]
    kind: Literal["figure", "head_grid", "head_table", "model_map", "whole_model"] = "figure"
    required_taps: tuple[str, ...] = ()
    compared_run: Literal["", "unchanged", "other"] = ""
    no_difference_reason: str = ""
    two_run_renderer: TwoRunRenderer | None = None
    select_for_difference: Callable[..., tuple[tuple[Trace, Selection], ...]] = lambda comparison, *runs: runs
    condition: Callable[[Trace], bool] = lambda trace: True
    click_opens_checkpoint: bool = False
    is_selection_independent: bool = False
    click_selects: Mapping[str, str | tuple[str, ...]] = field(default_factory=dict)
    verify: Verifier | None = None
    inspect: Inspect | None = None
    no_inspection: str = ""
    height: int = 360
    min_width: int = 0
    width: Literal["whole", "half"] = "whole"
    chooser: str = ""
    template: FigureTemplate | None = None
    heading: str | Callable[[Trace, Selection], str] = ""

    def is_applicable(self, trace: Trace) -> bool:
        """Return whether the run has all that the panel draws."""
        return all(trace.has_tap(name) for name in self.required_taps) and self.condition(trace)

    @property
    def token_coordinates(self) -> tuple[str, ...]:
        """The coordinates of a clicked point that are positions of tokens."""
        return tuple(
            axis for axis, field in self.click_selects.items() if axis in ("x", "y") and field in ("query", "key")
        )


@dataclass(frozen=True)
class View:
    """A tab: a question about the model and the figures that answer it.

    Its title and description are translated on use. Only name, title and panels are required.

    Attributes:
        name: in the URL; lower-case letters, digits and underscores.
        title: on the tab.
        panels: top to bottom.
        group: of the page's tabs.
        order: tabs are sorted by it, within their group and all together.
        description: two sentences in plain words: what the view shows and how to use it.
        sentence: (trace, selection) -> what the view shows in this run, in a sentence of at most 25 words, which
            stands in the description's place where no formulas are shown; "" for the description.
        comparison_sentence: (comparison, selection) -> what differs most between two runs that are shown together, in
            a sentence before that on their next tokens; "" for none.
        formula: (trace, selection) -> the computation, with this run's own numbers in it; lines of plain text.
        generated_note: number of the run's tokens, and of the generated ones -> a line before the formula.
        code: what computes the values that it shows, see `explorer.explain.source_code.code_text`.
        code_lines: fragments of the line that computes them; the first one that the code has is marked.
        required_taps: values it draws, with * for any layer; without them the view shows `unavailable_message`.
        unavailable_message: config -> why the view has nothing to show of such a model, and what that does
            instead.
        controls: fields of the selection that get a list, in this order; then follow those of `fields`.
        fields: that the view adds to the selection.
        intervention_controls: the interventions that the view offers.
        required_any_tap: more values; one of them suffices.
        condition: trace -> whether the view has something to show, besides.
        is_comparison: whether its formula is about two runs, with a `Comparison` in the trace's place.
        single_run_message: the text of a comparing view while there is a single run.
        needs_two_prompts: whether two runs of one prompt by one model count as a single run.
        continuation_text: (trace, selection, settings of the generation panel) -> generated text; "" for none.
        direction_spec: (trace, selection) -> the direction in the stream that the view is about, where lists of
            prompts can be entered to define one.
        former_names: in saved URLs.
        in_story: whether the story shows it, too, as its first step and without what changes it.
        deeper_views: for a step of the story: names of the views that tell more of what it is about; the depth dial
            leads to the first, and from each of them back.
        requires_own_module: whether there is a tab only if the app was started with a module of the user's own.
        reads_other_files: whether it shows more than the run and the model's weights, so that it is drawn anew for
            each request.
        numbers_view_link: (trace, selection) -> for a step of the story: the link text and the change of the
            selection with which the numbers continue; a third names the switch that it opens.
    """

    name: str
    title: str
    panels: tuple[Panel, ...]
    group: Group = "own"
    order: int = 1000
    description: str = ""
    sentence: Callable[[Trace, Selection], str] | None = None
    comparison_sentence: Callable[[Comparison, Selection], str] = lambda comparison, selection: ""
    formula: Callable[[Trace, Selection], str] = lambda trace, selection: ""
    generated_note: Callable[[int, int], str] | None = None
    code: tuple[str, ...] = ()
    code_lines: tuple[str, ...] = ()
    required_taps: tuple[str, ...] = ()
    unavailable_message: Callable[[ModelConfig], str] = lambda config: _("This model lacks what the view shows.")
    controls: tuple[str, ...] = ()
    fields: tuple[SelectionField, ...] = ()
    intervention_controls: tuple[InterventionControl, ...] = ()
    required_any_tap: tuple[str, ...] = ()
    condition: Callable[[Trace], bool] = lambda trace: True
    is_comparison: bool = False
    single_run_message: str = N_("There is only one run: choose above what to compare it with.")
    needs_two_prompts: bool = False
    continuation_text: Callable[[Trace, Selection, GenerationSettings], str] | None = None
    direction_spec: Callable[[Trace, Selection], DirectionSpec] | None = None
    numbers_view_link: Callable[[Trace, Selection], NumbersLink] | None = None
    former_names: tuple[str, ...] = ()
    in_story: bool = False
    deeper_views: tuple[str, ...] = ()
    requires_own_module: bool = False
    reads_other_files: bool = False

    @property
    def select_controls(self) -> tuple[str, ...]:
        """The fields that get a list: `controls`, then the labelled ones of `fields` that are not among them."""
        own = (field.name for field in self.fields if field.label)
        return tuple(dict.fromkeys((*self.controls, *own)))

    def is_applicable(self, trace: Trace) -> bool:
        """Return whether the run has all that the view shows."""
        return not self.missing_taps(trace) and self.condition(trace)

    def missing_taps(self, trace: Trace) -> tuple[str, ...]:
        """Return the required taps that were not captured."""
        has_one = not self.required_any_tap or any(trace.has_tap(name) for name in self.required_any_tap)
        return (
            *(name for name in self.required_taps if not trace.has_tap(name)),
            *(() if has_one else self.required_any_tap),
        )

    def unavailable_reason(self, trace: Trace) -> str:
        """Explain why the view does not apply to a run.

        For a module of another build: name the values that were not captured from it.
        """
        if trace.has_weights:
            return self.unavailable_message(trace.config)
        names = join_names(self.missing_taps(trace)) or _("every stage of the stream")
        return _("This needs what was not taken from the module: {names}.", names=names)
