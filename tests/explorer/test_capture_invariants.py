"""Captured values fit together as the formulas say, in every layer of every kind of model."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal


def softmax(x: np.ndarray) -> np.ndarray:
    exps = np.exp(x - x.max(-1, keepdims=True))
    return exps / exps.sum(-1, keepdims=True)


@pytest.fixture(params=[0, 1])
def block(request, trace):
    """`block("attn.z")` is the value in each layer in turn."""
    return lambda name: trace[f"blocks.{request.param}.{name}"]


def rotated(trace, block, name: str) -> np.ndarray:
    """What the scores are made of: q or k, after rotation where there is one."""
    return block(f"attn.{name}_rot") if "rope.angles" in trace else block(f"attn.{name}")


def test_rows_of_a_pattern_sum_to_1_and_look_only_back(block):
    pattern = block("attn.pattern")
    assert_allclose(pattern.sum(-1), 1, atol=1e-5)
    assert (pattern >= 0).all()
    assert not np.triu(pattern, k=1).any()


def test_scores_are_scaled_products_of_queries_and_keys(trace, block):
    q, k = rotated(trace, block, "q"), rotated(trace, block, "k")
    assert_allclose(block("attn.scores"), q @ k.swapaxes(-2, -1) / np.sqrt(q.shape[-1]), atol=1e-5)


def test_scores_are_not_masked_yet(block):
    assert np.isfinite(block("attn.scores")).all()


def test_the_pattern_is_the_masked_softmax_of_the_scores(block):
    scores = block("attn.scores")
    masked = np.where(np.tri(scores.shape[-1], dtype=bool), scores, -np.inf)
    assert_allclose(block("attn.pattern"), softmax(masked), atol=1e-6)


def test_z_is_the_pattern_times_the_values(block):
    assert_allclose(block("attn.z"), block("attn.pattern") @ block("attn.v"), atol=1e-5)


@pytest.mark.parametrize("name", ["blocks.0.attn.q", "blocks.0.attn.k", "blocks.1.attn.q", "blocks.1.attn.k"])
def test_rotation_keeps_lengths_and_leaves_position_0(rope_trace, name):
    before, after = rope_trace[name], rope_trace[f"{name}_rot"]
    assert_allclose(np.linalg.norm(after, axis=-1), np.linalg.norm(before, axis=-1), rtol=1e-5)
    assert_array_equal(after[:, 0], before[:, 0])
    assert not np.allclose(after[:, 1], before[:, 1])


def test_each_sublayer_adds_to_the_residual_stream(block):
    assert_allclose(block("resid_mid"), block("resid_pre") + block("attn.out"), atol=1e-6)
    assert_allclose(block("resid_post"), block("resid_mid") + block("ffn.out"), atol=1e-6)


def test_the_feed_forward_gates(block):
    gate = block("ffn.gate_pre")
    assert_allclose(block("ffn.gate"), gate / (1 + np.exp(-gate)), atol=1e-6)
    assert_allclose(block("ffn.hidden"), block("ffn.gate") * block("ffn.up"), atol=1e-6)


def test_blocks_hand_on_the_residual_stream(trace):
    assert_array_equal(trace["blocks.0.resid_pre"], trace["embed"])
    assert_array_equal(trace["blocks.1.resid_pre"], trace["blocks.0.resid_post"])


def test_outputs_are_projections_of_what_was_captured_before(lms, style, trace):
    weights = {name: tensor.numpy() for name, tensor in lms[style].state_dict().items()}
    assert_array_equal(trace["embed"], weights["token_embedding.weight"][list(trace.token_ids)])
    z = trace["blocks.1.attn.z"].swapaxes(0, 1).reshape(len(trace), -1)
    assert_allclose(trace["blocks.1.attn.out"], z @ weights["blocks.1.attn.o_proj.weight"].T, atol=1e-5)
    hidden = trace["blocks.1.ffn.hidden"]
    assert_allclose(trace["blocks.1.ffn.out"], hidden @ weights["blocks.1.ffn.down_proj.weight"].T, atol=1e-5)
    assert_allclose(trace["logits"], trace["final_norm"] @ weights["lm_head.weight"].T, atol=1e-5)
