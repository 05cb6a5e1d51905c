"""Parity of the post-norm model (Vaswani et al.) with PyTorch's encoder under a causal mask."""

import math

import pytest
import torch
from torch import nn

from model.layers.positions import SinusoidalPositionalEmbedding


@pytest.fixture
def post_norm_lm(make_lm):
    return make_lm(
        norm="layernorm",
        norm_placement="post",
        norm_eps=1e-3,
        position="sinusoidal",
        ffn="relu",
        bias=True,
        scale_embeddings=True,
        tie_embeddings=True,
    )


def encoder_layer(lm, block) -> nn.TransformerEncoderLayer:
    """Return PyTorch's layer with the weights of our block."""
    c, attn = lm.config, block.attn
    layer = nn.TransformerEncoderLayer(
        c.d_model, c.num_heads, c.d_ff, dropout=0.0, layer_norm_eps=c.norm_eps, batch_first=True, norm_first=False
    )
    inputs = attn.q_proj, attn.k_proj, attn.v_proj
    weights = {
        "self_attn.in_proj_weight": torch.cat([projection.weight for projection in inputs]),
        "self_attn.in_proj_bias": torch.cat([projection.bias for projection in inputs]),
    }
    renamed = {
        "self_attn.out_proj": attn.o_proj,
        "linear1": block.ffn.up_proj,
        "linear2": block.ffn.down_proj,
        "norm1": block.attn_norm,
        "norm2": block.ffn_norm,
    }
    for name, module in renamed.items():
        weights |= {f"{name}.weight": module.weight, f"{name}.bias": module.bias}
    layer.load_state_dict(weights)
    return layer.eval()


@torch.no_grad()
def test_streams_and_logits_match_pytorch(post_norm_lm, token_ids, record):
    c, length = post_norm_lm.config, token_ids.shape[1]
    values = record(post_norm_lm, token_ids, post_norm_lm.taps)
    positions = SinusoidalPositionalEmbedding(c.d_model)(torch.arange(length))
    x = post_norm_lm.token_embedding.weight[token_ids] * math.sqrt(c.d_model) + positions
    mask = nn.Transformer.generate_square_subsequent_mask(length)
    torch.testing.assert_close(values["embed"], x)
    for i, block in enumerate(post_norm_lm.blocks):
        x = encoder_layer(post_norm_lm, block)(x, src_mask=mask)
        torch.testing.assert_close(values[f"blocks.{i}.ffn_norm"], x, atol=1e-4, rtol=1e-4)
    logits = x @ post_norm_lm.token_embedding.weight.T
    torch.testing.assert_close(values["logits"], logits, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(post_norm_lm(token_ids), logits, atol=1e-4, rtol=1e-4)  # the fused path
