from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from explorer.analysis.activation_statistics import Statistics
from explorer.explain.notation import format_number, quote_token
from explorer.state.selection import Selection
from explorer.tracing.trace import Trace
from explorer.views import activations
from explorer.views.activations import MAX_COLUMNS
from explorer.views.style import position_labels
from tests.subtest_loops import each_style, subtest_each


@pytest.fixture
def wide_trace(tiny_config) -> Trace:
    """Return a run with a value of 2,500 columns."""
    values = np.arange(3 * 2500, dtype=np.float32).reshape(3, 2500)
    return Trace(tiny_config, (0, 1, 2), ("a", "b", "c"), {"logits": values})


@each_style
def test_heatmap_shows_any_captured_value(trace):
    for tap, value in trace.values.items():
        for head in (0, 2) if value.ndim == 3 else (0,):
            heatmap = activations.captured_value_heatmap(trace, tap, head).data[0]
            assert_array_equal(heatmap.z, trace.head_value(tap, head) if value.ndim == 3 else value)
            assert list(heatmap.y) == position_labels(trace.tokens)


@each_style
def test_signed_values_are_centred_at_zero(trace):
    signed = activations.captured_value_heatmap(trace, "embed").data[0]
    assert (signed.zmin, signed.zmax) == (-np.abs(trace["embed"]).max(), np.abs(trace["embed"]).max())
    pattern = activations.captured_value_heatmap(trace, "blocks.0.attn.pattern").data[0]
    assert (pattern.zmin, pattern.zmax) == (0, trace["blocks.0.attn.pattern"][0].max())


def test_all_zero_value_has_a_scale(rope_trace):
    only_zeros = replace(rope_trace, values={"embed": np.zeros((12, 4), np.float32)})
    heatmap = activations.captured_value_heatmap(only_zeros, "embed").data[0]
    assert heatmap.zmin < heatmap.zmax


@each_style
def test_scores_and_patterns_have_tokens_on_both_axes(trace):
    for tap in ("blocks.0.attn.scores", "blocks.1.attn.pattern"):
        figure = activations.captured_value_heatmap(trace, tap)
        assert list(figure.data[0].x) == position_labels(trace.tokens)
        assert figure.layout.xaxis.type == "category"


@subtest_each(
    "dim, start, end", [(0, 0, 1024), (1023, 0, 1024), (1024, 1024, 2048), (2048, 2048, 2500), (2499, 2048, 2500)]
)
def test_wide_value_shows_window_of_chosen_dimension(wide_trace, dim, start, end):
    assert MAX_COLUMNS == 1024
    figure = activations.captured_value_heatmap(wide_trace, "logits", query=1, dim=dim)
    assert_array_equal(figure.data[0].x, np.arange(start, end))
    assert_array_equal(figure.data[0].z, wide_trace["logits"][:, start:end])
    assert f"{start} to {end - 1} of 2500" in figure.layout.xaxis.title.text


def test_long_pattern_shows_window_of_tokens(tiny_config):
    tokens = tuple(map(str, range(1500)))
    trace = Trace(
        tiny_config, tuple(range(1500)), tokens, {"blocks.0.attn.pattern": np.eye(1500, dtype=np.float32)[None]}
    )
    figure = activations.captured_value_heatmap(trace, "blocks.0.attn.pattern", query=1499, dim=1200)
    assert list(figure.data[0].x) == position_labels(tokens)[1024:]
    assert figure.layout.xaxis.title.text == "key (1024 to 1499 of 1500)"
    assert set(figure.layout.xaxis.tickvals) <= set(figure.data[0].x)
    assert list(figure.layout.xaxis.categoryarray) == position_labels(tokens)  # so clicks give the position


def test_scale_is_same_in_every_window(wide_trace):
    assert {
        activations.captured_value_heatmap(wide_trace, "logits", dim=dim).data[0].zmax for dim in (0, 1500, 2400)
    } == {7499}


@each_style
def test_chosen_element_is_framed(trace):
    shapes = activations.captured_value_heatmap(trace, "embed", query=3, dim=5).layout.shapes
    assert (4.5, 5.5, 2.5, 3.5) in [(shape.x0, shape.x1, shape.y0, shape.y1) for shape in shapes]


@each_style
@subtest_each("tap", ["logits", "embed", "blocks.0.attn.pattern", "blocks.1.ffn.hidden", "blocks.0.attn.q"])
@subtest_each("query", [0, 11])
def test_histogram_shares_sum_to_one(trace, tap, query):
    values = trace[tap][1] if trace[tap].ndim == 3 else trace[tap]
    everything, chosen = activations.captured_value_histogram(trace, tap, 1, query).data
    for bars, counted in ((everything, values), (chosen, values[query])):
        assert np.sum(bars.y) == pytest.approx(1)
        width = bars.x[1] - bars.x[0]
        middle = np.sum(np.multiply(bars.x, bars.y))
        assert middle == pytest.approx(float(counted.astype(float).mean()), abs=width / 2)


def test_equal_values_have_a_histogram(capture_trace):
    everything, chosen = activations.captured_value_histogram(capture_trace("rope", 1), "rope.angles").data
    assert np.sum(everything.y) == np.sum(chosen.y) == 1


@each_style
def test_formula_has_statistics_of_chosen_value(trace):
    selection = Selection(tap="blocks.1.attn.q", head=2, query=7, dim=3)
    values = trace["blocks.1.attn.q"]
    everything = Statistics.from_array(values)
    formula = activations.VIEW.formula(trace, selection)
    assert formula.startswith(f"blocks.1.attn.q: {trace.config.num_heads} × 12 × 8 numbers")
    assert "(7), head 2: length" in formula
    assert f"RMS {format_number(everything.rms)}" in formula
    assert f"{format_number(everything.smallest)} to {format_number(everything.largest)}" in formula
    assert f"= {format_number(np.linalg.norm(values[2, 7]))}" in formula
    assert f"element 3 = {format_number(values[2, 7, 3])}" in formula


@each_style
def test_formula_gives_spread_of_attention_weights(trace):
    """Many weights are 0, and mean and standard deviation are far apart."""
    weights = trace["blocks.1.attn.pattern"].astype(float)
    formula = activations.VIEW.formula(trace, Selection(tap="blocks.1.attn.pattern", query=7))
    assert f"; mean {format_number(weights.mean())}, standard deviation {format_number(weights.std())}, RMS " in formula
    assert f", {(weights == 0).mean():.1%} zeros" in formula


def test_formula_names_heads_that_share_a_value(capture_trace):
    trace = capture_trace("grouped")
    formula = activations.VIEW.formula(trace, Selection(tap="blocks.1.attn.v", head=5, query=7, dim=3))
    assert formula.startswith("blocks.1.attn.v: 3 × 12 × 8 numbers")
    assert "(7), kv head 2, shared by heads 4 to 5: length" in formula
    assert f"element 3 = {format_number(trace['blocks.1.attn.v'][2, 7, 3])}" in formula


@each_style
def test_every_value_has_a_formula(trace):
    for tap in trace.values:
        assert activations.VIEW.formula(trace, Selection(tap=tap, dim=10**6)).startswith(tap)


@each_style
def test_sentence_has_range_at_chosen_token(trace):
    row = trace["blocks.1.resid_post"][5]
    words = activations.VIEW.sentence(trace, Selection(tap="blocks.1.resid_post", query=5))
    assert f"has {len(row)} numbers at {quote_token(trace.tokens[5])}" in words
    assert f"from {format_number(row.min())} to {format_number(row.max())}." in words
