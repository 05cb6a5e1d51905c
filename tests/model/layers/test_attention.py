import math

import pytest
import torch
import torch.nn.functional as F

from model.layers.attention import (
    additive_causal_mask,
    attention_pattern,
    attention_scores,
    causal_mask,
    fused_attention,
    padding_mask,
    scaled_dot_product_attention,
    softmax,
)


@pytest.fixture
def qkv():
    """Queries, keys and values of 2 sequences, 3 heads; 4 queries and 6 keys of width 8, values of width 5."""
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


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("window", [None, 2])
def test_a_mask_may_be_added(qkv, window, dtype):
    scores = attention_scores(*qkv[:2]).to(dtype)
    added = attention_pattern(scores, additive_causal_mask(4, 6, scores.device, dtype, window))
    assert added.dtype == dtype
    assert torch.equal(added, attention_pattern(scores, causal_mask(4, 6, window=window)))


def test_a_mask_first_added_without_gradients_serves_a_pass_with_them():
    additive_causal_mask.cache_clear()
    with torch.inference_mode():
        mask = additive_causal_mask(4, 6, torch.device("cpu"), torch.float32)
    assert not mask.is_inference()
    assert additive_causal_mask(4, 6, torch.device("cpu"), torch.float32) is mask


@pytest.mark.parametrize("num_queries", [1, 3, 6])
def test_the_fused_kernel_agrees_with_the_formula(num_queries):
    q, k, v = 2 * torch.randn(2, 3, num_queries, 8), 2 * torch.randn(2, 3, 6, 8), torch.randn(2, 3, 6, 8)
    expected = scaled_dot_product_attention(q, k, v, causal_mask(num_queries, 6))
    assert (fused_attention(q, k, v) - expected).abs().max() <= 1e-5


def test_the_first_lengths_positions_hold_tokens():
    assert padding_mask(torch.tensor([1, 3, 0]), 3).tolist() == [[True, False, False], [True] * 3, [False] * 3]


def test_nobody_looks_at_padding():
    padding = torch.tensor([[True, True, False], [False, True, True]])
    mask = causal_mask(2, 3, padding)
    assert mask.shape == (2, 1, 2, 3)
    assert mask[0, 0].tolist() == [[True, True, False], [True, True, False]]
    assert mask[1, 0].tolist() == [[False, True, False], [False, True, True]]


PADDINGS = {
    "right": torch.tensor([[True] * 6, [True] * 4 + [False] * 2]),
    "left": torch.tensor([[True] * 6, [False] * 4 + [True] * 2]),
    "throughout": torch.tensor([[True] * 6, [False] * 6]),
}


@pytest.mark.parametrize("padding", PADDINGS.values(), ids=PADDINGS.keys())
@pytest.mark.parametrize("num_queries", [1, 3, 6])
@pytest.mark.parametrize("kv_heads", [1, 3])
def test_padded_the_fused_kernel_agrees_with_the_formula(num_queries, padding, kv_heads):
    """Queries before the first token may attend to nothing: zeros, and finite gradients."""
    q, k, v = (torch.randn(2, heads, T, 8) * 2 for heads, T in ((3, num_queries), (kv_heads, 6), (kv_heads, 6)))
    outputs, gradients = [], []
    mask = causal_mask(num_queries, 6, padding)
    for attend in (lambda *qkv: fused_attention(*qkv, padding), lambda *qkv: scaled_dot_product_attention(*qkv, mask)):
        leaves = [x.clone().requires_grad_() for x in (q, k, v)]
        outputs.append(attend(*leaves))
        outputs[-1].square().sum().backward()
        gradients.append([leaf.grad for leaf in leaves])
    torch.testing.assert_close(*outputs, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(*gradients, atol=1e-4, rtol=1e-4)
    nowhere = ~mask.any(-1)  # (B, 1, Q)
    assert all((output.transpose(1, 2)[nowhere.squeeze(1)] == 0).all() for output in outputs)


def test_padding_hides_as_if_it_were_not_there(qkv):
    q, k, v = (x[:1] for x in qkv)
    padding = torch.tensor([[False, False, True, True, True, True]])
    expected = scaled_dot_product_attention(q, k[:, :, 2:], v[:, :, 2:], causal_mask(4, 4))
    torch.testing.assert_close(scaled_dot_product_attention(q, k, v, causal_mask(4, 6, padding)), expected)


def test_patterns_sum_to_one_or_to_nothing(qkv):
    mask = causal_mask(4, 6, torch.tensor([[True] * 6, [False] * 4 + [True] * 2]))
    sums = attention_pattern(attention_scores(*qkv[:2]), mask).sum(-1)  # (B, H, Q)
    torch.testing.assert_close(sums, mask.any(-1).float().expand(2, 3, 4))
    assert sums.min() == 0


@pytest.mark.parametrize(("queries", "keys", "window"), [(6, 6, 3), (2, 6, 3), (1, 6, 2), (6, 6, 9)])
def test_a_window_is_of_the_last_tokens_with_ones_own(queries, keys, window):
    mask = causal_mask(queries, keys, window=window)
    for row in range(queries):
        own_position = keys - queries + row
        assert mask[row].nonzero().flatten().tolist() == list(
            range(max(0, own_position - window + 1), own_position + 1)
        )
    q, k, v = torch.randn(2, 3, queries, 4), torch.randn(2, 3, keys, 4), torch.randn(2, 3, keys, 4)
    fused = fused_attention(q, k, v, divisor=1.5, window=window)
    torch.testing.assert_close(fused, scaled_dot_product_attention(q, k, v, mask, 1.5))
