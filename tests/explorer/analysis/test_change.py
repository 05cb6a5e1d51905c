from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from explorer.analysis.intervention_effects import (
    attention_shift,
    largest_score_change,
    next_token_change,
    pattern_change,
    relative_stream_change,
    surprisal_change,
)
from explorer.analysis.residual import residual_stages
from explorer.interventions import make_intervention
from explorer.tracing.capture import capture
from explorer.tracing.comparison import Comparison

with_unchanged = Comparison.with_unchanged


@pytest.fixture
def edited_trace(edited_trace_of, style):
    return edited_trace_of(style)


def softmax(logits: np.ndarray) -> np.ndarray:
    weights = np.exp(logits.astype(np.float64) - logits.max())
    return weights / weights.sum()


def test_the_change_of_a_pattern_takes_from_some_keys_what_it_gives_to_others(edited_trace):
    change = pattern_change(with_unchanged(edited_trace), 1, 2)
    assert_allclose(change.sum(-1), 0, atol=1e-5)
    assert (np.abs(change) <= 1).all() and np.abs(change).max() > 1e-3
    assert not np.triu(change, 1).any()
    expected = edited_trace["blocks.1.attn.pattern"][2]
    assert_allclose(edited_trace.baseline["blocks.1.attn.pattern"][2] + change, expected, atol=1e-6)


def test_scores_count_only_where_the_mask_lets_a_query_look(edited_trace):
    after, before = (run["blocks.1.attn.scores"][0] for run in (edited_trace, edited_trace.baseline))
    visible = [abs(float(after[q, k] - before[q, k])) for q in range(12) for k in range(q + 1)]
    assert largest_score_change(with_unchanged(edited_trace), 1, 0) == pytest.approx(max(visible))


def test_the_probability_that_moved_is_what_some_tokens_lost_and_others_won(edited_trace):
    change = next_token_change(with_unchanged(edited_trace), 7)
    before, after = (softmax(run["logits"][7]) for run in (edited_trace.baseline, edited_trace))
    assert_allclose(change.before, before, rtol=1e-4)
    assert_allclose(change.after, after, rtol=1e-4)
    won = (after - before).clip(0).sum()
    assert change.total_variation == pytest.approx(won, rel=1e-3)
    assert change.total_variation == pytest.approx((before - after).clip(0).sum(), rel=1e-3)


def test_the_likeliest_of_either_run_are_on_top(edited_trace):
    change = next_token_change(with_unchanged(edited_trace), 11)
    top = change.top(5)
    assert {int(change.before.argmax()), int(change.after.argmax())} <= set(top)
    others = np.setdiff1d(np.arange(len(change.before)), top)
    either = np.maximum(change.before, change.after)
    assert either[others].max() <= either[top].min()
    assert (np.diff(either[top]) <= 0).all()


def test_a_token_is_harder_by_what_the_change_took_from_its_probability(edited_trace):
    change = surprisal_change(with_unchanged(edited_trace))
    assert np.isnan(change[0])
    for position in range(1, 12):
        before, after = (
            softmax(run["logits"][position - 1])[run.token_ids[position]]
            for run in (edited_trace.baseline, edited_trace)
        )
        assert change[position] == pytest.approx(np.log2(before / after), abs=1e-4)


def test_the_stream_moves_from_where_it_is_changed(edited_trace):
    change, tapped_stages = relative_stream_change(with_unchanged(edited_trace)), residual_stages(edited_trace)
    assert change.shape == (len(tapped_stages), 12)
    for row, stage in enumerate(tapped_stages):
        before, after = (run[stage.tap][4].astype(np.float64) for run in (edited_trace.baseline, edited_trace))
        assert change[row, 4] == pytest.approx(np.sqrt(((after - before) ** 2).sum() / (before**2).sum()), abs=1e-5)


def test_before_a_silenced_head_nothing_moves(lms, trace, style):
    changed = capture(lms[style], trace.token_ids, [make_intervention("blocks.1.attn.z", "zero", index=1)])
    changed = replace(changed, baseline=trace)
    distances, heads = relative_stream_change(with_unchanged(changed)), attention_shift(with_unchanged(changed))
    before = [stage.layer == 0 for stage in residual_stages(changed)]
    assert not distances[before].any() and distances[np.logical_not(before)].all()
    assert not heads.any()  # the last layer's patterns are made before its heads are heard


def test_the_attention_that_moved_is_what_some_keys_won(edited_trace):
    shifted = attention_shift(with_unchanged(edited_trace))
    for layer, head in ((0, 0), (1, 2)):
        won = pattern_change(with_unchanged(edited_trace), layer, head).clip(0).sum(-1).mean()
        assert shifted[layer, head] == pytest.approx(won, abs=1e-5)
    assert (shifted >= 0).all() and (shifted <= 1).all()
