from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from explorer.analysis.intervention_effects import ablation_effects, log2_probability
from explorer.analysis.next_token import next_token_distribution
from explorer.interventions import make_intervention
from explorer.tracing.capture import capture


def test_the_log_probability_is_that_of_the_softmax(trace):
    for token_id in (0, 7, 255):
        assert 2 ** log2_probability(trace, 5, token_id) == pytest.approx(
            next_token_distribution(trace, 5).plain[token_id], rel=1e-4
        )


def test_a_change_is_that_of_a_run_with_the_edit(lms, trace, style):
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


def test_what_is_silent_already_changes_nothing_more(lms, trace, style):
    silent = capture(lms[style], trace.token_ids, [make_intervention("blocks.1.attn.z", "zero", index=2)])
    assert_allclose(ablation_effects(silent, 9, 33).heads[1, 2], 0, atol=1e-4)
    assert np.abs(ablation_effects(silent, 9, 33).heads).max() > 1e-3


def test_a_trace_without_its_model_says_so(trace):
    with pytest.raises(ValueError, match="runs the model again"):
        ablation_effects(replace(trace, model=None), 9, 33)
