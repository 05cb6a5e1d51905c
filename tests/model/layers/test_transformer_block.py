import torch

from model.layers.transformer_block import TransformerBlock


def test_adds_attention_then_feed_forward_each_of_the_normalised_stream(tiny_config):
    block, x = TransformerBlock(tiny_config).eval(), torch.randn(2, 5, tiny_config.d_model)
    block.attn_norm.weight.data.uniform_(0.5, 2)
    block.ffn_norm.weight.data.uniform_(0.5, 2)
    middle = x + block.attn(block.attn_norm(x))
    torch.testing.assert_close(block(x), middle + block.ffn(block.ffn_norm(middle)))


def test_leaves_the_stream_as_it_is_where_both_sublayers_write_nothing(tiny_config):
    block, x = TransformerBlock(tiny_config).eval(), torch.randn(2, 5, tiny_config.d_model)
    block.attn.o_proj.weight.data.zero_()
    block.ffn.down_proj.weight.data.zero_()
    assert torch.equal(block(x), x)
