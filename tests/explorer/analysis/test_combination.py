"""Effects of interventions, alone and jointly, equal those of separate runs."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from explorer.analysis.intervention_effects import MEASURES, check_recomputed_outcomes, intervention_interaction
from explorer.interventions import parse_interventions
from explorer.tracing.capture import capture
from explorer.tracing.comparison import Comparison

EDITS = "blocks.0.attn.z.1*zero~blocks.1.ffn.hidden*zero~blocks.1.attn.z.2*mean~logits@7*scale*2"


@pytest.fixture
def runs(lms, style, trace) -> Comparison:
    changed = capture(lms[style], trace.token_ids, parse_interventions(EDITS))
    return Comparison.with_unchanged(replace(changed, baseline=trace))


def token_measure(trace, measure: str) -> float:
    logits = trace["logits"][7].astype(np.float64)
    return logits[33] if measure == "logit" else np.exp(logits[33]) / np.exp(logits).sum()


@pytest.mark.parametrize("measure", MEASURES)
def test_each_effect_is_that_of_a_run_with_one_change(lms, style, trace, runs, measure):
    interaction = intervention_interaction(runs, 7, 33, measure)
    single_run_measures = [
        token_measure(capture(lms[style], trace.token_ids, [edit]), measure) for edit in parse_interventions(EDITS)
    ]
    before, after = token_measure(trace, measure), token_measure(runs.trace, measure)
    assert_allclose(interaction.effects, np.array(single_run_measures) - before, atol=1e-5)
    assert interaction.joint == pytest.approx(after - before, abs=1e-6)
    assert interaction.interaction == pytest.approx(after - before - (sum(single_run_measures) - 4 * before), abs=1e-5)
    assert abs(interaction.interaction) > 1e-5 and np.ptp(single_run_measures) > 1e-5


def test_runs_again_are_held_against_what_was_captured(runs):
    assert check_recomputed_outcomes(runs, 7, 33).is_within_tolerance
    logits = runs.trace["logits"].copy()
    logits[7, 33] += 0.05
    wrong = replace(runs, trace=replace(runs.trace, values=runs.trace.values | {"logits": logits}))
    assert not check_recomputed_outcomes(wrong, 7, 33).is_within_tolerance


def test_a_trace_without_its_model_says_so(runs):
    with pytest.raises(ValueError, match="knows none"):
        intervention_interaction(replace(runs, other=replace(runs.other, model=None)), 7, 33, "logit")
