import pytest
import torch
import torch.nn.functional as F

from model.layers import multihead_attention
from model.layers.multihead_attention import MultiHeadSelfAttention, split_heads


@pytest.fixture
def attention():
    """3 heads of width 4, with weights large enough that patterns are far from uniform."""
    attention = MultiHeadSelfAttention(d_model=12, num_heads=3).eval()
    for parameter in attention.parameters():
        parameter.data *= 3
    return attention


def test_agrees_with_torch_multi_head_attention(attention):
    x = torch.randn(2, 7, 12)
    in_proj = torch.cat([attention.q_proj.weight, attention.k_proj.weight, attention.v_proj.weight])
    expected, patterns = F.multi_head_attention_forward(
        *[x.transpose(0, 1)] * 3,
        embed_dim_to_check=12,
        num_heads=3,
        in_proj_weight=in_proj,
        in_proj_bias=None,
        bias_k=None,
        bias_v=None,
        add_zero_attn=False,
        dropout_p=0.0,
        out_proj_weight=attention.o_proj.weight,
        out_proj_bias=None,
        attn_mask=torch.ones(7, 7, dtype=torch.bool).triu(1),  # True is hidden there
        average_attn_weights=False,
    )
    torch.testing.assert_close(attention(x), expected.transpose(0, 1), atol=1e-5, rtol=1e-5)

    seen = []
    attention.pattern.register_forward_hook(lambda tap, inputs, output: seen.append(output))
    attention(x)
    torch.testing.assert_close(seen[0], patterns, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("watched", ["scores", "pattern"])
@pytest.mark.parametrize("length", [1, 2, 7])
def test_watching_does_not_change_the_output(attention, watched, length):
    x = torch.randn(2, length, 12)
    unwatched = attention(x)
    handle = getattr(attention, watched).register_forward_hook(lambda tap, inputs, output: None)
    assert (attention(x) - unwatched).abs().max() <= 1e-5
    handle.remove()


def test_scores_are_formed_only_while_somebody_looks(attention, monkeypatch):
    x = torch.randn(2, 7, 12)
    monkeypatch.setattr(multihead_attention, "attention_scores", lambda q, k: pytest.fail("formed the scores"))
    attention(x)
    monkeypatch.undo()
    monkeypatch.setattr(multihead_attention, "fused_attention", lambda *args: pytest.fail("ran the fused kernel"))
    handle = attention.pattern.register_forward_hook(lambda tap, inputs, output: None)
    attention(x)
    handle.remove()
    with pytest.raises(pytest.fail.Exception, match="ran the fused kernel"):
        attention(x)


def test_a_hook_on_the_scores_changes_what_follows(attention):
    """With all scores equal, each query averages the values up to its own."""
    x = torch.randn(2, 7, 12)
    z = []
    attention.scores.register_forward_hook(lambda tap, inputs, output: torch.zeros_like(output))
    attention.z.register_forward_hook(lambda tap, inputs, output: z.append(output))
    attention(x)
    v = split_heads(attention.v_proj(x), 3)
    torch.testing.assert_close(z[0], v.cumsum(-2) / torch.arange(1, 8)[:, None])
