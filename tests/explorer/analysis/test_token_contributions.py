"""Token contributions: each of the four methods by its formula, and their agreement."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from explorer.analysis.token_contributions import (
    TokenContributions,
    attention_rollout,
    ranks_with_ties,
    token_contributions,
)
from tests.subtest_loops import each_style, subtest_each


@each_style
def test_each_method_matches_its_formula(trace):
    contributions = token_contributions(trace, 9, 33, 7)
    arrays = trace.token_contributions(9, 33, 7)
    assert_allclose(
        contributions.by_method["gradient"], [x @ g for x, g in zip(arrays["embed"], arrays["slope"], strict=True)]
    )
    path = arrays["embed"] - arrays["baseline"]
    assert_allclose(
        contributions.by_method["integrated"], [x @ g for x, g in zip(path, arrays["mean_slope"], strict=True)]
    )
    assert_allclose(contributions.by_method["rollout"], attention_rollout(trace, 9)[:10])
    assert_allclose(contributions.by_method["knock_out"][:-1], float(arrays["f"]) - arrays["without"][:-1])
    assert np.isnan(contributions.by_method["knock_out"][-1])
    lead = trace["logits"][9, 33] - trace["logits"][9, 7]
    assert contributions.f == pytest.approx(lead, abs=1e-4)
    assert contributions.completeness_error == pytest.approx(
        contributions.by_method["integrated"].sum() - contributions.f + contributions.f_baseline
    )


def test_agreement_is_spearman_correlation():
    assert ranks_with_ties(np.array([3.0, 1.0, 3.0, -2.0])).tolist() == [2.5, 1.0, 2.5, 0.0]
    values_by_method = {"gradient": np.array([1.0, 2, 3, 4, 99]), "knock_out": np.array([10.0, 30, 20, 40, np.nan])}
    contributions = TokenContributions(values_by_method | {"rollout": np.ones(5)}, 0.0, 0.0, {})
    assert contributions.agreement("gradient", "knock_out") == pytest.approx(0.8)  # 1 − 6 Σ d² / (n (n² − 1)), Σ d² = 2
    assert np.isnan(contributions.agreement("gradient", "rollout"))
    short = TokenContributions({name: values[-4:] for name, values in values_by_method.items()}, 0.0, 0.0, {})
    assert np.isnan(short.agreement("gradient", "knock_out"))


@each_style
def test_contributions_require_model(trace):
    with pytest.raises(ValueError, match="knows none"):
        token_contributions(replace(trace, model=None), 9, 33)


def rollout_by_definition(patterns: np.ndarray) -> np.ndarray:
    """Attention rollout, (L, H, T, T) -> (T, T), by its definition (Abnar & Zuidema 2020, eq. 1).

    Ã(l_i) = A(l_i) Ã(l_(i-1)) if i > j, A(l_i) if i = j, where A = ½ W_att + ½ I with rows normalised, and W_att is the
    mean over heads.
    """
    rolled = None
    for layer in patterns.astype(np.float64):
        attention = 0.5 * layer.mean(0) + 0.5 * np.eye(layer.shape[-1])
        attention /= attention.sum(-1, keepdims=True)
        rolled = attention if rolled is None else attention @ rolled
    return rolled


@each_style
@subtest_each("length", [1, 12, 32])
def test_rollout_matches_paper(capture_trace, style, length):
    trace = capture_trace(style, length)
    expected = rollout_by_definition(trace.stack("blocks.*.attn.pattern"))
    for query in range(length):
        np.testing.assert_allclose(attention_rollout(trace, query), expected[query], atol=1e-7)


@each_style
def test_rollout_sums_to_1_and_is_causal(trace):
    for query in range(len(trace)):
        weights = attention_rollout(trace, query)
        assert weights.sum() == pytest.approx(1, abs=1e-12)
        assert (weights >= 0).all()
        assert not weights[query + 1 :].any()


def test_previous_token_heads_reach_one_position_per_layer(rope_trace):
    """Two layers: ¼ stays, ½ comes from one position back, ¼ from two positions back."""
    before = np.eye(12, k=-1)
    before[0, 0] = 1
    values = {name: np.stack([before] * 3) for name in rope_trace.values if name.endswith(".pattern")}
    weights = attention_rollout(replace(rope_trace, values=values), 7)
    np.testing.assert_allclose(weights[[7, 6, 5]], [0.25, 0.5, 0.25])
