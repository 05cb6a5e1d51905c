from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from explorer.analysis.heads import HEAD_SCORES, head_scores, without_first_key
from model.training.evaluation import copying_head_scores

A, B, C = 5, 6, 7


@pytest.fixture
def run_with_pattern(rope_trace):
    """Return `patterned(ids, pattern)`: a run over the ids in which every head has the pattern (T, T)."""

    def with_pattern(ids, pattern):
        heads = rope_trace.config.num_heads
        values = {f"blocks.{i}.attn.pattern": np.stack([pattern] * heads).astype(np.float32) for i in range(2)}
        return replace(rope_trace, token_ids=tuple(ids), values=rope_trace.values | values)

    return with_pattern


def make_pattern(keys) -> np.ndarray:
    """Return a pattern in which each query puts all its attention weight on one key."""
    return np.eye(len(keys))[list(keys)]


IDS = (A, B, C, A, B, A)
LOOKS = {
    "previous_token": (0, 0, 1, 2, 3, 4),
    "first_token": (0, 0, 0, 0, 0, 0),
    "self": (0, 1, 2, 3, 4, 5),
    "duplicate_token": (0, 0, 0, 0, 1, 3),
    "induction": (0, 0, 0, 1, 2, 4),
}


@pytest.mark.parametrize("name", LOOKS)
def test_a_head_that_does_nothing_else_scores_1(run_with_pattern, name):
    assert_allclose(head_scores(run_with_pattern(IDS, make_pattern(LOOKS[name])), name), 1)


def test_a_score_is_the_share_of_attention_paid(run_with_pattern):
    half = (make_pattern(LOOKS["previous_token"]) + make_pattern(LOOKS["self"])) / 2
    assert_allclose(head_scores(run_with_pattern((A, B, C), half[:3, :3]), "previous_token"), 0.5)


def test_induction_checks_the_token(run_with_pattern):
    """With distinct tokens the same pattern is no induction: no query has an earlier occurrence to attend to."""
    pattern = make_pattern(LOOKS["induction"])
    assert np.isnan(head_scores(run_with_pattern((1, 2, 3, 4, 5, 6), pattern), "induction")).all()
    assert np.isnan(head_scores(run_with_pattern((1, 2, 3, 4, 5, 6), pattern), "duplicate_token")).all()
    assert (head_scores(run_with_pattern((A, B, C, B, A, C), pattern), "induction") < 0.5).all()


def test_an_even_head_is_spread_and_a_sharp_one_is_not(run_with_pattern):
    even = np.tri(6) / np.arange(1, 7)[:, None]
    assert_allclose(head_scores(run_with_pattern(IDS, even), "spread"), 1)
    assert_allclose(head_scores(run_with_pattern(IDS, make_pattern(LOOKS["self"])), "spread"), 0, atol=1e-12)


def test_a_head_that_rests_on_the_first_token_may_be_an_induction_head_beside(run_with_pattern):
    ids = (C, A, B, C, A, B)
    keys = (0, 1, 2, 1, 2, 3)  # what followed the query's last occurrence, itself if it is new
    trace = run_with_pattern(ids, 0.9 * make_pattern([0] * 6) + 0.1 * make_pattern(keys))
    assert_allclose(head_scores(trace, "induction"), 0.1)
    assert_allclose(head_scores(trace, "induction", hide_first=True), 1)


def test_without_the_first_token_rows_sum_to_1_or_see_nothing():
    pattern = np.array([[1.0, 0, 0], [0.5, 0.5, 0], [0.2, 0.2, 0.6]])
    assert_allclose(without_first_key(pattern), [[0, 0, 0], [0, 1, 0], [0, 0.25, 0.75]])


@pytest.mark.parametrize("name", HEAD_SCORES)
def test_scores_are_shares_of_every_kind_of_model(trace_of, style, name):
    for hide_first in (False, True):
        scores = head_scores(trace_of(style, 32), name, hide_first)
        assert scores.shape == (trace_of(style).config.num_layers, trace_of(style).config.num_heads)
        assert ((scores >= 0) & (scores <= 1 + 1e-6)).all()
    assert np.isnan(head_scores(trace_of(style, 1), name)).all()


def test_copying_scores_are_those_that_training_logs(lms, style):
    from explorer.tracing.capture import capture

    lm = lms[style]
    ids = torch.randint(
        6, (32,), generator=torch.Generator().manual_seed(0)
    )  # some many times, some right after each other
    trace, logged = capture(lm, ids.tolist()), copying_head_scores(lm, ids[None])
    assert_allclose(head_scores(trace, "previous_token"), logged["previous_token"], atol=1e-5)
    assert_allclose(head_scores(trace, "induction"), logged["induction"], atol=1e-5)
