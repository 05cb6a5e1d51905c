"""Next-token logits and probabilities of interventions equal those of captured runs."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from explorer.errors import UserError
from explorer.interventions import parse_interventions
from explorer.tracing.capture import capture
from explorer.tracing.forward_hooks import logit_and_log_probability
from explorer.tracing.jobs import RequestBudget, RequestCancelledError
from tests.sample_models import ALL_KINDS_INTERVENTIONS, STREAM_INTERVENTIONS, applicable_interventions
from tests.subtest_loops import each_style, subtest_each

IDS = tuple(range(40, 52))


@each_style
@subtest_each("text", ["", STREAM_INTERVENTIONS, ALL_KINDS_INTERVENTIONS.format(other="none"), "logits.33@7*scale*3"])
@subtest_each("position", [0, 7, 11])
def test_outcome_equals_capture(lms, style, text, position):
    edits = applicable_interventions(lms[style], text)
    logits = capture(lms[style], IDS, edits)["logits"][position].astype(np.float64)
    expected = logits[33], logits[33] - np.logaddexp.reduce(logits)
    assert_allclose(logit_and_log_probability(lms[style], IDS, edits, position, 33), expected, atol=1e-4)


def test_model_is_left_unchanged(tiny_lm):
    with pytest.raises(UserError):
        logit_and_log_probability(tiny_lm, IDS, parse_interventions("blocks.9.attn.z*zero"), 3, 33)
    logit_and_log_probability(tiny_lm, IDS, parse_interventions("embed*scale*2"), 3, 33)
    assert not any(module._forward_hooks for module in tiny_lm.modules())


def test_cancelled_request_is_not_computed(tiny_lm):
    with (
        RequestBudget(max_tokens=100, max_seconds=10, is_cancelled=True).activate(),
        pytest.raises(RequestCancelledError),
    ):
        logit_and_log_probability(tiny_lm, IDS, (), 3, 33)
