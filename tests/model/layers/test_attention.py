import math

import pytest
import torch
import torch.nn.functional as F

from model.layers.attention import (
    MultiHeadSelfAttention,
    additive_causal_mask,
    attention_pattern,
    attention_scores,
    causal_mask,
    fused_attention,
    padding_mask,
    scaled_dot_product_attention,
    softcap,
    softmax,
)
from model.layers.positions import RotaryPositionalEmbedding, rotate_adjacent
from tests.subtest_loops import subtest_each


@pytest.fixture
def qkv():
    """Queries, keys and values: 2 sequences, 3 heads, 4 queries and 6 keys of width 8, values of width 5."""
    return 2 * torch.randn(2, 3, 4, 8), 2 * torch.randn(2, 3, 6, 8), torch.randn(2, 3, 6, 5)


def test_query_sees_itself_and_earlier_positions():
    assert causal_mask(3, 3).tolist() == [[True, False, False], [True, True, False], [True, True, True]]


def test_queries_are_last_positions():
    assert causal_mask(2, 4).tolist() == [[True, True, True, False], [True, True, True, True]]
    assert causal_mask(1, 4).tolist() == [[True, True, True, True]]


@pytest.mark.parametrize("mask", [None, causal_mask(4, 6)], ids=["unmasked", "causal"])
def test_attention_matches_pytorch(qkv, mask):
    expected = F.scaled_dot_product_attention(*qkv, attn_mask=mask)
    torch.testing.assert_close(scaled_dot_product_attention(*qkv, mask), expected, atol=1e-5, rtol=1e-5)


def test_scores_are_dot_products_over_root_d(qkv):
    q, k, _ = qkv
    expected = torch.einsum("bhqd,bhkd->bhqk", q, k) / math.sqrt(8)
    torch.testing.assert_close(attention_scores(q, k), expected)


def test_pattern_is_softmax_of_masked_scores(qkv):
    mask = causal_mask(4, 6)
    scores = attention_scores(*qkv[:2])
    pattern = attention_pattern(scores, mask)
    torch.testing.assert_close(pattern, softmax(scores.masked_fill(~mask, -math.inf)))
    assert (pattern[..., ~mask] == 0).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("window", [None, 2])
def test_additive_mask_matches_boolean_mask(qkv, window, dtype):
    scores = attention_scores(*qkv[:2]).to(dtype)
    added = attention_pattern(scores, additive_causal_mask(4, 6, scores.device, dtype, window))
    assert added.dtype == dtype
    assert torch.equal(added, attention_pattern(scores, causal_mask(4, 6, window=window)))


def test_cached_additive_mask_supports_gradients():
    additive_causal_mask.cache_clear()
    with torch.inference_mode():
        mask = additive_causal_mask(4, 6, torch.device("cpu"), torch.float32)
    assert not mask.is_inference()
    assert additive_causal_mask(4, 6, torch.device("cpu"), torch.float32) is mask


@pytest.mark.parametrize("num_queries", [1, 3, 6])
def test_fused_attention_matches_formula(num_queries):
    q, k, v = 2 * torch.randn(2, 3, num_queries, 8), 2 * torch.randn(2, 3, 6, 8), torch.randn(2, 3, 6, 8)
    expected = scaled_dot_product_attention(q, k, v, causal_mask(num_queries, 6))
    assert (fused_attention(q, k, v) - expected).abs().max() <= 1e-5


def test_padding_mask_marks_first_positions():
    assert padding_mask(torch.tensor([1, 3, 0]), 3).tolist() == [[True, False, False], [True] * 3, [False] * 3]


def test_padding_is_never_attended_to():
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


@subtest_each("padding", PADDINGS.values(), ids=PADDINGS.keys())
@subtest_each("num_queries", [1, 3, 6])
@subtest_each("kv_heads", [1, 3])
def test_padded_fused_attention_matches_formula(num_queries, padding, kv_heads):
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


def test_left_padding_is_equivalent_to_no_padding(qkv):
    q, k, v = (x[:1] for x in qkv)
    padding = torch.tensor([[False, False, True, True, True, True]])
    expected = scaled_dot_product_attention(q, k[:, :, 2:], v[:, :, 2:], causal_mask(4, 4))
    torch.testing.assert_close(scaled_dot_product_attention(q, k, v, causal_mask(4, 6, padding)), expected)


def test_pattern_rows_sum_to_1_or_0(qkv):
    mask = causal_mask(4, 6, torch.tensor([[True] * 6, [False] * 4 + [True] * 2]))
    sums = attention_pattern(attention_scores(*qkv[:2]), mask).sum(-1)  # (B, H, Q)
    torch.testing.assert_close(sums, mask.any(-1).float().expand(2, 3, 4))
    assert sums.min() == 0


@pytest.mark.parametrize(("queries", "keys", "window"), [(6, 6, 3), (2, 6, 3), (1, 6, 2), (6, 6, 9)])
def test_window_covers_last_positions_including_own(queries, keys, window):
    mask = causal_mask(queries, keys, window=window)
    for row in range(queries):
        own_position = keys - queries + row
        assert mask[row].nonzero().flatten().tolist() == list(
            range(max(0, own_position - window + 1), own_position + 1)
        )
    q, k, v = torch.randn(2, 3, queries, 4), torch.randn(2, 3, keys, 4), torch.randn(2, 3, keys, 4)
    fused = fused_attention(q, k, v, divisor=1.5, window=window)
    torch.testing.assert_close(fused, scaled_dot_product_attention(q, k, v, mask, 1.5))


@pytest.mark.parametrize("dim", [-1, 0, 1])
def test_softmax_matches_pytorch(dim):
    x = 5 * torch.randn(3, 4, 5)
    torch.testing.assert_close(softmax(x, dim), torch.softmax(x, dim))


def test_softmax_handles_large_and_masked_logits():
    probabilities = softmax(torch.tensor([1e4, 1e4, -torch.inf]))
    torch.testing.assert_close(probabilities, torch.tensor([0.5, 0.5, 0.0]))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_fully_masked_rows_are_0(dtype):
    x = torch.tensor([[0.0, 1.0, -torch.inf], [-torch.inf] * 3], dtype=dtype)
    probabilities = softmax(x)
    torch.testing.assert_close(probabilities[0], torch.softmax(x[0], -1))
    assert (probabilities[1] == 0).all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_softmax_is_rounded_once(dtype):
    x = (3 * torch.randn(200, 300)).to(dtype)
    exact = torch.softmax(x.double(), -1)
    half_unit = torch.finfo(dtype).eps / 2
    assert ((softmax(x) - exact).abs() <= 1.01 * half_unit * exact.clamp(min=torch.finfo(dtype).tiny)).all()


def test_softcap_keeps_small_and_caps_large_values():
    x = torch.tensor([0.01, -0.02, 3.0, -1e6, 1e6])
    torch.testing.assert_close(softcap(x, 5.0)[:2], x[:2], rtol=1e-5, atol=0)
    assert softcap(x, 5.0)[3:].tolist() == [-5, 5]
    assert softcap(x, 5.0)[2] == pytest.approx(2.6852, abs=1e-4)  # 5 tanh 0.6
    assert softcap(x, None) is x


@pytest.mark.parametrize("watched", [False, True], ids=["unwatched", "watched"])
def test_softmax_receives_capped_scores(watched):
    attention = MultiHeadSelfAttention(12, 3, score_cap=0.5).eval()
    if watched:
        attention.scores.register_forward_hook(lambda tap, inputs, output: None)
    q, k, v = torch.randn(3, 2, 3, 7, 4) * 3
    scores = (0.5 * torch.tanh(q @ k.mT / 2 / 0.5)).masked_fill(~torch.ones(7, 7).tril().bool(), -torch.inf)
    torch.testing.assert_close(attention.attend(q, k, v), scores.softmax(-1) @ v)


@pytest.mark.parametrize("positions", [None, torch.arange(7), torch.tensor([[3, 1, 4, 1, 5, 9, 2], [6] * 7])], ids=str)
def test_heads_are_separate_until_output_projection(positions):
    attention, x = MultiHeadSelfAttention(d_model=12, num_heads=3).eval(), torch.randn(2, 7, 12)
    for parameter in attention.parameters():
        parameter.data *= 3  # patterns far from uniform
    rotation = None if positions is None else RotaryPositionalEmbedding(10.0, 4)(positions.expand(2, 7))
    outputs = []
    for rows in torch.arange(12).chunk(3):  # of each projection, those of one head
        q, k, v = (x @ proj.weight[rows].T for proj in (attention.q_proj, attention.k_proj, attention.v_proj))
        if rotation is not None:
            q, k = rotate_adjacent(q, *rotation), rotate_adjacent(k, *rotation)
        scores = (q @ k.mT / 2).masked_fill(~torch.ones(7, 7).tril().bool(), -torch.inf)
        outputs.append(scores.softmax(-1) @ v)
    expected = torch.cat(outputs, dim=-1) @ attention.o_proj.weight.T
    torch.testing.assert_close(attention(x, rotation), expected, atol=1e-5, rtol=1e-5)
