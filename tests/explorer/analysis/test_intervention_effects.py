"""Effects of interventions, of ablations, and of several together, compared with separate runs."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from explorer.analysis.intervention_effects import (
    MEASURES,
    ablation_effects,
    attention_shift,
    check_recomputed_logits,
    intervention_interaction,
    largest_score_change,
    log2_probability,
    pattern_change,
)
from explorer.analysis.next_token import next_token_distribution
from explorer.analysis.residual import residual_stages
from explorer.analysis.run_difference import (
    next_token_probabilities,
    probability_moved,
    relative_stream_distance,
    surprisal_difference,
)
from explorer.interventions import make_intervention, parse_interventions
from explorer.tracing.capture import capture
from explorer.tracing.comparison import Comparison
from tests.sample_models import capture_edited_style, capture_style, models
from tests.subtest_loops import each_style, subtest_each

with_unchanged = Comparison.with_unchanged


def softmax(logits: np.ndarray) -> np.ndarray:
    weights = np.exp(logits.astype(np.float64) - logits.max())
    return weights / weights.sum()


@each_style
def test_pattern_change_sums_to_0_over_keys(style):
    edited_trace = capture_edited_style(style)
    change = pattern_change(with_unchanged(edited_trace), 1, 2)
    assert_allclose(change.sum(-1), 0, atol=1e-5)
    assert (np.abs(change) <= 1).all() and np.abs(change).max() > 1e-3
    assert not np.triu(change, 1).any()
    expected = edited_trace["blocks.1.attn.pattern"][2]
    assert_allclose(edited_trace.baseline["blocks.1.attn.pattern"][2] + change, expected, atol=1e-6)


@each_style
def test_largest_score_change_ignores_masked_keys(style):
    edited_trace = capture_edited_style(style)
    after, before = (run["blocks.1.attn.scores"][0] for run in (edited_trace, edited_trace.baseline))
    visible = [abs(float(after[q, k] - before[q, k])) for q in range(12) for k in range(q + 1)]
    assert largest_score_change(with_unchanged(edited_trace), 1, 0) == pytest.approx(max(visible))


@each_style
def test_total_variation_is_probability_gained(style):
    edited_trace = capture_edited_style(style)
    runs = with_unchanged(edited_trace)
    before, after = (softmax(run["logits"][7]) for run in (edited_trace.baseline, edited_trace))
    for probabilities, expected in zip(next_token_probabilities(runs, 7), (after, before), strict=True):
        assert_allclose(probabilities, expected, rtol=1e-4)
    won = (after - before).clip(0).sum()
    assert probability_moved(runs, 7) == pytest.approx(won, rel=1e-3)
    assert probability_moved(runs, 7) == pytest.approx((before - after).clip(0).sum(), rel=1e-3)


@each_style
def test_surprisal_change_is_log_ratio_of_probabilities(style):
    edited_trace = capture_edited_style(style)
    change = surprisal_difference(with_unchanged(edited_trace))
    assert np.isnan(change[0])
    for position in range(1, 12):
        before, after = (
            softmax(run["logits"][position - 1])[run.token_ids[position]]
            for run in (edited_trace.baseline, edited_trace)
        )
        assert change[position] == pytest.approx(np.log2(before / after), abs=1e-4)


@each_style
def test_relative_stream_change_matches_norms(style):
    edited_trace = capture_edited_style(style)
    change, tapped_stages = relative_stream_distance(with_unchanged(edited_trace)), residual_stages(edited_trace)
    assert change.shape == (len(tapped_stages), 12)
    for row, stage in enumerate(tapped_stages):
        before, after = (run[stage.tap][4].astype(np.float64) for run in (edited_trace.baseline, edited_trace))
        assert change[row, 4] == pytest.approx(np.sqrt(((after - before) ** 2).sum() / (before**2).sum()), abs=1e-5)


@each_style
def test_ablated_head_changes_nothing_before_it(lms, trace, style):
    changed = capture(lms[style], trace.token_ids, [make_intervention("blocks.1.attn.z", "zero", index=1)])
    changed = replace(changed, baseline=trace)
    distances, heads = relative_stream_distance(with_unchanged(changed)), attention_shift(with_unchanged(changed))
    before = [stage.layer == 0 for stage in residual_stages(changed)]
    assert not distances[before].any() and distances[np.logical_not(before)].all()
    assert not heads.any()  # the last layer's patterns are computed before its head outputs


@each_style
def test_attention_shift_is_mean_weight_gained(style):
    edited_trace = capture_edited_style(style)
    shifted = attention_shift(with_unchanged(edited_trace))
    for layer, head in ((0, 0), (1, 2)):
        won = pattern_change(with_unchanged(edited_trace), layer, head).clip(0).sum(-1).mean()
        assert shifted[layer, head] == pytest.approx(won, abs=1e-5)
    assert (shifted >= 0).all() and (shifted <= 1).all()


@each_style
def test_log_probability_matches_softmax(trace):
    for token_id in (0, 7, 255):
        assert 2 ** log2_probability(trace, 5, token_id) == pytest.approx(
            next_token_distribution(trace, 5).plain[token_id], rel=1e-4
        )


@each_style
def test_ablation_effects_match_separate_runs(lms, trace, style):
    effects = ablation_effects(trace, 9, 33)
    assert effects.before == log2_probability(trace, 9, 33)
    assert effects.error < 1e-4
    edits = {
        make_intervention("blocks.0.attn.z", "zero", index=2): effects.heads[0, 2],
        make_intervention("blocks.1.attn.z", "zero", index=0): effects.heads[1, 0],
        make_intervention("blocks.0.attn.z", "zero"): effects.sublayers[0, 0],
        make_intervention("blocks.0.ffn.hidden", "zero"): effects.sublayers[0, 1],
        make_intervention("blocks.1.ffn.hidden", "zero"): effects.sublayers[1, 1],
    }
    for edit, change in edits.items():
        changed = capture(lms[style], trace.token_ids, [edit])
        assert change == pytest.approx(log2_probability(changed, 9, 33) - effects.before, abs=1e-4), edit


@each_style
def test_ablating_ablated_head_changes_nothing(lms, trace, style):
    silent = capture(lms[style], trace.token_ids, [make_intervention("blocks.1.attn.z", "zero", index=2)])
    assert_allclose(ablation_effects(silent, 9, 33).heads[1, 2], 0, atol=1e-4)
    assert np.abs(ablation_effects(silent, 9, 33).heads).max() > 1e-3


@each_style
def test_ablation_requires_model(trace):
    with pytest.raises(ValueError, match="runs the model again"):
        ablation_effects(replace(trace, model=None), 9, 33)


INTERVENTION_TEXT = "blocks.0.attn.z.1*zero~blocks.1.ffn.hidden*zero~blocks.1.attn.z.2*mean~logits@7*scale*2"


def make_runs(style: str) -> Comparison:
    trace = capture_style(style)
    changed = capture(models()[style], trace.token_ids, parse_interventions(INTERVENTION_TEXT))
    return Comparison.with_unchanged(replace(changed, baseline=trace))


def token_measure(trace, measure: str) -> float:
    logits = trace["logits"][7].astype(np.float64)
    return logits[33] if measure == "logit" else np.exp(logits[33]) / np.exp(logits).sum()


@each_style
@subtest_each("measure", MEASURES)
def test_single_effects_match_separate_runs(lms, style, trace, measure):
    runs = make_runs(style)
    interaction = intervention_interaction(runs, 7, 33, measure)
    single_run_measures = [
        token_measure(capture(lms[style], trace.token_ids, [edit]), measure)
        for edit in parse_interventions(INTERVENTION_TEXT)
    ]
    before, after = token_measure(trace, measure), token_measure(runs.trace, measure)
    assert_allclose(interaction.effects, np.array(single_run_measures) - before, atol=1e-5)
    assert interaction.joint == pytest.approx(after - before, abs=1e-6)
    assert interaction.interaction == pytest.approx(after - before - (sum(single_run_measures) - 4 * before), abs=1e-5)
    assert abs(interaction.interaction) > 1e-5 and np.ptp(single_run_measures) > 1e-5


@each_style
def test_recomputed_logits_are_checked_against_captured_ones(style):
    runs = make_runs(style)
    assert check_recomputed_logits(runs, 7, 33).is_within_tolerance
    logits = runs.trace["logits"].copy()
    logits[7, 33] += 0.05
    wrong = replace(runs, trace=replace(runs.trace, values=runs.trace.values | {"logits": logits}))
    assert not check_recomputed_logits(wrong, 7, 33).is_within_tolerance


@each_style
def test_interaction_requires_model(style):
    runs = make_runs(style)
    with pytest.raises(ValueError, match="knows none"):
        intervention_interaction(replace(runs, other=replace(runs.other, model=None)), 7, 33, "logit")
