import re
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from explorer.analysis.attention import PATTERNS, attention_cell, displayed_pattern
from explorer.explain.derivation import ClickedPoint
from explorer.explain.notation import format_number, format_percent, format_six_digits, quote_token
from explorer.interventions import make_intervention, parse_interventions
from explorer.state.selection import Selection
from explorer.tracing.capture import capture
from explorer.views import attention
from explorer.views.style import position_labels
from tests.subtest_loops import each_style, subtest_each


def first_plot_trace(figure, kind: str):
    """Return the figure's first plotted trace of a kind."""
    return next(trace for trace in figure.data if trace.type == kind)


def frame_bounds(figure) -> list[tuple[float, ...]]:
    """Return (x0, x1, y0, y1) of the shapes on the cells."""
    return [(s.x0, s.x1, s.y0, s.y1) for s in figure.layout.shapes if s.xref in (None, "x")]


@each_style
def test_head_grid_shows_captured_patterns(trace):
    assert_array_equal(attention.all_head_patterns(trace).values, trace.stack("blocks.*.attn.pattern"))


@each_style
@subtest_each("layer, head", [(0, 0), (1, 2)])
def test_heatmap_shows_pattern_with_masked_gaps(trace, layer, head):
    cell_values = np.asarray(first_plot_trace(attention.pattern_heatmap(trace, layer, head), "heatmap").z, dtype=float)
    captured = trace[f"blocks.{layer}.attn.pattern"][head]
    below = np.tri(len(trace), dtype=bool)
    assert_array_equal(cell_values[below], captured[below])
    assert np.isnan(cell_values[~below]).all()


@each_style
def test_rows_are_queries_and_columns_are_keys(trace):
    figure = attention.pattern_heatmap(trace, 0, 0)
    heatmap = first_plot_trace(figure, "heatmap")
    assert list(heatmap.x) == list(heatmap.y) == position_labels(trace.tokens)
    assert figure.layout.yaxis.range == (11.5, -0.5)
    assert "key" in figure.layout.xaxis.title.text
    assert "query" in figure.layout.yaxis.title.text


def test_long_prompt_shows_window_around_chosen_cell(rope_trace):
    figure = attention.pattern_heatmap(rope_trace, 0, 0, query=10, key=2, window=4)
    assert figure.layout.yaxis.range == (11.5, 7.5)
    assert figure.layout.xaxis.range == (-0.5, 3.5)
    assert len(figure.layout.xaxis.tickvals) == 4
    whole = attention.pattern_heatmap(rope_trace, 0, 0, query=10, key=2)
    assert (
        first_plot_trace(figure, "heatmap").z.shape == first_plot_trace(whole, "heatmap").z.shape
    )  # the rest can be scrolled to


@each_style
def test_patterns_share_one_colour_scale(trace):
    heatmap = first_plot_trace(attention.pattern_heatmap(trace, 1, 1), "heatmap")
    assert (heatmap.zmin, heatmap.zmax) == (0, 1)


@each_style
def test_chosen_cell_is_framed(trace):
    assert (1.5, 2.5, 6.5, 7.5) in frame_bounds(attention.pattern_heatmap(trace, 0, 0, query=7, key=2))
    assert attention.pattern_heatmap(trace, 0, 0).layout.shapes == ()


@each_style
@subtest_each("query", [0, 5, 11])
def test_query_bars_are_its_weights(trace, query):
    bars = first_plot_trace(attention.query_weight_bars(trace, 1, 2, query), "bar")
    assert_array_equal(bars.y, trace["blocks.1.attn.pattern"][2, query, : query + 1])
    assert np.sum(bars.y) == pytest.approx(1, abs=1e-5)
    assert list(bars.x) == position_labels(trace.tokens)[: query + 1]


@subtest_each("factor", [3, -2])
def test_axis_covers_weights_outside_zero_to_one(tiny_lm, factor):
    weights = capture(tiny_lm, [1, 2, 3, 4], parse_interventions(f"blocks.1.attn.pattern.2*scale*{factor}"))
    figure = attention.query_weight_bars(weights, 1, 2, 3)
    low, high = figure.layout.yaxis.range
    assert low <= min(first_plot_trace(figure, "bar").y) < max(first_plot_trace(figure, "bar").y) <= high
    assert low <= 0 < 1 <= high


@each_style
def test_chosen_key_is_marked_at_its_weight(trace):
    plain, marked = attention.query_weight_bars(trace, 0, 1, 9, key=4).data
    assert list(marked.x) == [plain.x[4]]
    assert_allclose(marked.y, [plain.y[4]])


@each_style
def test_alt_text_names_key_with_largest_weight(trace):
    weights = trace["blocks.0.attn.pattern"][0, 9, :10]
    alt = attention.query_weight_bars(trace, 0, 0, 9).layout.meta["alt"]
    assert f"{format_number(weights.max())}, to" in alt
    assert alt.endswith(f"at {weights.argmax()}.")


@each_style
def test_formula_has_numbers_of_chosen_cell(trace, style):
    cell = attention_cell(trace, 1, 2, 9, 4)
    formula = attention.VIEW.formula(trace, Selection(layer=1, head=2, query=9, key=4))
    assert ("capped = 1.5 · tanh(score / 1.5) = " in formula) is (style == "sandwich")
    for value in (cell.dot, cell.score, cell.capped, cell.exp_score, cell.exp_total, cell.weight):
        assert f" {format_six_digits(value)}" in formula
    assert {"local": "1", "sandwich": "2"}.get(style, f"√{trace.config.d_head}") in formula


@subtest_each(
    "style, words",
    [
        ("rope", "recomputed from the rotated q and k,"),
        ("gpt", "recomputed from q and k,"),
        ("grouped", "recomputed from the normalised and rotated q and k,"),
    ],
)
def test_formula_says_which_q_and_k_are_used(capture_trace, style, words):
    assert words in attention.VIEW.formula(capture_trace(style), Selection(layer=1, query=9, key=4))


def test_formula_names_heads_that_share_keys(capture_trace):
    formula = attention.VIEW.formula(capture_trace("grouped"), Selection(layer=1, head=3, query=9, key=4))
    assert formula.startswith("layer 1 head 3 (k and v of kv head 1, shared by heads 2 to 3), query")
    assert "shared" not in attention.VIEW.formula(capture_trace("rope"), Selection(query=9, key=4))


@each_style
def test_panels_draw_selection(trace):
    selection = Selection(layer=1, head=2, query=9, key=4)
    heads, pattern, row = (panel.draw(trace, selection) for panel in attention.VIEW.panels[:3])
    assert heads.values.shape == (2, trace.config.num_heads, 12, 12)
    assert pattern == attention.pattern_heatmap(trace, 1, 2, 9, 4)
    assert row == attention.query_weight_bars(trace, 1, 2, 9, 4)


@each_style
@subtest_each("kind", PATTERNS)
def test_heatmap_shows_chosen_kind_of_pattern(trace, kind):
    heatmap = first_plot_trace(attention.pattern_heatmap(trace, 1, 2, kind=kind), "heatmap")
    below = np.tri(len(trace), dtype=bool)
    assert_allclose(np.asarray(heatmap.z, dtype=float)[below], displayed_pattern(trace, 1, 2, kind)[below])
    assert heatmap.zmax == (displayed_pattern(trace, 1, 2, kind).max() if kind == "moved" else 1)


@each_style
@subtest_each("kind", ["chosen_mean", "chosen_max"])
def test_combined_weight_lists_each_head(trace, kind):
    selection = Selection().replace(pattern=kind, heads="0.1~1.0", query=9, key=2).clamp_to_trace(trace)
    (panel,) = [panel for panel in attention.VIEW.panels if panel.name == "pattern"]
    cell_values = np.asarray(first_plot_trace(panel.draw(trace, selection), "heatmap").z, dtype=float)
    inspection = panel.inspect(trace, selection, ClickedPoint(x=2, y=9))
    weights = [trace["blocks.0.attn.pattern"][1, 9, 2], trace["blocks.1.attn.pattern"][0, 9, 2]]
    expected = max(weights) if kind == "chosen_max" else sum(weights) / 2
    assert inspection.value == pytest.approx(cell_values[9, 2]) == pytest.approx(expected, abs=1e-7)
    assert len(inspection.working.inputs) == 2 and inspection.difference < 1e-6
    assert "layer 0 head 1, layer 1 head 0" in panel.draw(trace, selection).layout.meta["alt"]


@each_style
def test_sentence_names_most_attended_key(trace):
    sentence = attention.attention_sentence
    for layer, head, query in ((0, 1, 11), (1, 0, 5), (1, 2, 9)):
        row = trace[f"blocks.{layer}.attn.pattern"][head, query].astype(np.float64)
        first, second = np.argsort(-row, kind="stable")[:2]
        words = re.match(
            r"(.*?): (.*?) looks most at (.*), with (.*?%)\.", sentence(trace, pick(layer, head, query, first))
        )
        assert words[1] == f"Layer {layer} head {head}" and words[2] == quote_token(trace.tokens[query])
        assert words[3].startswith("itself" if first == query else quote_token(trace.tokens[first]))
        assert float(words[4][:-1]) / 100 == pytest.approx(row[first], abs=0.005)
        other = sentence(trace, pick(layer, head, query, second))
        assert f"with {format_percent(row[second])}, most at {words[3]} with {words[4]}" in other


def test_sentence_handles_ties_repeats_and_first_token(rope_trace):
    def with_row(row, token_ids=rope_trace.token_ids):
        pattern = rope_trace["blocks.1.attn.pattern"].copy()
        pattern[0, 3, :4] = row
        values = {**rope_trace.values, "blocks.1.attn.pattern": pattern}
        return attention.attention_sentence(replace(rope_trace, values=values, token_ids=token_ids), pick(1, 0, 3, 1))

    assert "sees only itself" in attention.attention_sentence(rope_trace, pick(1, 0, 0, 0))
    assert "looks most at 2 tokens, with 40% each." in with_row([0.4, 0.1, 0.4, 0.1])
    assert "looks most at 4 tokens, with 0% each." in with_row([0, 0, 0, 0])
    assert "most at itself with 70%." in with_row([0.1, 0.1, 0.1, 0.7])
    ablated = replace(rope_trace, edits=(make_intervention("blocks.1.attn.z", "zero", index=0),))
    for layer, head in ((1, 0), (1, 1), (0, 0)):
        is_told = "It is switched off" in attention.attention_sentence(ablated, pick(layer, head, 3, 1))
        assert is_told == ((layer, head) == (1, 0))
    first, second, *others = rope_trace.token_ids
    names = [quote_token(rope_trace.vocabulary[token_id]) for token_id in (first, second)]
    words = with_row([0.2, 0.1, 0.6, 0.1], (first, second, first, *others[1:]))
    assert f"looks at {names[1]} with 10%, most at {names[0]} (2) with 60%." in words
    words = with_row([0.2, 0.1, 0.6, 0.1], (first, second, first, second, *others[2:]))
    assert f"{names[1]} (3) looks at {names[1]} (1) with 10%, most at {names[0]} (2)" in words


def pick(layer: int, head: int, query: int, key: int) -> Selection:
    return Selection().replace(layer=layer, head=head, query=query, key=int(key))
