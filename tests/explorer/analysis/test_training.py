import math

import numpy as np
import torch

from explorer.analysis.next_token import mean_text_loss
from tests.sample_models import capture_style, models


def test_the_loss_of_a_text_is_the_cross_entropy_that_training_makes_small(style):
    trace = capture_style(style)
    ids = torch.tensor([trace.token_ids])
    with torch.no_grad():
        logits = models()[style](ids)
    expected = torch.nn.functional.cross_entropy(logits[0, :-1].double(), ids[0, 1:])
    np.testing.assert_allclose(mean_text_loss(trace), expected, rtol=1e-5)


def test_a_single_token_has_none():
    assert math.isnan(mean_text_loss(capture_style("rope", 1)))
