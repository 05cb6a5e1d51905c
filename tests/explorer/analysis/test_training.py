import math

import numpy as np
import torch

from explorer.analysis.training import loss_of_text
from tests.specimens import models, trace_of


def test_the_loss_of_a_text_is_the_cross_entropy_that_training_makes_small(style):
    trace = trace_of(style)
    ids = torch.tensor([trace.token_ids])
    with torch.no_grad():
        logits = models()[style](ids)
    expected = torch.nn.functional.cross_entropy(logits[0, :-1].double(), ids[0, 1:])
    np.testing.assert_allclose(loss_of_text(trace), expected, rtol=1e-5)


def test_a_single_token_has_none():
    assert math.isnan(loss_of_text(trace_of("rope", 1)))
