"""Overflow in 16 bits raises an error with a remedy, and never reaches probabilities."""

import pytest
import torch

from model.errors import NonFiniteLogitsError
from model.generation.autoregressive import beam_search, generate

OVERFLOW_MESSAGE = (
    r"overflow in float16, which ends at 65,504: open it in float32 \(python app.py --dtype float32, or load_check"
)


@pytest.fixture
def overflowing_lm(make_lm):
    """Model with weights that are finite in float16, and activations that are not."""
    lm = make_lm()
    lm.blocks[0].ffn.down_proj.weight.data.mul_(30_000)
    lm.blocks[0].ffn.up_proj.weight.data.mul_(30)
    return lm.half()


def test_generation_and_beam_search_raise_error(overflowing_lm):
    assert all(parameter.isfinite().all() for parameter in overflowing_lm.parameters())
    for use_cache in (True, False):
        with pytest.raises(NonFiniteLogitsError, match=OVERFLOW_MESSAGE):
            next(generate(overflowing_lm, [5, 6, 7], max_new_tokens=2, seed=0, use_cache=use_cache))
    with pytest.raises(NonFiniteLogitsError, match=OVERFLOW_MESSAGE):
        beam_search(overflowing_lm, [5, 6, 7], num_beams=2, max_new_tokens=2)


def test_float32_does_not_overflow(overflowing_lm):
    wide = overflowing_lm.float()
    steps = list(generate(wide, [5, 6, 7], max_new_tokens=2, seed=0))
    assert len(steps) == 2 and all(0 < step.probability <= 1 for step in steps)
    assert beam_search(wide, [5, 6, 7], num_beams=2, max_new_tokens=2)


def test_float32_overflow_does_not_suggest_float32(make_lm):
    lm = make_lm()
    lm.lm_head.weight.data[3, 3] = torch.inf
    with pytest.raises(NonFiniteLogitsError, match="overflow in float32: weaken its interventions, or check the model"):
        next(generate(lm, [5], max_new_tokens=1))
