"""Figures of two runs in every panel: on one scale, and as differences."""

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose

from explorer.analysis.logit_lens import token_probabilities
from explorer.explain.notation import format_contribution, quote_token
from explorer.state.selection import Selection
from explorer.tracing.capture import capture
from explorer.tracing.comparison import Comparison
from explorer.tracing.trace import Trace
from explorer.views.attention import attention_difference_sentence
from explorer.views.labels import target_and_contrast, target_token
from explorer.views.overview.map_parts import ModelMap
from explorer.views.overview.whole_model import WholeModelFigure
from explorer.views.two_run_figures import (
    FigurePlaceholder,
    NoDifferenceError,
    draw_two_runs,
    head_table_difference,
    likeliest_tokens_sentence,
    replaced_word_sentence,
    selection_in_other_run,
    unaligned_tokens_note,
    value_axes,
)
from explorer.views.view import HeadHeatmaps, HeadTable, HeadTableColumn
from tests.panels import PANELS, shows
from tests.sample_models import CORE, STYLES, models, tokenizer
from tests.subtest_loops import subtest_each, subtest_groups

TEXTS = {
    "same": "the fox and the owl and the moon",
    "length": "the owl and the fox saw the moon",
    "edited": "the fox, who asked the owl, and the moon",
}


@cache
def run(style: str, kind: str) -> Trace:
    ids = tokenizer().encode(TEXTS[kind])
    if kind == "length":
        ids = [*ids, *ids][: len(tokenizer().encode(TEXTS["same"]))]
    return capture(models()[style], tuple(ids), tokenizer=tokenizer())


@cache
def make_comparison(style: str, kind: str) -> Comparison:
    comparison = Comparison.from_traces(run(style, "same"), run(style, kind))
    assert comparison.alignment.kind == kind
    return comparison


def draw_args(comparison: Comparison) -> tuple[tuple[Trace, Selection], tuple[Trace, Selection]]:
    selection = Selection(layer=1, head=2, query=9, key=3, dim=5, neuron=7, residual_depth=1).clamp_to_trace(
        comparison.trace
    )
    return (comparison.trace, selection), (comparison.other, selection_in_other_run(comparison, selection))


def draw_pair(name: str, style: str, kind: str, run_choice: str):
    comparison = make_comparison(style, kind)
    return draw_two_runs(PANELS[name][1], *draw_args(comparison), comparison, run_choice)


def each_pair() -> Callable:
    """Run a test with each panel and pair of runs (name, style, kind); exhaustive: each kind, with another style."""
    core, others = [], {style: [] for style in STYLES}
    for number, (name, (_view, panel)) in enumerate(PANELS.items()):
        styles = [style for style in STYLES if not panel.compared_run and shows(name, run(style, "same"))]
        if "rope" in styles:
            core.append({"name": name, "style": "rope", "kind": "edited"})
        for nth, kind in enumerate(TEXTS if styles else ()):
            style = styles[(number + nth) % len(styles)]
            case = {"name": name, "style": style, "kind": kind}
            if case not in core:
                others[style].append(case)
    return subtest_groups({"rope": core}, others)


def value_array(plot_trace: dict) -> tuple[str, np.ndarray]:
    """Return the key of a plotted trace's values, and the values: bars, lines or cells."""
    letter = "z" if plot_trace["type"] == "heatmap" else "x" if plot_trace.get("orientation") == "h" else "y"
    return letter, np.asarray(plot_trace[letter], float)


def cells(figure, comparison: Comparison, is_other: bool) -> list[dict[tuple, float]]:
    """Return the values of every set of bars, lines or cells by their coordinates.

    A token is identified by its position in A (None for B's unaligned tokens), all else by its tick label.
    """
    traces, layout = figure.traces_and_layout
    cell_values = []
    for plot_trace in traces:
        letter, values = value_array(plot_trace)
        coordinates = []
        for axis, along in enumerate({"z": "yx", "y": "x", "x": "y"}[letter]):
            settings = layout.get(f"{along}axis{plot_trace.get(f'{along}axis', along)[1:]}", {})
            tick_texts = dict(zip(settings.get("tickvals", ()), settings.get("ticktext", ()), strict=False))
            ticks = list(plot_trace.get(along, range(values.shape[axis])))
            if along in layout["meta"]["of_tokens"]:
                names = [str(tick).split()[0] for tick in ticks]
                positions = [int(name) if name.isdigit() else tick for name, tick in zip(names, ticks, strict=True)]
                aligned = dict(enumerate(comparison.alignment.inverse)) if is_other else {}
                coordinates.append([aligned.get(i, i) for i in positions])  # other ticks stay as they are
            else:
                all_labelled = all(tick in tick_texts for tick in ticks)
                coordinates.append([tick_texts[tick] if all_labelled else tick for tick in ticks])
        cell_values.append({})
        for index in np.ndindex(values.shape):
            cell_values[-1][tuple(tick[i] for tick, i in zip(coordinates, index, strict=True))] = float(values[index])
    return cell_values


@each_pair()
def test_difference_equals_separate_figures(name, style, kind):
    """Cell by cell, in the order of the first figure; NaN where the second run has no such cell."""
    comparison, panel = make_comparison(style, kind), PANELS[name][1]
    difference = draw_pair(name, style, kind, "difference")
    runs = panel.select_for_difference(comparison, *draw_args(comparison))
    first, second = (panel.draw(*args) for args in runs)
    if isinstance(difference, FigurePlaceholder):
        assert difference.message
        return check_placeholder(panel, first, second)
    if isinstance(first, HeadHeatmaps):
        partners = comparison.alignment.partners
        values_a, values_b, difference_values = (np.asarray(figure.values) for figure in (first, second, difference))
        for query, partner in enumerate(partners):
            for key, partner_key in enumerate(partners):
                both_aligned = None not in (partner, partner_key)
                expected = values_a[..., query, key] - values_b[..., partner, partner_key] if both_aligned else 0.0
                assert_allclose(difference_values[..., query, key], expected, atol=1e-6)
        return None
    if isinstance(first, HeadTable):
        for a, b, column in zip(first.columns, second.columns, difference.columns, strict=True):
            assert_allclose(column.values, a.values - b.values, atol=1e-12)
            assert column.label == a.label == b.label and column.signed
            assert np.nanmax(np.abs(column.values), initial=0) <= column.limit
        return None
    if isinstance(first, ModelMap):
        for a, b, difference_part in zip(first.parts, second.parts, difference.parts, strict=False):
            if difference_part.kind == "next_token":
                assert difference_part.value is None
            elif a.value is not None:
                assert difference_part.value == pytest.approx(a.value - b.value, abs=1e-6)
                assert a.hover_text in difference_part.hover_text and b.hover_text in difference_part.hover_text
        return None
    values_a, values_b, differences = (
        cells(figure, comparison, is_other)
        for figure, is_other in ((first, False), (second, True), (difference, False))
    )
    compared = 0
    for cells_a, cells_b, difference_cells in zip(values_a, values_b, differences, strict=True):
        assert list(cells_a) == list(difference_cells)
        for cell, value in cells_a.items():
            expected = value - cells_b.get(cell, np.nan) if None not in cell else np.nan
            assert_allclose(difference_cells[cell], expected, atol=1e-6, rtol=1e-5, equal_nan=True)
            compared += not np.isnan(expected)
    assert compared
    return None


def check_placeholder(panel, first, second):
    """Check that a placeholder has a reason: the panel's own, or figures without common cells."""
    if panel.no_difference_reason:
        return
    traces = [figure.traces_and_layout[0] for figure in (first, second)]
    if str(traces[0]) == str(traces[1]):  # both models belong to one training run
        return
    kinds = [[plot_trace["type"] for plot_trace in one_run] for one_run in traces]
    assert kinds[0] != kinds[1] or panel.name in ("vector", "outliers", "scales", "shares", "pairs")


@each_pair()
def test_both_runs_share_one_scale(name, style, kind):
    comparison = make_comparison(style, kind)
    first, second = (draw_pair(name, style, kind, run_choice) for run_choice in "ab")
    separate = [PANELS[name][1].draw(*args) for args in draw_args(comparison)]
    if isinstance(first, ModelMap):
        assert first.largest == second.largest == max(args.largest for args in separate)
        return
    if isinstance(first, WholeModelFigure):
        for name in ("largest_norm", "largest_effect"):
            ends = [getattr(figure, name) for figure in (first, second)]
            assert ends == 2 * [max(getattr(figure, name) for figure in separate)]
        return
    if isinstance(first, HeadHeatmaps):
        assert not first.signed and not second.signed
        return
    if isinstance(first, HeadTable):
        limits = [[column.limit for column in table.columns] for table in (first, second, *separate)]
        assert limits[0] == limits[1] == np.maximum(*limits[2:]).tolist()
        return
    traces = [figure.traces_and_layout[0] for figure in (first, second, *separate)]
    for trace_a, trace_b, *pair in zip(*traces, strict=False):
        if trace_a["type"] == trace_b["type"] == "heatmap" and "zmin" in trace_a:
            ends = min(part["zmin"] for part in pair), max(part["zmax"] for part in pair)
            assert (trace_a["zmin"], trace_a["zmax"]) == (trace_b["zmin"], trace_b["zmax"]) == ends
    for figure, plain in ((first, separate[0]), (second, separate[1])):  # and nothing else differs
        assert [value_array(part)[1].tobytes() for part in figure.traces_and_layout[0]] == [
            value_array(part)[1].tobytes() for part in plain.traces_and_layout[0]
        ]
        for axis in ("xaxis", "yaxis"):
            settings, before = figure.traces_and_layout[1].get(axis, {}), plain.traces_and_layout[1].get(axis, {})
            other = {name for name in settings if str(settings[name]) != str(before.get(name))}
            assert other <= {"range", "autorangeoptions"}
    axes = [
        {name: axis.get("range") for name, axis in figure.traces_and_layout[1].items() if name in value_axes(figures)}
        for figure, figures in ((first, traces[0]), (second, traces[1]))
    ]
    assert all(axes[0][name] == axes[1][name] for name in axes[0].keys() & axes[1].keys())
    if name == "prediction-path" and all(part["type"] == "scatter" for part in traces[0]):  # probabilities
        check_shared_logarithms((first, second), [*traces[2], *traces[3]])


def check_shared_logarithms(figures, plot_traces):
    lows, highs = zip(*(figure.traces_and_layout[1]["yaxis"]["range"] for figure in figures), strict=True)
    heights = np.log10(np.concatenate([np.ravel(part["y"]) for part in plot_traces]).astype(float))
    assert len(set(lows)) == len(set(highs)) == 1
    assert lows[0] < heights.min() and heights.max() < highs[0]


@subtest_each("style", CORE)
def test_equal_runs_have_no_difference(style):
    comparison = Comparison.from_traces(run(style, "same"), run(style, "same"))
    for name, (_view, panel) in PANELS.items():
        if panel.compared_run or not shows(name, comparison.trace) or panel.no_difference_reason:
            continue
        difference = draw_two_runs(panel, *draw_args(comparison), comparison, "difference")
        if isinstance(difference, HeadHeatmaps):
            assert not np.asarray(difference.values).any()
        elif isinstance(difference, HeadTable):
            assert not any(np.nan_to_num(column.values).any() for column in difference.columns)
        elif isinstance(difference, ModelMap):
            assert not any(part.value for part in difference.parts)
        elif isinstance(difference, FigurePlaceholder):
            assert name in ("training-loss", "training-text", "training-copying")
        else:
            assert all(not np.nan_to_num(value_array(part)[1]).any() for part in difference.traces_and_layout[0]), name


def test_both_runs_explain_same_token():
    comparison = make_comparison("rope", "edited")
    for target in (1, 4, 30):
        selection = Selection(query=6, target=target, rival=2).clamp_to_trace(comparison.trace)
        other_selection = selection_in_other_run(comparison, selection)
        assert target_and_contrast(comparison.other, other_selection) == target_and_contrast(
            comparison.trace, selection
        )
        assert other_selection.query == comparison.alignment.partners[6]


def test_tables_of_different_shape_have_no_difference():
    first, second = (
        HeadTable((HeadTableColumn("score", "A score", np.zeros(shape)),), "") for shape in ((2, 4), (3, 4))
    )
    with pytest.raises(NoDifferenceError):
        head_table_difference(first, second, make_comparison("rope", "edited"), "")


def test_figure_of_one_model_only_has_a_message():
    comparison = Comparison.from_traces(run("rope", "same"), run("gpt", "same"))
    panel = PANELS["positions-angles"][1]
    (first, _there), message = draw_args(comparison), "nothing of the kind"
    assert message in draw_two_runs(panel, first, None, comparison, "b").message
    assert message in draw_two_runs(panel, first, None, comparison, "difference").message
    assert not isinstance(draw_two_runs(panel, first, None, comparison, "a"), FigurePlaceholder)
    assert draw_two_runs(panel, None, None, comparison, "a") is None


def test_unaligned_tokens_are_counted():
    edited = make_comparison("rope", "edited")
    partners = edited.alignment.partners
    note = unaligned_tokens_note(edited)
    assert f"{len(partners) - partners.count(None)} of {len(partners)} in A" in note
    assert unaligned_tokens_note(make_comparison("rope", "same")) == ""


def test_lens_difference_has_tokens_of_both_runs():
    first, second = (draw_pair("prediction-lens", "rope", "edited", run_choice).data[0] for run_choice in "ab")
    difference_of_both = draw_pair("prediction-lens", "rope", "edited", "difference")
    difference = difference_of_both.data[0]
    partners = make_comparison("rope", "edited").alignment.partners
    num_different = 0
    for column, partner in enumerate(partners):
        for row, text in enumerate(difference.text):
            pair = [] if partner is None else [first.text[row][column], second.text[row][partner]]
            assert text[column] == "<br>".join(dict.fromkeys(pair))
            num_different += len(set(pair)) == 2
    assert num_different
    assert any("<br>" in text for text in difference_of_both.layout["xaxis"]["ticktext"])


def test_lens_difference_falls_back_to_target_token():
    comparison, panel = make_comparison("rope", "edited"), PANELS["prediction-lens"][1]
    (trace, selection), (other, _other_selection) = draw_args(comparison)
    difference = draw_pair("prediction-lens", "rope", "edited", "difference")
    of_ranks = panel.select_for_difference(comparison, *[(t, s.replace(lens="rank")) for t, s in draw_args(comparison)])
    assert {selection.option("lens") for _trace, selection in of_ranks} == {"target"}  # ranks have none
    heatmap, token_id = difference.data[0], target_token(trace, selection)
    assert heatmap.colorbar.title.text == "probability (explained), A − B"
    assert difference.layout.xaxis.title.text.endswith("colour: the explained token’s probability")
    position, partner = next(pair for pair in enumerate(comparison.alignment.partners) if pair[1] is not None)
    probability_a, probability_b = (
        token_probabilities(run_trace, range(at, at + 1), token_id)[-1, 0]
        for run_trace, at in ((trace, position), (other, partner))
    )
    assert heatmap.z[-1][position] == pytest.approx(probability_a - probability_b, abs=1e-6)
    parts = draw_pair("prediction-parts", "rope", "edited", "difference")
    assert [format_contribution(number) for number in parts.data[0].y] == list(parts.data[0].text)
    logit_a, logit_b = (
        run_trace["logits"][run.query][target_token(run_trace, run)] for run_trace, run in draw_args(comparison)
    )
    whole = parts.layout.annotations[0].text.rpartition("<br>")[2]
    assert whole == f"of the whole logit: {format_contribution(logit_a - logit_b)}"
    assert "attention" in parts.layout.annotations[0].text  # the legend of the colours
    same = make_comparison("rope", "same")
    assert panel.select_for_difference(same, *draw_args(same)) == draw_args(same)  # the likeliest are the same


def test_the_likeliest_token_of_each_run_and_the_one_replaced_word_are_told():
    comparison = make_comparison("rope", "edited")
    sentence = likeliest_tokens_sentence(comparison, Selection(query=8))
    for run_of_two, position in ((comparison.trace, 8), (comparison.other, comparison.alignment.nearest_aligned(8))):
        assert quote_token(run_of_two.vocabulary[run_of_two["logits"][position].argmax()]) in sentence
    fox, owl, moon = (tokenizer().encode(f" {word}")[0] for word in ("fox", "owl", "moon"))
    texts = [
        capture(models()["rope"], (moon, *ids), tokenizer=tokenizer()) for ids in ((fox, fox), (owl, owl), (owl, fox))
    ]
    words = [quote_token(texts[i].tokens[1]) for i in (0, 1)]
    for other in texts[1:]:
        sentence = replaced_word_sentence(Comparison.from_traces(texts[0], other))
        assert sentence == f"B has {words[1]} where A has {words[0]}."
    assert not replaced_word_sentence(comparison) and not replaced_word_sentence(make_comparison("rope", "length"))


@subtest_each("kind", ["edited", "length"])
def test_sentence_names_largest_attention_difference(kind):
    of_both, signs = make_comparison("rope", kind), set()
    swapped = Comparison.from_traces(of_both.other, of_both.trace)
    heads = np.ndindex(2, 2, of_both.trace["blocks.0.attn.pattern"].shape[0])
    for is_swapped, layer, head in heads:
        comparison = swapped if is_swapped else of_both
        name, partners = f"blocks.{layer}.attn.pattern", comparison.alignment.partners
        a, b = (trace[name][head] for trace in comparison.runs)
        difference, query, key = max(
            (
                (a[i, j] - b[partners[i], partners[j]], i, j)
                for i, j in np.ndindex(a.shape)
                if partners[i] is not None and partners[j] is not None
            ),
            key=lambda cell: abs(cell[0]),
        )
        tokens, tokens_b = (trace.tokens for trace in comparison.runs)
        pairs = [(tokens[i], tokens_b[partners[i]]) for i in (query, key)]
        suffixes = [f" ({i})" * (tokens.count(tokens[i]) > 1) for i in (query, key)]  # of repeated tokens
        both = [
            quote_token(a) + suffix + f" (in B {quote_token(b)})" * (a != b)
            for (a, b), suffix in zip(pairs, suffixes, strict=True)
        ]
        more = f"the weight is {abs(difference):.2f} larger in {'A' if difference > 0 else 'B'}"
        sentence = attention_difference_sentence(comparison, Selection(layer=layer, head=head))
        assert sentence == f"Layer {layer} head {head} differs most where {both[0]} looks at {both[1]}: {more}."
        signs.add(difference > 0)
    assert signs == {True, False}
    same = make_comparison("rope", "same")
    assert "the same weights" in attention_difference_sentence(same, Selection(layer=1, head=1))
