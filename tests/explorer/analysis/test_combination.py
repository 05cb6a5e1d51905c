"""Effects of changes, one by one and together, are those of runs of their own."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from explorer.analysis.combination import MEASURES, again, combination
from explorer.state.interventions import parse_edits
from explorer.tracing.capture import capture
from explorer.tracing.comparison import Comparison

EDITS = "blocks.0.attn.z.1*zero~blocks.1.ffn.hidden*zero~blocks.1.attn.z.2*mean~logits@7*scale*2"


@pytest.fixture
def runs(lms, style, trace) -> Comparison:
    changed = capture(lms[style], trace.token_ids, parse_edits(EDITS))
    return Comparison.with_unchanged(replace(changed, baseline=trace))


def of(trace, measure: str) -> float:
    logits = trace["logits"][7].astype(np.float64)
    return logits[33] if measure == "logit" else np.exp(logits[33]) / np.exp(logits).sum()


@pytest.mark.parametrize("measure", MEASURES)
def test_each_effect_is_that_of_a_run_with_one_change(lms, style, trace, runs, measure):
    found = combination(runs, 7, 33, measure)
    each = [of(capture(lms[style], trace.token_ids, [edit]), measure) for edit in parse_edits(EDITS)]
    before, after = of(trace, measure), of(runs.trace, measure)
    assert_allclose(found.effects, np.array(each) - before, atol=1e-5)
    assert found.joint == pytest.approx(after - before, abs=1e-6)
    assert found.interaction == pytest.approx(after - before - (sum(each) - 4 * before), abs=1e-5)
    assert abs(found.interaction) > 1e-5 and np.ptp(each) > 1e-5


def test_runs_again_are_held_against_what_was_captured(runs):
    assert again(runs, 7, 33).passed
    logits = runs.trace["logits"].copy()
    logits[7, 33] += 0.05
    wrong = replace(runs, trace=replace(runs.trace, values=runs.trace.values | {"logits": logits}))
    assert not again(wrong, 7, 33).passed


def test_a_trace_without_its_model_says_so(runs):
    with pytest.raises(ValueError, match="knows none"):
        combination(replace(runs, other=replace(runs.other, model=None)), 7, 33, "logit")
