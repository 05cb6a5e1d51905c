import numpy as np
import pytest

from explorer.analysis.attention import cached_norms_all_heads, cached_vector_norm, step_flops
from explorer.explain.notation import format_number
from explorer.state.selection import Selection
from explorer.views.kv_cache import VIEW, cache_size_plot, key_norm_map, kv_head_norm_map, positions_computed_lines
from model.config import flops_table
from model.layers.attention import KVCache
from tests.subtest_loops import each_style


@each_style
def test_later_positions_are_empty(trace):
    fig = key_norm_map(trace, 4)
    z = np.array(fig.data[0].z, float)
    np.testing.assert_allclose(z[:, :5], cached_norms_all_heads(trace, "k")[:, :5])
    assert np.isnan(z[:, 5:]).all() and z.shape == (trace.config.num_layers, len(trace))
    (frame,) = fig.layout.shapes
    assert (frame.x0, frame.x1) == (3.5, 4.5)
    assert "4 positions are stored" in fig.layout.meta["alt"]


@each_style
def test_each_kv_head_has_a_row(trace):
    assert np.shape(kv_head_norm_map(trace, 1, "v", 11).data[0].z) == (trace.config.kv_heads, 12)


@each_style
def test_sizes_equal_allocated_cache(lms, capture_trace, style):
    """`KVCache` allocates the whole context at once."""
    fig = cache_size_plot(capture_trace(style), 3)
    entries = KVCache(lms[style].config).entries
    assert fig.data[0].y[-1] * 1e6 == pytest.approx(entries.numel() * entries.element_size())
    (stored_line,) = fig.layout.shapes
    assert stored_line.x0 == stored_line.x1 == 4
    position_bytes = entries.numel() * 4 // lms[style].config.context_length
    assert f"{4 * position_bytes:,} bytes after this step" in fig.layout.meta["alt"]
    assert f"{entries.numel() * 4:,}" in VIEW.formula(capture_trace(style), Selection(query=3))


def test_only_grouped_heads_show_saved_memory(capture_trace):
    grouped, own = (cache_size_plot(capture_trace(style), 3).data for style in ("grouped", "rope"))
    assert (len(grouped), len(own)) == (2, 1)
    assert np.allclose(np.array(grouped[1].y), 2 * np.array(grouped[0].y))
    assert "share 3 kv heads" in VIEW.formula(capture_trace("grouped"), Selection(query=3))


@each_style
def test_masked_scores_are_not_counted(trace):
    assert "the scores that the causal mask leaves visible" in VIEW.formula(trace, Selection(query=3))
    _, without = step_flops(trace.config, 3)
    rows = {row.component: row.count for row in flops_table(trace.config, 1)}
    visible = 1 + 2 + 3 + 4  # of 4 · 4 scores
    of_one_score = rows.pop("attention scores and weighted values")
    assert without == 4 * sum(rows.values()) + visible * of_one_score


@each_style
def test_later_position_has_no_norm(trace):
    assert cached_vector_norm(trace, "k", 0, 0, 5, query=4) is None
    assert cached_vector_norm(trace, "k", 0, 0, 4, query=4).difference < 1e-5
    with pytest.raises(IndexError):
        cached_vector_norm(trace, "k", 0, 99, 4, query=4)


@each_style
def test_computation_lines_are_marked_at_step(trace):
    fig = positions_computed_lines(trace, 4)
    assert [line.y[4] for line in fig.data] == [5, 15]
    assert fig.layout.shapes[0].x0 == 5


@each_style
def test_sentence_gives_stored_tokens_and_size(trace):
    config = trace.config
    for query in (0, 1, 9):
        words = VIEW.sentence(trace, Selection(query=query))
        assert f"values of {query} token" in words
        size = (query + 1) * config.num_layers * 2 * config.kv_heads * config.d_head * 4 / 1e6
        assert f"the cache takes {format_number(size)} MB." in words
