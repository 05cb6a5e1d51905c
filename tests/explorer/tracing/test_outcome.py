"""What a changed run gives a next token is what its capture holds."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from explorer.state.errors import UserError
from explorer.state.interventions import parse_edits
from explorer.tracing.capture import capture
from explorer.tracing.outcome import outcome
from explorer.tracing.work import GivenUp, Work
from tests.specimens import KINDS_EDITS, STREAM_EDITS, known_edits

IDS = tuple(range(40, 52))


@pytest.mark.parametrize("text", ["", STREAM_EDITS, KINDS_EDITS.format(other="none"), "logits.33@7*scale*3"])
@pytest.mark.parametrize("position", [0, 7, 11])
def test_it_is_what_is_captured(lms, style, text, position):
    edits = known_edits(lms[style], text)
    logits = capture(lms[style], IDS, edits)["logits"][position].astype(np.float64)
    expected = logits[33], logits[33] - np.logaddexp.reduce(logits)
    assert_allclose(outcome(lms[style], IDS, edits, position, 33), expected, atol=1e-4)


def test_the_model_is_left_as_it_was(tiny_lm):
    with pytest.raises(UserError):
        outcome(tiny_lm, IDS, parse_edits("blocks.9.attn.z*zero"), 3, 33)
    outcome(tiny_lm, IDS, parse_edits("embed*scale*2"), 3, 33)
    assert not any(module._forward_hooks for module in tiny_lm.modules())


def test_nobody_s_answer_is_not_worked_out(tiny_lm):
    with Work(most_tokens=100, most_seconds=10, given_up=True).counted(), pytest.raises(GivenUp):
        outcome(tiny_lm, IDS, (), 3, 33)
