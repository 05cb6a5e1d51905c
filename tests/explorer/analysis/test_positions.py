"""Rotary embeddings and added position vectors, compared with their formulas."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

from explorer.analysis.positions import (
    context_position_embeddings,
    cosines_by_distance,
    frequencies_from_angles,
    position_cosines,
    rotated_pairs,
    score_by_distance,
    score_by_pair,
    sinusoidal_cosine,
    sinusoidal_embeddings,
    token_and_position_norms,
    wrap_angles,
)
from explorer.interventions import parse_interventions
from explorer.tracing.capture import capture
from model.layers.positions import SinusoidalPositionalEmbedding
from tests.sample_models import YARN
from tests.subtest_loops import each_rotating_style, subtest_each

ADDITIVE_STYLES = ["gpt", "learned"]


@pytest.fixture(params=ADDITIVE_STYLES)
def additive_trace(capture_trace, request):
    """Return a run of each kind of model that adds position embeddings."""
    return capture_trace(request.param)


def test_sinusoidal_embeddings_match_model():
    added = SinusoidalPositionalEmbedding(16)(torch.arange(50)).numpy()
    assert_allclose(sinusoidal_embeddings(np.arange(50), 16), added, atol=1e-6)


def test_position_embeddings_begin_with_captured_ones(additive_trace):
    assert_allclose(
        context_position_embeddings(additive_trace)[: len(additive_trace)], additive_trace["position_embed"], atol=1e-6
    )
    assert len(context_position_embeddings(additive_trace)) == additive_trace.config.context_length


def test_sinusoidal_cosines_depend_only_on_distance(capture_trace):
    trace = capture_trace("gpt")
    cosines, closed_form = cosines_by_distance(trace), sinusoidal_cosine(np.arange(len(trace)), trace.config.d_model)
    for part in (cosines.minimum, cosines.mean, cosines.maximum):
        assert_allclose(part, closed_form, atol=1e-6)


def test_learned_cosines_depend_on_position(capture_trace):
    cosines = cosines_by_distance(capture_trace("learned"))
    assert (cosines.maximum - cosines.minimum).max() > 0.05
    assert (cosines.minimum <= cosines.mean + 1e-9).all() and (cosines.mean <= cosines.maximum + 1e-9).all()


def test_position_cosines_match_pytorch(additive_trace):
    vectors = torch.tensor(additive_trace["position_embed"], dtype=torch.float64)
    expected = torch.cosine_similarity(vectors[:, None], vectors, dim=-1)
    assert_allclose(position_cosines(additive_trace), expected, atol=1e-6)


def test_shift_intervention_uses_later_embeddings(lms, capture_trace):
    trace = capture_trace("gpt")
    shifted = capture(lms["gpt"], trace.token_ids, parse_interventions("position_embed*shift*3"))
    assert_allclose(position_cosines(shifted), position_cosines(trace), atol=1e-6)
    assert_allclose(context_position_embeddings(shifted)[3 : 3 + len(trace)], shifted["position_embed"], atol=1e-6)


def test_zeroed_position_embeddings_have_cosine_0(lms, capture_trace):
    trace = capture_trace("gpt")
    assert (
        position_cosines(capture(lms["gpt"], trace.token_ids, parse_interventions("position_embed*zero"))) == 0
    ).all()


def test_norms_match_token_position_and_sum(additive_trace, lms):
    token, position, total = token_and_position_norms(additive_trace)
    token_vectors = additive_trace["embed"] - additive_trace["position_embed"]
    assert_allclose(token, np.linalg.norm(token_vectors, axis=-1), rtol=1e-4)
    assert_allclose(position, np.linalg.norm(additive_trace["position_embed"], axis=-1), rtol=1e-6)
    assert_allclose(total, np.linalg.norm(additive_trace["embed"], axis=-1), rtol=1e-6)


@subtest_each(
    ("angle", "expected"),
    [
        (0, 0),
        (1, 1),
        (-1, -1),
        (math.pi, math.pi),
        (-math.pi, math.pi),
        (3 * math.pi, math.pi),
        (4, 4 - 2 * math.pi),
        (-4, 2 * math.pi - 4),
        (100, 100 - 32 * math.pi),
    ],
)
def test_wrapped_angles_lie_within_half_turn(angle, expected):
    assert wrap_angles(np.array([[angle]])).item() == pytest.approx(expected)


def test_wrapped_angles_keep_direction():
    angles = np.linspace(-50, 50, 1001)
    inside = wrap_angles(angles)
    assert ((-math.pi < inside) & (inside <= math.pi)).all()
    assert_allclose(np.exp(1j * inside), np.exp(1j * angles), atol=1e-12)


@subtest_each("vector", ["q", "k"])
@subtest_each("position", [0, 1, 11])
@each_rotating_style
def test_pairs_rotate_by_position_times_power_of_theta(trace, vector, position):
    config = trace.config
    pairs = rotated_pairs(trace, vector, 1, 2, position)
    theta = config.local_rope_theta or config.rope_theta  # where there are two, the second layer has a window
    angles = position * theta ** (-2 * np.arange(config.d_head // 2) / config.num_rotary_dims)
    angles[config.num_rotary_dims // 2 :] = 0
    scales = np.ones(len(angles))
    if config.rope_scaling == YARN:  # of the two rotated pairs the first is fast, the second slow
        angles[1] /= YARN.factor
        scales[:2] = YARN.attention_factor
    elif config.rope_scaling:  # "linear"
        angles /= config.rope_scaling.factor
    assert_allclose(pairs.angles, angles, rtol=1e-6)
    for (x, y), (turned_x, turned_y), angle, scale in zip(pairs.before, pairs.after, angles, scales, strict=True):
        assert turned_x == pytest.approx(scale * (x * math.cos(angle) - y * math.sin(angle)), abs=1e-5)
        assert turned_y == pytest.approx(scale * (x * math.sin(angle) + y * math.cos(angle)), abs=1e-5)
    assert pairs.error < 1e-5


@pytest.mark.parametrize(
    ("style", "kv_head", "dims"),
    [("rope", 2, [(0, 1), (2, 3), (4, 5), (6, 7)]), ("grouped", 1, [(0, 4), (1, 5), (2, 6), (3, 7)])],
)
def test_pairs_are_dimensions_rotated_together(capture_trace, style, kv_head, dims):
    trace = capture_trace(style)
    pairs = rotated_pairs(trace, "k", 1, 2, 5)
    for name, vectors in (("k", pairs.before), ("k_rot", pairs.after)):
        k = trace[f"blocks.1.attn.{name}"][kv_head, 5]
        assert_array_equal(vectors, [[k[a], k[b]] for a, b in dims])


@each_rotating_style
def test_error_reveals_unrotated_vector(trace):
    values = {**trace.values, "blocks.1.attn.q_rot": trace["blocks.1.attn.q"]}
    assert rotated_pairs(replace(trace, values=values), "q", 1, 0, 5).error > 0.1


def test_unrotated_layer_has_same_score_at_any_distance(capture_trace):
    trace = capture_trace("grouped")
    pairs = rotated_pairs(trace, "k", 0, 3, 5)
    assert not pairs.angles.any() and pairs.error == 0
    assert_array_equal(pairs.after, pairs.before)
    scores = score_by_distance(trace, 0, 3, 9, 4, np.arange(12))
    assert_allclose(scores, trace["blocks.0.attn.scores"][3, 9, 4], atol=1e-5)


def test_scores_depend_only_on_distance(rope_trace):
    """The dot product of the same two vectors stays the same when both positions shift equally: the purpose of RoPE."""

    def rotate(vector: np.ndarray, position: int) -> np.ndarray:
        pairs = vector.reshape(-1, 2) @ np.array([1, 1j])
        return pairs * np.exp(1j * rope_trace["rope.angles"][position])

    q, k = rope_trace["blocks.0.attn.q"][0, 0], rope_trace["blocks.0.attn.k"][0, 0]
    products = [(rotate(q, m + 3) * rotate(k, m).conj()).sum().real for m in range(9)]
    assert_allclose(products, products[0], atol=1e-5)


@subtest_each("cell", [(0, 0, 0, 0), (0, 2, 11, 0), (1, 1, 11, 11), (1, 0, 7, 3)])
@each_rotating_style
def test_score_by_pair_sums_to_score(trace, cell):
    layer, head, query, key = cell
    parts = score_by_pair(trace, *cell)
    assert parts.shape == (trace.config.d_head // 2,)
    score = trace[f"blocks.{layer}.attn.scores"][head, query, key]
    assert parts.sum() == pytest.approx(score, abs=1e-5)


def test_score_by_pair_sums_to_score_with_yarn(capture_trace):
    """YaRN multiplies the rotated pairs of queries and of keys alone."""
    trace = capture_trace("parallel")
    for layer, head, query, key in ((0, 1, 11, 3), (1, 2, 8, 8)):
        score = trace[f"blocks.{layer}.attn.scores"][head, query, key]
        assert score_by_pair(trace, layer, head, query, key).sum() == pytest.approx(score, abs=1e-5)


@each_rotating_style
def test_score_by_distance_matches_run_and_shifted_vectors(trace):
    observed = score_by_distance(trace, 1, 0, 9, 4, np.array([5]))
    assert observed.item() == pytest.approx(trace["blocks.1.attn.scores"][0, 9, 4], abs=1e-5)
    pairs = {name: rotated_pairs(trace, name, 1, 0, at) for name, at in (("q", 9), ("k", 4))}
    turns = trace["local_rope.angles" if trace.config.local_rope_theta else "rope.angles"]
    scaling, pairs_turned = trace.config.rope_scaling, trace.config.num_rotary_dims // 2
    scales = np.where(np.arange(turns.shape[1]) < pairs_turned, scaling.attention_factor if scaling else 1.0, 1.0)
    for distance in (0, 3, 11):
        q = (pairs["q"].before @ (1, 1j)) * np.exp(1j * turns[distance])
        k = pairs["k"].before @ (1, 1j)
        expected = (scales**2 * (q * k.conj()).real).sum() / trace.config.divisor
        moved = score_by_distance(trace, 1, 0, 9, 4, np.array([distance]))
        assert moved.item() == pytest.approx(expected, abs=1e-5)


@each_rotating_style
def test_first_pair_rotates_1_radian_per_position(trace):
    scaling = trace.config.rope_scaling
    speeds = frequencies_from_angles(trace["rope.angles"])
    assert speeds[0] == pytest.approx(1 / (scaling.factor if scaling and scaling.kind == "linear" else 1), rel=1e-6)
    turning = trace.config.num_rotary_dims // 2
    assert (np.diff(speeds[:turning]) < 0).all()
    assert not speeds[turning:].any()


def test_single_token_has_no_rotation_frequency(capture_trace):
    trace = capture_trace("rope", 1)
    assert np.isnan(frequencies_from_angles(trace["rope.angles"])).all()
    here = score_by_distance(trace, 0, 0, 0, 0, np.array([0]))
    assert here.item() == pytest.approx(trace["blocks.0.attn.scores"][0, 0, 0], abs=1e-5)
