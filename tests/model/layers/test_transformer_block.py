from dataclasses import replace

import pytest
import torch

from model.layers.transformer_block import (
    BLOCKS,
    OutputNormBlock,
    ParallelBlock,
    PostNormBlock,
    SandwichBlock,
    SharedNormBlock,
    TransformerBlock,
)


@pytest.fixture(params=["rmsnorm", "layernorm"])
def post_norm(request, tiny_config) -> PostNormBlock:
    """A block with random gains and biases, different from their initial values."""
    block = PostNormBlock(replace(tiny_config, norm=request.param, norm_placement="post", bias=True)).eval()
    for parameter in block.parameters():
        if parameter.ndim == 1:
            parameter.data.uniform_(0.5, 2)
    return block


def test_pre_norm_block_matches_formula(tiny_config):
    block, x = TransformerBlock(tiny_config).eval(), torch.randn(2, 5, tiny_config.d_model)
    block.attn_norm.weight.data.uniform_(0.5, 2)
    block.ffn_norm.weight.data.uniform_(0.5, 2)
    middle = x + block.attn(block.attn_norm(x))
    torch.testing.assert_close(block(x), middle + block.ffn(block.ffn_norm(middle)))


def test_block_is_identity_if_sublayers_output_0(tiny_config):
    block, x = TransformerBlock(tiny_config).eval(), torch.randn(2, 5, tiny_config.d_model)
    block.attn.o_proj.weight.data.zero_()
    block.ffn.down_proj.weight.data.zero_()
    assert torch.equal(block(x), x)


def test_post_norm_block_matches_formula(post_norm, tiny_config):
    x = torch.randn(2, 5, tiny_config.d_model)
    middle = post_norm.attn_norm(x + post_norm.attn(x))
    torch.testing.assert_close(post_norm(x), post_norm.ffn_norm(middle + post_norm.ffn(middle)))


def test_post_norm_taps_record_sums_and_norms(post_norm, tiny_config):
    x, recorded = torch.randn(2, 5, tiny_config.d_model), {}
    for name in ("resid_pre", "attn.out", "resid_mid", "attn_norm", "ffn.out", "resid_post", "ffn_norm"):
        module = post_norm.get_submodule(name)
        module.register_forward_hook(lambda module, inputs, output, name=name: recorded.update({name: output}))
    y = post_norm(x)
    assert torch.equal(recorded["resid_pre"], x)
    torch.testing.assert_close(recorded["resid_mid"], x + recorded["attn.out"])
    torch.testing.assert_close(recorded["attn_norm"], post_norm.attn_norm(recorded["resid_mid"]))
    torch.testing.assert_close(recorded["resid_post"], recorded["attn_norm"] + recorded["ffn.out"])
    torch.testing.assert_close(y, post_norm.ffn_norm(recorded["resid_post"]))
    assert torch.equal(y, recorded["ffn_norm"])


def test_pre_and_post_norm_share_weights_but_differ(tiny_config):
    pre, post = (BLOCKS[placement](tiny_config).eval() for placement in ("pre", "post"))
    post.load_state_dict(pre.state_dict())
    x = torch.randn(2, 5, tiny_config.d_model)
    assert (pre(x) - post(x)).abs().max() > 0.1


@pytest.mark.parametrize("ffn", ["swiglu", "relu"])
def test_dropout_acts_on_both_sublayers(tiny_config, ffn):
    block = TransformerBlock(replace(tiny_config, dropout=0.25, ffn=ffn)).train()
    x = torch.randn(20, 30, tiny_config.d_model)
    for sublayer in (block.attn, block.ffn):
        assert (sublayer(x) == 0).float().mean().item() == pytest.approx(0.25, abs=0.02)
    block.eval()
    assert (block.attn(x) != 0).all()


def test_attention_dropout_acts_only_on_patterns(tiny_config):
    block, x = TransformerBlock(replace(tiny_config, attention_dropout=0.25)).train(), torch.randn(2, 9, 24)
    first, second = block.attn(x), block.attn(x)
    assert (first - second).abs().max() > 0.01 and (first[:, 1:] != 0).all()
    assert torch.equal(block.ffn(x), block.ffn(x))
    assert torch.equal(block.eval().attn(x), block.attn(x))


def test_output_norm_block_matches_formula(tiny_config):
    block, x = OutputNormBlock(tiny_config).eval(), torch.randn(2, 5, tiny_config.d_model)
    block.attn_norm.weight.data.uniform_(0.5, 2)
    block.ffn_norm.weight.data.uniform_(0.5, 2)
    middle = x + block.attn_norm(block.attn(x))
    torch.testing.assert_close(block(x), middle + block.ffn_norm(block.ffn(middle)))


def test_sandwich_block_matches_formula(tiny_config):
    block, x = SandwichBlock(tiny_config).eval(), torch.randn(2, 5, tiny_config.d_model)
    for norm in (block.attn_norm, block.attn_out_norm, block.ffn_norm, block.ffn_out_norm):
        norm.weight.data.uniform_(0.5, 2)
    middle = x + block.attn_out_norm(block.attn(block.attn_norm(x)))
    torch.testing.assert_close(block(x), middle + block.ffn_out_norm(block.ffn(block.ffn_norm(middle))))


def test_parallel_block_matches_formula(tiny_config):
    block, x = ParallelBlock(tiny_config).eval(), torch.randn(2, 5, tiny_config.d_model)
    block.attn_norm.weight.data.uniform_(0.5, 2)
    block.ffn_norm.weight.data.uniform_(0.5, 2)
    torch.testing.assert_close(block(x), x + block.attn(block.attn_norm(x)) + block.ffn(block.ffn_norm(x)))


def test_shared_norm_block_matches_formula(tiny_config):
    block, x = SharedNormBlock(tiny_config).eval(), torch.randn(2, 5, tiny_config.d_model)
    block.attn_norm.weight.data.uniform_(0.5, 2)
    y = block.attn_norm(x)
    torch.testing.assert_close(block(x), x + block.attn(y) + block.ffn(y))
