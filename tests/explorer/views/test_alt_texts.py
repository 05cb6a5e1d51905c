"""Alternative texts of figures describe their content."""

import re

import numpy as np
import pytest

from explorer import capture
from explorer.analysis.logit_lens import lens_summaries
from explorer.explain.notation import format_number, quote_token
from explorer.state.selection import Selection
from explorer.tracing.comparison import Comparison
from explorer.views import compare, patching
from explorer.views.attention.patterns import attention_stages
from explorer.views.experiments.effects import head_ablation_map as ablated
from explorer.views.kv_cache import cache_size_plot, positions_computed_lines
from explorer.views.prediction.contributions import head_contribution_map
from explorer.views.prediction.logit_lens import lens_map, token_trajectory
from explorer.views.residual.stream_plots import stream_norm_map
from model.config import kv_cache_bytes_per_token
from tests.sample_models import tokenizer
from tests.subtest_loops import subtest_each

QUERY, TOKEN = 9, 17


def alt_text(figure) -> str:
    return figure.layout.meta["alt"]


@pytest.fixture
def runs(lms, rope_trace):
    """Return `runs(position)`: a run, and one with another token at that position."""

    def runs(position: int) -> Comparison:
        ids = (*rope_trace.token_ids[:position], 70, *rope_trace.token_ids[position + 1 :])
        return Comparison.from_traces(rope_trace, capture(lms["rope"], ids, tokenizer=tokenizer()))

    return runs


def panel_drawer(name: str):
    (panel,) = (panel for panel in patching.VIEW.panels if panel.name == name)
    return lambda runs, query: panel.draw(runs, Selection(query=query).clamp_to_trace(runs.trace))


MAPS = {
    "contributions": lambda runs, query: head_contribution_map(runs.trace, query, TOKEN),
    "ablations": lambda runs, query: ablated(runs.trace, query, TOKEN),
    "attention distances": lambda runs, query: compare.head_attention_difference_map(runs, 0, 0),
    "patched heads": panel_drawer("heads_denoise"),
    "patched positions": panel_drawer("positions_noise"),
}


@subtest_each("name", MAPS)
def test_map_alt_text_names_largest_cell(runs, name):
    places = set()
    for query in range(5, 12):
        figure = MAPS[name](runs(query - 3), query)
        values = np.abs(np.asarray(figure.data[0].z, float))
        layer, column = map(int, re.search(r"layer (\d+),? (?:head|column) (\d+)", alt_text(figure)).groups())
        assert (layer, column) == np.unravel_index(np.nanargmax(values), values.shape)
        places.add((layer, column))
    assert any(layer != column for layer, column in places)


def test_stages_alt_text_has_score_and_weight(rope_trace):
    score, weight = (rope_trace[f"blocks.1.attn.{tap}"][0, QUERY, 4] for tap in ("scores", "pattern"))
    assert f"a score of {format_number(score)} and a weight of {format_number(weight)}." in alt_text(
        attention_stages(rope_trace, 1, 0, QUERY, 4)
    )


def test_norm_map_alt_text_names_longest_token(rope_trace):
    figure = stream_norm_map(rope_trace)
    assert alt_text(figure).endswith(
        f"longest at {quote_token(rope_trace.tokens[int(np.argmax(figure.data[0].z[-1]))])}."
    )


def test_lens_alt_texts_name_final_prediction(rope_trace):
    token_id = int(lens_summaries(rope_trace, range(len(rope_trace))).top[-1, QUERY, 0])
    assert alt_text(lens_map(rope_trace, QUERY, TOKEN)).endswith(
        f"After {quote_token(rope_trace.tokens[QUERY])} it is "
        f"{quote_token(rope_trace.vocabulary[token_id])} in the end."
    )
    figure = token_trajectory(rope_trace, QUERY, TOKEN)
    first, *_, last = figure.data[0].y
    assert f"{format_number(first)} at the embedding, {format_number(last)} at the end" in alt_text(figure)


def test_cache_alt_texts_give_size_after_step(rope_trace):
    bytes_per_token = kv_cache_bytes_per_token(rope_trace.config)
    assert f"{(QUERY + 1) * bytes_per_token:,} bytes after this step" in alt_text(cache_size_plot(rope_trace, QUERY))
    figure = positions_computed_lines(rope_trace, QUERY)
    cached, uncached = (list(line.y)[QUERY] for line in figure.data)
    assert f"By step {QUERY + 1}, {cached:,} positions" in alt_text(figure) and f"without it {uncached:,}" in alt_text(
        figure
    )
