"""Interventions on positions (shift, base, off) equal a model built that way."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

from model.config import RopeScaling
from model.layers.positions import SinusoidalPositionalEmbedding, position_angles
from tests.sample_models import ROTATING
from tests.subtest_loops import subtest_each

from .intervention_runs import IDS, assert_clean, assert_same, rebuild_model, run

SCALINGS = [None] + [
    RopeScaling(kind=kind, factor=4, original_context_length=32) for kind in ("linear", "ntk", "llama3")
]


@subtest_each("style", ROTATING)
@subtest_each("by", [1, 20, 500])
def test_shifting_rope_positions_keeps_scores(lms, style, by):
    plain, shifted = run(lms[style]), run(lms[style], f"rope.angles*shift*{by}")
    for name in ("blocks.{}.attn.scores", "blocks.{}.resid_post"):
        for layer in range(2):
            assert_allclose(shifted[name.format(layer)], plain[name.format(layer)], atol=1e-4)
    assert np.abs(shifted["blocks.1.attn.q_rot"] - plain["blocks.1.attn.q_rot"]).max() > 0.1


@pytest.mark.parametrize("style", ["gpt", "learned"])
def test_shifting_added_positions_changes_scores(lms, style):
    plain, shifted = run(lms[style]), run(lms[style], "position_embed*shift*5")
    assert np.abs(shifted["blocks.0.attn.scores"] - plain["blocks.0.attn.scores"]).max() > 0.1


@subtest_each("style", ROTATING)
@subtest_each("by", [7, 4096])
def test_shifted_angles_equal_later_positions(lms, style, by):
    expected = position_angles(torch.arange(by, by + len(IDS)), lms[style].rope.frequencies)
    assert_allclose(run(lms[style], f"rope.angles*shift*{by}")["rope.angles"], expected, rtol=1e-6)


@pytest.mark.parametrize("by", [7, 4096])
def test_sinusoidal_shift_goes_beyond_table(lms, by):
    lm = lms["gpt"]
    expected = SinusoidalPositionalEmbedding(lm.config.d_model)(torch.arange(by, by + len(IDS)))
    assert_allclose(run(lm, f"position_embed*shift*{by}")["position_embed"], expected, atol=1e-6)


@pytest.mark.parametrize("style", ["rope", "gpt", "learned"])
def test_shift_equals_a_run_at_later_positions(lms, style):
    lm = lms[style]
    with torch.inference_mode():
        expected = lm(torch.tensor([IDS]), token_positions=torch.arange(5, 5 + len(IDS))[None])[0]
    tap = "rope.angles" if style == "rope" else "position_embed"
    assert_allclose(run(lm, f"{tap}*shift*5")["logits"], expected, atol=1e-5)


def test_learned_positions_cannot_leave_their_table(lms):
    last = lms["learned"].config.context_length - len(IDS)
    run(lms["learned"], f"position_embed*shift*{last}")
    with pytest.raises(ValueError, match="learned positions 0 to 31 and knows no others, got 32"):
        run(lms["learned"], f"position_embed*shift*{last + 1}")
    assert_clean(lms["learned"])


@subtest_each("theta", [1, 500, 1e6])
@subtest_each("scaling", SCALINGS, ids=lambda scaling: scaling and scaling.kind)
@pytest.mark.exhaustive
def test_rope_base_equals_a_model_built_with_it(lms, theta, scaling):
    lm = rebuild_model(lms["rope"], rope_scaling=scaling)
    assert_same(run(lm, f"rope.angles*base*{theta}"), run(rebuild_model(lm, rope_theta=theta)))


@subtest_each("style", ROTATING)
def test_zero_angles_equal_a_model_without_positions(lms, style):
    lm = rebuild_model(lms[style], rope_scaling=None)  # YaRN's attention factor would scale q and k too
    off = run(lm, "rope.angles*zero")
    without = run(rebuild_model(lms[style], position="none"))
    for name, value in without.values.items():
        assert_allclose(off[name], value, atol=1e-5, err_msg=name)
    for vector in ("q", "k"):
        assert_array_equal(off[f"blocks.1.attn.{vector}_rot"], off[f"blocks.1.attn.{vector}"])


def test_shift_and_base_combine_in_any_order(lms):
    edits = "rope.angles*shift*5", "rope.angles*base*500", "rope.angles.1*scale*0.5"
    other = rebuild_model(lms["rope"], rope_theta=500.0)
    expected = position_angles(torch.arange(5, 5 + len(IDS)), other.rope.frequencies)
    expected[:, 1] *= 0.5
    for some in (edits, edits[::-1]):
        assert_allclose(run(lms["rope"], *some)["rope.angles"], expected, rtol=1e-6)
