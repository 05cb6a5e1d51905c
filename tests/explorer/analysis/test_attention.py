from dataclasses import astuple, replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from explorer.analysis.attention import attention_cell, displayed_pattern, query_attention_stages, score_by_dimension
from tests import layouts
from tests.subtest_loops import each_style, subtest_each

CELLS = [(0, 0, 0, 0), (0, 2, 11, 0), (1, 1, 11, 11), (1, 0, 7, 3)]


@each_style
@subtest_each("cell", CELLS)
def test_attention_cell_recomputes_captured_weight(trace, cell):
    layer, head, query, key = cell
    recomputed = attention_cell(trace, *cell)
    assert recomputed.weight == pytest.approx(trace[f"blocks.{layer}.attn.pattern"][head, query, key], abs=1e-6)
    assert recomputed.error < 1e-6


@each_style
@subtest_each("cell", CELLS)
def test_attention_cell_steps_match_softmax(trace, cell):
    layer, head, query, key = cell
    recomputed = attention_cell(trace, *cell)
    scores = trace[f"blocks.{layer}.attn.scores"][head, query, : query + 1].astype(float)
    within = layouts.softcap(scores, trace.config.score_cap)
    seen = within[max(0, query + 1 - (trace.config.window(layer) or len(trace))) :]
    exps = np.exp(within - seen.max())
    assert_allclose(recomputed.capped, within[key], atol=1e-5)
    assert_allclose(recomputed.score, scores[key], atol=1e-5)
    assert_allclose(recomputed.dot, scores[key] * trace.config.divisor, atol=1e-5)
    assert_allclose((recomputed.exp_score, recomputed.exp_total), (exps[key], exps[-len(seen) :].sum()), atol=1e-5)
    assert recomputed.weight == recomputed.exp_score / recomputed.exp_total


@each_style
def test_first_token_attends_only_to_itself(trace):
    cell = attention_cell(trace, 0, 0, 0, 0)
    assert (cell.exp_score, cell.exp_total, cell.weight) == (1, 1, 1)


@each_style
def test_attention_weights_of_query_sum_to_1(trace):
    assert sum(attention_cell(trace, 1, 2, 9, key).weight for key in range(10)) == pytest.approx(1)


@each_style
def test_error_reveals_inconsistent_pattern(trace):
    pattern = trace["blocks.0.attn.pattern"] + np.float32(0.25)
    tampered = replace(trace, values={**trace.values, "blocks.0.attn.pattern": pattern})
    assert attention_cell(tampered, 0, 1, 5, 2).error == pytest.approx(0.25, abs=1e-5)


def test_rotary_attention_cell_reads_rotated_vectors(rope_trace):
    names = {f"blocks.1.attn.{name}" for name in ("q_rot", "k_rot")}
    unrotated = {name: value for name, value in rope_trace.values.items() if name not in names}
    assert attention_cell(replace(rope_trace, values=unrotated), 1, 0, 9, 2).error > 1e-4


@each_style
def test_large_scores_do_not_overflow(trace):
    names = ("q", "k", "q_rot", "k_rot")
    large = {name: value * 1e3 for name, value in trace.values.items() if name.split(".")[-1] in names}
    assert np.isfinite(astuple(attention_cell(replace(trace, values={**trace.values, **large}), 0, 0, 9, 2))).all()


@each_style
def test_score_by_dimension_sums_to_score(trace):
    for layer, head, query, key in CELLS:
        parts = score_by_dimension(trace, layer, head, query, key)
        assert parts.shape == (trace.config.d_head,)
        assert parts.sum() == pytest.approx(trace[f"blocks.{layer}.attn.scores"][head, query, key], abs=1e-5)


@each_style
def test_weighted_values_sum_to_head_output(trace):
    """Weight × written value, summed over keys, is z through the head's block of o_proj; its norms are displayed."""
    layer, head, query, d = 1, 2, 9, trace.config.d_head
    output = trace.weights[f"blocks.{layer}.attn.o_proj.weight"][:, head * d : (head + 1) * d]
    weights = trace[f"blocks.{layer}.attn.pattern"][head, query]
    weighted_values = weights[:, None] * (trace.head_value(f"blocks.{layer}.attn.v", head) @ output.T)  # (T, D)
    assert_allclose(weighted_values.sum(0), trace[f"blocks.{layer}.attn.z"][head, query] @ output.T, atol=1e-5)
    assert_allclose(
        np.linalg.norm(weighted_values, axis=-1), displayed_pattern(trace, layer, head, "moved")[query], atol=1e-5
    )


@each_style
def test_displayed_pattern_combines_heads(trace):
    patterns = trace["blocks.1.attn.pattern"]
    assert_allclose(displayed_pattern(trace, 1, 0, "layer_mean"), patterns.mean(0))
    assert_allclose(displayed_pattern(trace, 1, 0, "layer_max"), patterns.max(0))
    assert_allclose(displayed_pattern(trace, 1, 2, "weight"), patterns[2])
    chosen = ((0, 1), (1, 0), (1, 2))
    several = np.array([trace[f"blocks.{layer}.attn.pattern"][head] for layer, head in chosen])
    assert_allclose(displayed_pattern(trace, 1, 2, "chosen_mean", chosen), several.sum(0) / 3, atol=1e-6)
    assert_allclose(displayed_pattern(trace, 1, 2, "chosen_max", chosen), np.maximum.reduce(several))
    assert_allclose(displayed_pattern(trace, 1, 2, "chosen_mean"), patterns[2])
    assert_allclose(displayed_pattern(trace, 1, 2, "without_first")[1:].sum(-1), 1, atol=1e-6)


@each_style
def test_attention_stages_lead_from_products_to_weights(trace):
    steps = query_attention_stages(trace, 1, 2, 7)
    assert_allclose(steps.dots / trace.config.divisor, steps.scores, rtol=1e-6)
    assert_allclose(steps.capped, layouts.softcap(steps.scores, trace.config.score_cap), atol=1e-6)
    exps = np.exp(steps.capped.astype(float)) * steps.allowed
    assert_allclose(exps / exps.sum(), steps.weights, atol=1e-6)
    assert steps.allowed.tolist() == [True] * 8 + [False] * 4
