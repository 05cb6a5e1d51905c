"""Figures of two runs: on one scale, and their difference A − B."""

import itertools
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from explorer.analysis.next_token import next_token_distribution, ranking_without_interventions
from explorer.explain.notation import format_contribution, format_number, format_percent, quote_token
from explorer.state.selection import Selection
from explorer.tracing.comparison import Comparison, take_or_nan
from explorer.tracing.jobs import Job
from explorer.tracing.trace import LazyLayerStack, Trace
from explorer.translations import N_, _, translate
from explorer.views import graph_objects as go
from explorer.views.labels import difference_title, target_and_contrast
from explorer.views.style import TOKEN_AXIS_KEY, annotate_empty, label
from explorer.views.view import HeadHeatmaps, HeadTable, Panel, TwoRunRenderer


def share_scale(figure: go.Figure, other: go.Figure) -> go.Figure:
    """Return the figure with the colour and value ranges of both runs.

    An axis whose type differs keeps its own range.
    """
    traces, layout = figure.traces_and_layout
    others, other_layout = other.traces_and_layout
    trace_pairs = zip(traces, others, strict=False)
    scaled = [_share_colour_range(trace_a, trace_b) for trace_a, trace_b in trace_pairs] + traces[len(others) :]
    for axis in value_axes(traces) & value_axes(others):
        layout = layout | {axis: _share_axis_range(axis, (traces, others), layout, other_layout)}
    return figure.with_traces_and_layout(scaled, layout)


def value_axes(traces: list[go.Trace]) -> set[str]:
    """Return the layout names of the axes along which bars and lines have their values."""
    return {axis_name(plot_trace, value_key(plot_trace)) for plot_trace in traces if value_key(plot_trace) != "z"}


def axis_name(trace: go.Trace, letter: str) -> str:
    """Return the layout name of an array's axis: "yaxis2" for "y" of a trace on "y2"."""
    return f"{letter}axis{trace.get(f'{letter}axis', letter)[1:]}"


def value_key(trace: go.Trace) -> str:
    """Return the key of the array with a trace's values: "x", "y" or "z"."""
    if trace["type"] == "heatmap":
        return "z"
    return "x" if trace.get("orientation") == "h" else "y"


def _share_colour_range(trace_a: go.Trace, trace_b: go.Trace) -> go.Trace:
    if trace_a["type"] != "heatmap" or trace_b["type"] != "heatmap" or "zmin" not in trace_a or "zmin" not in trace_b:
        return trace_a
    return trace_a | {"zmin": min(trace_a["zmin"], trace_b["zmin"]), "zmax": max(trace_a["zmax"], trace_b["zmax"])}


def _share_axis_range(
    axis: str,
    traces_of_runs: tuple[Sequence[go.Trace], Sequence[go.Trace]],
    layout: Mapping[str, Any],
    other_layout: Mapping[str, Any],
) -> Mapping[str, Any]:
    axis_a, axis_b = layout.get(axis, {}), other_layout.get(axis, {})
    if axis_a.get("type") != axis_b.get("type"):
        return axis_a
    if "range" in axis_a and "range" in axis_b:
        (first, last), ends = axis_a["range"], sorted([*axis_a["range"], *axis_b["range"]])
        return {**axis_a, "range": [ends[0], ends[-1]] if first <= last else [ends[-1], ends[0]]}
    axes = _matched_axes(axis, layout)
    own, finite = (np.concatenate([_axis_values(name, plot_traces) for name in axes]) for plot_traces in traces_of_runs)
    if "range" in axis_a or not finite.size or axis_a.get("type") == "category":
        return axis_a
    if axis_a.get("type") == "log":  # where Plotly includes no value that it is told to
        positive = np.concatenate([own, finite])
        first, last = np.log10([positive[positive > 0].min(), positive.max()])
        margin = AXIS_MARGIN * (last - first or 1)
        return {**axis_a, "range": [float(first - margin), float(last + margin)]}
    are_bars = any(one["type"] == "bar" for one in traces_of_runs[0])
    starts_at_zero = are_bars or axis_a.get("rangemode") == "tozero"
    ends = np.concatenate([own, finite, [0.0] * starts_at_zero])
    first, last = float(ends.min()), float(ends.max())
    if any("base" in one for one in traces_of_runs[0]) or axis_a.get("autorange") == "reversed":
        return {**axis_a, "autorangeoptions": {"include": [first, last]}}
    has_labels = any(one.get("textposition") == "outside" for one in traces_of_runs[0])
    margin = (LABEL_MARGIN if has_labels else AXIS_MARGIN) * (last - first or 1)
    # Plotly's own range would have a margin that depends on the run.
    ends = ((first, -1), (last, 1))
    return {**axis_a, "range": [end + side * margin if end or not starts_at_zero else 0.0 for end, side in ends]}


LABEL_MARGIN = 0.18  # at both ends of a shared axis of bars with labels beyond their ends, as a share of it
AXIS_MARGIN = 0.06  # at both ends of another shared axis


def _matched_axes(axis: str, layout: Mapping[str, Any]) -> list[str]:
    """Return the layout names of the axes that have one range with an axis, itself included."""

    def first_id(name: str) -> str:
        return layout.get(name, {}).get("matches", name.replace("axis", ""))

    return [
        axis,
        *(name for name in layout if name[1:5] == "axis" and name != axis and first_id(name) == first_id(axis)),
    ]


def _axis_values(axis: str, traces: Sequence[go.Trace]) -> np.ndarray:
    """Return the finite values that bars and lines have along an axis."""
    axis_traces = [one for one in traces if axis_name(one, axis[0]) == axis and value_key(one) == axis[0]]
    values = [np.ravel(np.asarray(one[axis[0]], float)) for one in axis_traces]
    return np.concatenate([array[np.isfinite(array)] for array in values]) if values else np.array([])


MAX_CELL_TEXTS = 400  # differences that are written into cells
VALUE_SETTINGS = (
    "range",
    "autorangeoptions",
    "type",
    "dtick",
    "tickvals",
    "ticktext",
    "tickformat",
    "exponentformat",
)


class NoDifferenceError(Exception):
    """Two figures have no difference; the message says why, in a sentence."""


def subtract_figures(
    first: go.Figure, second: go.Figure, comparison: Comparison, title: str, between_tokens: str = " / "
) -> go.Figure:
    """Return the figure of A − B: each value of A less B's at the same place; blank where B has none.

    Places correspond if their tokens are aligned or, on other axes, if their labels are equal.

    Args:
        title: of the panel.
        between_tokens: what stands on a token axis between A's token and another one of B.

    Raises:
        NoDifferenceError: the figures have no values at corresponding places.
    """
    traces, layout = first.traces_and_layout
    others, other_layout = second.traces_and_layout
    if [plot_trace["type"] for plot_trace in traces] != [plot_trace["type"] for plot_trace in others]:
        raise NoDifferenceError(_("A and B are drawn in different ways here: look at them in turn."))
    if not comparison.has_aligned_tokens and layout["meta"][TOKEN_AXIS_KEY]:
        raise NoDifferenceError(
            _("No token of B is aligned with one of A. View them one at a time, or align two tokens.")
        )
    differences = [
        _subtract_trace(trace_a, trace_b, layout, other_layout, comparison)
        for trace_a, trace_b in zip(traces, others, strict=True)
    ]
    values = np.concatenate(
        [np.ravel(np.asarray(plot_trace[value_key(plot_trace)], float)) for plot_trace in differences]
    )
    finite = np.abs(values[np.isfinite(values)])
    if not finite.size:
        raise NoDifferenceError(_("A and B have nothing in common here. View them one at a time."))
    largest = float(finite.max())
    alt = _("{title}. The largest difference is {most}.", title=difference_title(title), most=format_number(largest))
    if not largest:
        alt = _("{title}. There is no difference.", title=difference_title(title))
    figure = first.with_traces_and_layout(
        [_use_signed_scale(plot_trace, largest) for plot_trace in differences],
        _difference_layout(differences, _name_tokens_of_both(layout, comparison, between_tokens), alt),
    )
    if not largest:
        annotate_empty(figure, _("A and B are the same here."))
    return figure


def _subtract_trace(
    trace_a: go.Trace, trace_b: go.Trace, layout: Mapping, other_layout: Mapping, comparison: Comparison
) -> go.Trace:
    letter = value_key(trace_a)
    values_a, values_b = (np.asarray(plot_trace[letter], float) for plot_trace in (trace_a, trace_b))
    for axis, axis_letter in enumerate({"z": "yx", "y": "x", "x": "y"}[letter]):
        keys_a = _axis_keys(trace_a, axis_letter, layout, values_a.shape[axis])
        keys_b = _axis_keys(trace_b, axis_letter, other_layout, values_b.shape[axis])
        if axis_letter in layout["meta"][TOKEN_AXIS_KEY]:
            inverse = comparison.alignment.inverse
            aligned = dict(enumerate(inverse))
            keys_b = [key if isinstance(key, str) else aligned.get(key) for key in keys_b]  # text: no token
        values_b = take_or_nan(values_b, _match_indices(keys_a, keys_b), axis)
    return trace_a | {letter: values_a - values_b}


def _axis_keys(trace: go.Trace, letter: str, layout: Mapping[str, Any], count: int) -> list[Hashable]:
    """Return the key of each coordinate of an axis: token positions, or else tick labels, or else numbers."""
    axis = layout.get(axis_name(trace, letter), {})
    coordinates = trace.get(letter, range(count))
    values = coordinates.tolist() if isinstance(coordinates, np.ndarray) else list(coordinates)
    if letter in layout["meta"][TOKEN_AXIS_KEY]:
        order = {category: i for i, category in enumerate(axis.get("categoryarray", ()))}
        return [order.get(value, value) for value in values]
    ticks = [value.item() if isinstance(value, np.generic) else value for value in axis.get("tickvals", ())]
    names = dict(zip(ticks, axis.get("ticktext", ()), strict=False))
    return [names.get(value, value) for value in values] if set(values) <= set(names) else values


def _match_indices(keys_a: Sequence[Hashable], keys_b: Sequence[Hashable]) -> Sequence[int | None]:
    """Return the index of each of A's keys among B's, None for those that B does not have.

    Raises:
        NoDifferenceError: a key occurs more than once.
    """
    if list(keys_a) == list(keys_b):
        return range(len(keys_a))
    known_keys = [axis_key for axis_key in keys_b if axis_key is not None]
    if len(set(known_keys)) < len(known_keys) or len(set(keys_a)) < len(keys_a):
        raise NoDifferenceError(_("A and B are drawn in different ways here: look at them in turn."))
    index_by_key = {axis_key: i for i, axis_key in enumerate(keys_b) if axis_key is not None}
    return [index_by_key.get(axis_key) for axis_key in keys_a]


def _use_signed_scale(trace: go.Trace, largest: float) -> go.Trace:
    """Return the trace with a scale of signed values and hover texts of differences."""
    letter = value_key(trace)
    values = trace[letter]
    location = "%{hovertext}" if "hovertext" in trace and trace["type"] != "heatmap" else "%{x}"
    location = "%{x} · %{y}" if letter == "z" else location if letter == "y" else "%{y}"
    new = {
        "hovertemplate": f"{location}<br>A − B %{{{letter}:+.3g}}<extra></extra>",
        "texttemplate": None,
        "text": None,
    }
    if letter == "z":
        bar = trace.get("colorbar", {})
        bar = {**bar, "title": {"text": difference_label(bar.get("title")), "side": "right"}}
        new |= {
            "zmin": -(largest or 1),
            "zmax": largest or 1,
            "autocolorscale": True,
            "colorbar": bar,
            "showscale": True,
        }
        new |= {"hoverongaps": False}
    if trace.get("texttemplate") and values.size <= MAX_CELL_TEXTS:
        new |= {
            "text": [["" if np.isnan(v) else format_contribution(v) for v in row] for row in values],
            "texttemplate": "%{text}",
        }
    if trace["type"] == "bar" and trace.get("text") is not None:
        new["text"] = ["" if np.isnan(v) else format_contribution(v) for v in values]
    return trace | new


def difference_label(title: Mapping[str, Any] | None) -> str:
    """Return the title of an axis or a scale of differences: with the name of what is subtracted, if it has one."""
    quantity = (title or {}).get("text", "").partition("<br>")[0]
    return _("{quantity}, A − B", quantity=quantity) if quantity else "A − B"


def _difference_layout(traces: Sequence[go.Trace], layout: Mapping[str, Any], alt: str) -> dict[str, Any]:
    """Return the layout for differences, without settings that only hold for values, such as marks at some of them."""
    meta = {name: value for name, value in layout["meta"].items() if name != "numbers"}  # those are A's
    notes = [{**note, "text": note["text"].partition("<br>")[0]} for note in layout.get("annotations", ())]
    legend = [note for note in notes if "■" in note["text"]]
    new = {**layout, "meta": {**meta, "alt": alt}, "annotations": legend}
    for axis in {axis_name(plot_trace, value_key(plot_trace)) for plot_trace in traces if value_key(plot_trace) != "z"}:
        settings = {name: value for name, value in layout.get(axis, {}).items() if name not in VALUE_SETTINGS}
        new[axis] = {**settings, "title": {"text": difference_label(layout.get(axis, {}).get("title"))}}
        letter = axis[0]
        new["shapes"] = [shape for shape in new.get("shapes", ()) if _spans_axis(shape, letter)]
    return new


def _name_tokens_of_both(layout: Mapping[str, Any], comparison: Comparison, separator: str) -> dict[str, Any]:
    """Return the layout with both tokens at each place of a token axis where B has another one."""
    new, (a, b) = dict(layout), (trace.tokens for trace in comparison.runs)

    def name(position: int, text: str) -> str:
        partner = comparison.alignment.partners[position]
        return text if partner is None or a[position] == b[partner] else f"{text}{separator}{label(b[partner])}"

    for name_of_axis, axis in layout.items():
        if name_of_axis[0] in layout["meta"][TOKEN_AXIS_KEY] and name_of_axis[1:5] == "axis" and "ticktext" in axis:
            order = {category: i for i, category in enumerate(axis.get("categoryarray", ()))}
            ticks = zip(axis["tickvals"], axis["ticktext"], strict=True)
            new[name_of_axis] = {**axis, "ticktext": [name(order.get(value, value), text) for value, text in ticks]}
    return new


def _spans_axis(shape: Mapping[str, Any], letter: str) -> bool:
    """Return whether a shape spans the whole axis of values, and so marks none of them."""
    return shape.get(f"{letter}ref", letter) != letter


def small_multiples_difference(
    first: HeadHeatmaps, second: HeadHeatmaps, comparison: Comparison, title: str
) -> HeadHeatmaps:
    """Return A − B, head by head, at aligned tokens; 0 at others.

    Raises:
        NoDifferenceError: the models have different heads, or no tokens are aligned.
    """
    if first.values.shape[:2] != second.values.shape[:2]:
        raise NoDifferenceError(_("A and B have different numbers of layers or heads. View them one at a time."))
    if not comparison.has_aligned_tokens:
        raise NoDifferenceError(
            _("No token of B is aligned with one of A. View them one at a time, or align two tokens.")
        )

    def layer_difference(layer: int) -> np.ndarray:
        values_b = comparison.take_aligned(comparison.take_aligned(second.values[layer], -2), -1)
        return np.nan_to_num(first.values[layer] - values_b)

    values = LazyLayerStack(len(first.values), layer_difference, first.values.shape[1:])
    largest = max(np.abs(layer).max() for layer in values)
    alt = _("{title}. The largest difference is {most:.2f}.", title=difference_title(title), most=largest)
    return HeadHeatmaps(values, alt, signed=True)


def share_table_limits(table: HeadTable, other: HeadTable) -> HeadTable:
    """Return the table with the bar limits of both runs, column by column."""
    pairs = itertools.zip_longest(table.columns, other.columns[: len(table.columns)])
    return replace(
        table, columns=tuple(replace(a, limit=max(a.limit, b.limit)) if b is not None else a for a, b in pairs)
    )


def head_table_difference(first: HeadTable, second: HeadTable, comparison: Comparison, title: str) -> HeadTable:
    """Return A − B, head by head and column by column.

    Raises:
        NoDifferenceError: the models have different heads, or one has a column that the other lacks.
    """
    if first.columns[0].values.shape != second.columns[0].values.shape:
        raise NoDifferenceError(_("A and B have different numbers of layers or heads. View them one at a time."))
    if len(first.columns) != len(second.columns):
        raise NoDifferenceError(_("A and B are drawn in different ways here: look at them in turn."))
    columns = []
    for a, b in zip(first.columns, second.columns, strict=True):
        values = a.values - b.values
        limit = float(np.abs(values[np.isfinite(values)]).max(initial=0.0)) or 1.0
        columns.append(replace(a, values=values, limit=limit, signed=True))
    alt = _("{title}. Each column has a scale of its own.", title=difference_title(title))
    return HeadTable(tuple(columns), alt)


RunAndSelection = tuple[Trace, Selection]  # a run and its selection
FIGURES = TwoRunRenderer(share_scale, subtract_figures)
GRIDS = TwoRunRenderer(lambda figure, other: figure, small_multiples_difference)  # their colour scale is fixed
TABLES = TwoRunRenderer(share_table_limits, head_table_difference)


@dataclass(frozen=True)
class FigurePlaceholder:
    """A sentence in place of a figure.

    Attributes:
        message: why there is no figure.
        job: the job that it waits for; None if there will be no figure.
    """

    message: str
    job: Job | None = None


def draw_two_runs(
    panel: Panel,
    first: RunAndSelection | None,
    second: RunAndSelection | None,
    comparison: Comparison,
    visible_run: str,
) -> Any:
    """Draw a panel for the first run ("a"), for the second ("b"), or their "difference".

    Both runs' figures have one scale. A Placeholder says why there is none; None if neither run has one.

    Args:
        first, second: None for a run that the panel does not apply to.
    """
    if first is None and second is None:
        return None
    if (second if visible_run == "b" else first) is None or (visible_run == "difference" and second is None):
        return FigurePlaceholder(_("B has nothing of the kind.") if second is None else _("A has nothing of the kind."))
    if visible_run == "difference" and panel.no_difference_reason:
        return FigurePlaceholder(translate(panel.no_difference_reason))
    if visible_run == "difference":
        first, second = panel.select_for_difference(comparison, first, second)
    figures = [run_selection and panel.draw(*run_selection) for run_selection in (first, second)]
    kinds = {type(panel_figure) for panel_figure in figures}
    default = GRIDS if HeadHeatmaps in kinds else TABLES if HeadTable in kinds else FIGURES
    renderer = panel.two_run_renderer or default
    if visible_run == "difference":
        try:
            return renderer.difference(*figures, comparison, translate(panel.title))
        except NoDifferenceError as incomparable:
            return FigurePlaceholder(str(incomparable))
    figure, other = reversed(figures) if visible_run == "b" else figures
    return figure if other is None else renderer.share_scale(figure, other)


def selection_in_other_run(comparison: Comparison, selection: Selection) -> Selection:
    """Return the corresponding selection in the other run.

    Positions are the aligned ones, or the nearest before them. Target and contrast are the tokens of the same
    text, at their ranks there. All else is kept, or clamped to what the other run has.
    """
    alignment, other = comparison.alignment, comparison.other
    query, key = (alignment.nearest_aligned(position) for position in (selection.query, selection.key))
    other_selection = replace(selection, query=query, key=key).clamp_to_trace(other)
    target_id, contrast_id = target_and_contrast(comparison.trace, selection)
    ranks = {"target": token_rank_in_other_run(comparison, other_selection.query, target_id)}
    if contrast_id is not None:
        ranks["rival"] = token_rank_in_other_run(comparison, other_selection.query, contrast_id)
    return replace(other_selection, **{name: rank for name, rank in ranks.items() if rank})


def token_rank_in_other_run(comparison: Comparison, query: int, token_id: int) -> int:
    """Return the rank of a token of the first run's vocabulary among the other's next tokens, from 1.

    0 if the other vocabulary has no token of that text.
    """
    first, second = comparison.trace.vocabulary, comparison.other.vocabulary
    if first is not second and first != second:
        texts = list(second)
        if first[token_id] not in texts:
            return 0
        token_id = texts.index(first[token_id])
    return int((ranking_without_interventions(comparison.other, query) == token_id).argmax()) + 1


def likeliest_tokens_sentence(comparison: Comparison, selection: Selection) -> str:
    """Return the most probable next token of both runs: after the query, and after its aligned position in B."""
    runs = (
        (comparison.trace, selection.query),
        (comparison.other, comparison.alignment.nearest_aligned(selection.query)),
    )
    tokens = {}
    for name, (trace, position) in zip("ab", runs, strict=True):
        probabilities = next_token_distribution(trace, position).plain
        tokens[name] = quote_token(trace.vocabulary[probabilities.argmax()])
        tokens[f"share_{name}"] = format_percent(float(probabilities.max()))
    return _("Before temperature, A expects {a} next ({share_a}); B expects {b} ({share_b}).", **tokens)


def replaced_word_sentence(comparison: Comparison) -> str:
    """Return which word of A is another in B, if only that differs; otherwise ""."""
    tokens_a, tokens_b = (run.tokens for run in comparison.runs)
    replaced = {(a, b) for a, b in zip(tokens_a, tokens_b, strict=False) if a != b}
    if len(tokens_a) != len(tokens_b) or len(replaced) != 1:
        return ""
    [(word_a, word_b)] = replaced
    return _("B has {b} where A has {a}.", a=quote_token(word_a), b=quote_token(word_b))


STEPS_WARNING = N_(
    "A and B are steps of one training: the further apart they are, the less their dimensions, neurons and heads match."
)
MODELS_WARNING = N_(
    "A and B are two models: their dimensions, neurons and heads need not match. Their probabilities compare."
)


def unaligned_tokens_note(comparison: Comparison) -> str:
    """Return what is compared if tokens of A or B have no partner in the other; "" if each has one, or none has."""
    alignment = comparison.alignment
    lone = [partners.count(None) for partners in (alignment.partners, alignment.inverse)]
    if not any(lone) or not comparison.has_aligned_tokens:
        return ""
    return _(
        "Only tokens with a partner in the other text are compared: {both} of {a} in A, {both} of {b} in B.",
        both=len(alignment.partners) - lone[0],
        a=len(alignment.partners),
        b=len(alignment.inverse),
    )


def different_model_warning(comparison: Comparison) -> str:
    """Return a warning about differences number by number if A and B are of different models; "" otherwise."""
    a, b = comparison.runs
    if a.model == b.model:
        return ""
    is_same_training = a.training and b.training and a.training.model == b.training.model
    return translate(STEPS_WARNING if is_same_training else MODELS_WARNING)
