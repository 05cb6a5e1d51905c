from dataclasses import replace

import numpy as np
import pytest

from explorer.analysis.token_contributions import attention_rollout


def by_definition(patterns: np.ndarray) -> np.ndarray:
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


@pytest.mark.parametrize("length", [1, 12, 32])
def test_rollout_is_that_of_the_paper(trace_of, style, length):
    trace = trace_of(style, length)
    expected = by_definition(trace.stack("blocks.*.attn.pattern"))
    for query in range(length):
        np.testing.assert_allclose(attention_rollout(trace, query), expected[query], atol=1e-7)


def test_it_sums_to_1_and_sees_nothing_after_the_query(trace):
    for query in range(len(trace)):
        weights = attention_rollout(trace, query)
        assert weights.sum() == pytest.approx(1, abs=1e-12)
        assert (weights >= 0).all()
        assert not weights[query + 1 :].any()


def test_heads_that_look_at_the_token_before_reach_one_further_a_layer(rope_trace):
    """Two layers: ¼ stays, ½ comes from one position back, ¼ from two positions back."""
    before = np.eye(12, k=-1)
    before[0, 0] = 1
    values = {name: np.stack([before] * 3) for name in rope_trace.values if name.endswith(".pattern")}
    weights = attention_rollout(replace(rope_trace, values=values), 7)
    np.testing.assert_allclose(weights[[7, 6, 5]], [0.25, 0.5, 0.25])
