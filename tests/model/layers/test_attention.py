import math

import pytest
import torch
import torch.nn.functional as F

from model.layers.attention import (
    attention_pattern,
    attention_scores,
    causal_mask,
    fused_attention,
    scaled_dot_product_attention,
)
from model.layers.softmax import softmax


@pytest.fixture
def qkv():
    """2 sequences, 3 heads; 4 queries and 6 keys of width 8, values of width 5."""
    return 2 * torch.randn(2, 3, 4, 8), 2 * torch.randn(2, 3, 6, 8), torch.randn(2, 3, 6, 5)


def test_a_query_sees_its_own_position_and_those_before():
    assert causal_mask(3, 3).tolist() == [[True, False, False], [True, True, False], [True, True, True]]


def test_queries_are_the_last_of_the_positions():
    assert causal_mask(2, 4).tolist() == [[True, True, True, False], [True, True, True, True]]
    assert causal_mask(1, 4).tolist() == [[True, True, True, True]]


@pytest.mark.parametrize("mask", [None, causal_mask(4, 6)], ids=["unmasked", "causal"])
def test_agrees_with_torch(qkv, mask):
    expected = F.scaled_dot_product_attention(*qkv, attn_mask=mask)
    torch.testing.assert_close(scaled_dot_product_attention(*qkv, mask), expected, atol=1e-5, rtol=1e-5)


def test_scores_are_dot_products_over_root_d(qkv):
    q, k, _ = qkv
    expected = torch.einsum("bhqd,bhkd->bhqk", q, k) / math.sqrt(8)
    torch.testing.assert_close(attention_scores(q, k), expected)


def test_the_pattern_is_our_softmax_of_the_masked_scores(qkv):
    mask = causal_mask(4, 6)
    scores = attention_scores(*qkv[:2])
    pattern = attention_pattern(scores, mask)
    torch.testing.assert_close(pattern, softmax(scores.masked_fill(~mask, -math.inf)))
    assert (pattern[..., ~mask] == 0).all()


@pytest.mark.parametrize("num_queries", [1, 3, 6])
def test_the_fused_kernel_agrees_with_the_formula(num_queries):
    q, k, v = 2 * torch.randn(2, 3, num_queries, 8), 2 * torch.randn(2, 3, 6, 8), torch.randn(2, 3, 6, 8)
    expected = scaled_dot_product_attention(q, k, v, causal_mask(num_queries, 6))
    assert (fused_attention(q, k, v) - expected).abs().max() <= 1e-5
