"""Scores of heads, and the scores expected by chance."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from explorer.analysis.head_scores import (
    HEAD_SCORES,
    chance_head_scores,
    head_scores,
    target_mask,
    without_first_key,
)
from explorer.architecture.formulas import visibility_mask
from explorer.tracing.capture import capture
from model.training.evaluation import copying_head_scores
from tests.subtest_loops import each_style, subtest_each

A, B, C = 5, 6, 7


@pytest.fixture
def run_with_pattern(rope_trace):
    """Return `with_pattern(ids, pattern)`: a run over the ids in which every head has the pattern (T, T)."""

    def with_pattern(ids, pattern):
        heads = rope_trace.config.num_heads
        values = {f"blocks.{i}.attn.pattern": np.stack([pattern] * heads).astype(np.float32) for i in range(2)}
        return replace(rope_trace, token_ids=tuple(ids), values=rope_trace.values | values)

    return with_pattern


def make_pattern(keys) -> np.ndarray:
    """Return a pattern in which each query puts all its attention weight on one key."""
    return np.eye(len(keys))[list(keys)]


IDS = (A, B, C, A, B, A)
EXPECTED_KEYS = {
    "previous_token": (0, 0, 1, 2, 3, 4),
    "first_token": (0, 0, 0, 0, 0, 0),
    "self": (0, 1, 2, 3, 4, 5),
    "duplicate_token": (0, 0, 0, 0, 1, 3),
    "induction": (0, 0, 0, 1, 2, 4),
}


@pytest.mark.parametrize("name", EXPECTED_KEYS)
def test_ideal_head_scores_1(run_with_pattern, name):
    assert_allclose(head_scores(run_with_pattern(IDS, make_pattern(EXPECTED_KEYS[name])), name), 1)


def test_score_is_share_of_attention(run_with_pattern):
    half = (make_pattern(EXPECTED_KEYS["previous_token"]) + make_pattern(EXPECTED_KEYS["self"])) / 2
    assert_allclose(head_scores(run_with_pattern((A, B, C), half[:3, :3]), "previous_token"), 0.5)


def test_induction_requires_repeated_token(run_with_pattern):
    """With distinct tokens the same pattern is no induction: no query has an earlier occurrence to attend to."""
    pattern = make_pattern(EXPECTED_KEYS["induction"])
    assert np.isnan(head_scores(run_with_pattern((1, 2, 3, 4, 5, 6), pattern), "induction")).all()
    assert np.isnan(head_scores(run_with_pattern((1, 2, 3, 4, 5, 6), pattern), "duplicate_token")).all()
    assert (head_scores(run_with_pattern((A, B, C, B, A, C), pattern), "induction") < 0.5).all()


def test_spread_is_1_if_uniform_and_0_if_one_hot(run_with_pattern):
    even = np.tri(6) / np.arange(1, 7)[:, None]
    assert_allclose(head_scores(run_with_pattern(IDS, even), "spread"), 1)
    assert_allclose(head_scores(run_with_pattern(IDS, make_pattern(EXPECTED_KEYS["self"])), "spread"), 0, atol=1e-12)


def test_hiding_first_token_reveals_induction_head(run_with_pattern):
    ids = (C, A, B, C, A, B)
    keys = (0, 1, 2, 1, 2, 3)  # the token after the query's previous occurrence; the query itself if it is new
    trace = run_with_pattern(ids, 0.9 * make_pattern([0] * 6) + 0.1 * make_pattern(keys))
    assert_allclose(head_scores(trace, "induction"), 0.1)
    assert_allclose(head_scores(trace, "induction", hide_first=True), 1)


def test_rows_without_first_key_sum_to_1_or_0():
    pattern = np.array([[1.0, 0, 0], [0.5, 0.5, 0], [0.2, 0.2, 0.6]])
    assert_allclose(without_first_key(pattern), [[0, 0, 0], [0, 1, 0], [0, 0.25, 0.75]])


@each_style
@subtest_each("name", HEAD_SCORES)
def test_scores_lie_between_0_and_1(capture_trace, style, name):
    for hide_first in (False, True):
        scores = head_scores(capture_trace(style, 32), name, hide_first)
        assert scores.shape == (capture_trace(style).config.num_layers, capture_trace(style).config.num_heads)
        assert ((scores >= 0) & (scores <= 1 + 1e-6)).all()
    assert np.isnan(head_scores(capture_trace(style, 1), name)).all()


@each_style
def test_copying_scores_match_training_log(lms, style):
    from explorer.tracing.capture import capture

    lm = lms[style]
    ids = torch.randint(
        6, (32,), generator=torch.Generator().manual_seed(0)
    )  # some many times, some right after each other
    trace, logged = capture(lm, ids.tolist()), copying_head_scores(lm, ids[None])
    assert_allclose(head_scores(trace, "previous_token"), logged["previous_token"], atol=1e-5)
    assert_allclose(head_scores(trace, "induction"), logged["induction"], atol=1e-5)


ROLLED_IDS = [5, 6, 5, 5, 7, 6, 5, 9, 6, 6]

every_score = subtest_each("name", HEAD_SCORES)
each_hide_first = subtest_each("hide_first", [False, True], ids=["shown", "hidden"])


@pytest.fixture
def repeating_trace(lms):
    """Return a run in which tokens repeat."""
    return capture(lms["rope"], ROLLED_IDS)


def with_pattern(trace, pattern):
    """Return the run with the same attention pattern (T, T) in every head."""
    heads = np.stack([pattern] * trace.config.num_heads).astype(np.float32)
    values = {f"blocks.{layer}.attn.pattern": heads for layer in range(trace.config.num_layers)}
    return replace(trace, values=trace.values | values)


@every_score
@each_hide_first
def test_uniform_score_is_score_of_uniform_head(repeating_trace, name, hide_first):
    even = np.tri(len(ROLLED_IDS)) / np.arange(1, len(ROLLED_IDS) + 1)[:, None]
    even_score = chance_head_scores(repeating_trace, name, hide_first).uniform_scores
    assert_allclose(
        head_scores(with_pattern(repeating_trace, even), name, hide_first), np.stack([even_score] * 3, axis=-1)
    )


@each_hide_first
@subtest_each("name", ["previous_token", "spread"])
def test_uniform_score_respects_attention_window(lms, name, hide_first):
    trace = capture(lms["local"], ROLLED_IDS)
    even = np.stack([visibility_mask(trace.config, layer, len(ROLLED_IDS)) for layer in (0, 1)]).astype(float)
    even /= even.sum(-1, keepdims=True)
    heads = {f"blocks.{i}.attn.pattern": np.stack([even[i]] * 3) for i in (0, 1)}
    built, even_scores = (
        replace(trace, values={**trace.values, **heads}),
        chance_head_scores(trace, name, hide_first).uniform_scores,
    )
    assert_allclose(head_scores(built, name, hide_first), np.stack([even_scores] * 3, axis=-1), rtol=1e-6)
    assert even_scores[0] < even_scores[1] or name == "spread"  # the window has fewer keys


@every_score
@each_hide_first
def test_uniform_head_does_not_exceed_chance(repeating_trace, name, hide_first):
    trace = with_pattern(repeating_trace, np.tri(len(ROLLED_IDS)) / np.arange(1, len(ROLLED_IDS) + 1)[:, None])
    exceeds = chance_head_scores(trace, name, hide_first).is_exceeded(head_scores(trace, name, hide_first))
    assert exceeds.all() if name == "spread" else not exceeds.any()


@subtest_each("name", ["previous_token", "self", "duplicate_token", "induction"])
@each_hide_first
def test_ideal_head_exceeds_chance(repeating_trace, name, hide_first):
    targets = target_mask(repeating_trace, name).astype(float)
    targets[:, 0] += 1e-3  # for queries without target keys
    trace = with_pattern(repeating_trace, targets / targets.sum(-1, keepdims=True))
    assert chance_head_scores(trace, name, hide_first).is_exceeded(head_scores(trace, name, hide_first)).all()


@subtest_each("name", ["duplicate_token", "induction", "previous_token"])
@each_hide_first
def test_chance_quantiles_match_all_shifts(lms, name, hide_first):
    """Compare with the scores of every possible rotation of every counted row, in a short run."""
    trace = capture(lms["rope"], [5, 6, 5, 7, 5])
    patterns = trace.stack("blocks.*.attn.pattern").astype(float)
    patterns = without_first_key(patterns) if hide_first else patterns
    targets, first = target_mask(trace, name), int(hide_first)
    rows = [query for query in range(1, 5) if targets[query].any()]
    scores = []
    for turns in product(*(range(query + 1 - first) for query in rows)):
        per_query = [
            np.roll(patterns[..., query, first : query + 1], turn, -1) @ targets[query, first : query + 1]
            for query, turn in zip(rows, turns, strict=True)
        ]
        scores.append(np.mean(per_query, axis=0))
    baseline = chance_head_scores(trace, name, hide_first)
    assert baseline.queries == len(rows)
    assert_allclose(np.mean(scores, axis=0), np.stack([baseline.uniform_scores] * 3, axis=-1), atol=1e-6)
    low, high = (np.quantile(scores, share, axis=0, method="inverted_cdf") for share in (0.9, 0.98))
    assert (low - 1e-6 <= baseline.quantiles).all() and (baseline.quantiles <= high + 1e-6).all()


def test_single_counted_query_does_not_exceed_chance(lms):
    """One repetition with six keys before it: one rotation in six matches."""
    trace = capture(lms["rope"], [1, 2, 3, 4, 5, 1])
    trace = with_pattern(trace, np.eye(6)[[0, 0, 0, 0, 0, 1]])
    assert_allclose(head_scores(trace, "induction"), 1)
    baseline = chance_head_scores(trace, "induction")
    assert baseline.queries == 1 and baseline.uniform_scores == pytest.approx([1 / 6] * 2)
    assert not baseline.is_exceeded(head_scores(trace, "induction")).any()


def test_no_counted_query_gives_no_chance_score(lms):
    trace = capture(lms["rope"], [1, 2, 3])
    assert chance_head_scores(trace, "induction") is None
    assert chance_head_scores(capture(lms["rope"], [1]), "spread") is None


def test_chance_scores_are_cached_and_deterministic(repeating_trace):
    repeated = replace(repeating_trace)
    assert chance_head_scores(repeating_trace, "induction") is chance_head_scores(repeating_trace, "induction")
    assert (
        chance_head_scores(repeating_trace, "induction").quantiles
        == chance_head_scores(repeated, "induction").quantiles
    ).all()
