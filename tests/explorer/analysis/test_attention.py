from dataclasses import astuple, replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from explorer.analysis.attention import attention_cell

CELLS = [(0, 0, 0, 0), (0, 2, 11, 0), (1, 1, 11, 11), (1, 0, 7, 3)]


@pytest.mark.parametrize("cell", CELLS)
def test_a_cell_recomputes_the_captured_weight(trace, cell):
    layer, head, query, key = cell
    recomputed = attention_cell(trace, *cell)
    assert recomputed.weight == pytest.approx(trace[f"blocks.{layer}.attn.pattern"][head, query, key], abs=1e-6)
    assert recomputed.error < 1e-6


@pytest.mark.parametrize("cell", CELLS)
def test_the_steps_lead_from_the_score_to_the_weight(trace, cell):
    layer, head, query, key = cell
    recomputed = attention_cell(trace, *cell)
    scores = trace[f"blocks.{layer}.attn.scores"][head, query, : query + 1].astype(float)
    exps = np.exp(scores - scores.max())
    assert_allclose(recomputed.score, scores[key], atol=1e-5)
    assert_allclose(recomputed.dot, scores[key] * np.sqrt(trace.config.d_head), atol=1e-5)
    assert_allclose((recomputed.exp_score, recomputed.exp_total), (exps[key], exps.sum()), atol=1e-5)
    assert recomputed.weight == recomputed.exp_score / recomputed.exp_total


def test_the_first_token_looks_at_itself_alone(trace):
    cell = attention_cell(trace, 0, 0, 0, 0)
    assert (cell.exp_score, cell.exp_total, cell.weight) == (1, 1, 1)


def test_the_weights_of_a_row_sum_to_1(trace):
    assert sum(attention_cell(trace, 1, 2, 9, key).weight for key in range(10)) == pytest.approx(1)


def test_the_error_shows_a_pattern_that_was_not_made_of_these_queries_and_keys(trace):
    pattern = trace["blocks.0.attn.pattern"] + np.float32(0.25)
    tampered = replace(trace, values={**trace.values, "blocks.0.attn.pattern": pattern})
    assert attention_cell(tampered, 0, 1, 5, 2).error == pytest.approx(0.25, abs=1e-5)


def test_where_there_is_rotation_it_is_the_rotated_vectors_that_count(rope_trace):
    names = {f"blocks.1.attn.{name}" for name in ("q_rot", "k_rot")}
    unrotated = {name: value for name, value in rope_trace.values.items() if name not in names}
    assert attention_cell(replace(rope_trace, values=unrotated), 1, 0, 9, 2).error > 1e-4


def test_no_sum_overflows(trace):
    names = ("q", "k", "q_rot", "k_rot")
    large = {name: value * 1e3 for name, value in trace.values.items() if name.split(".")[-1] in names}
    assert np.isfinite(astuple(attention_cell(replace(trace, values={**trace.values, **large}), 0, 0, 9, 2))).all()
