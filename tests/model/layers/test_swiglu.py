import torch
import torch.nn.functional as F

from model.layers.feed_forward import SwiGLU


def test_is_the_gated_product_projected_down():
    ffn, x = SwiGLU(6, 10), torch.randn(2, 3, 6)
    w1, w3, w2 = ffn.gate_proj.weight, ffn.up_proj.weight, ffn.down_proj.weight
    torch.testing.assert_close(ffn(x), F.linear(F.silu(F.linear(x, w1)) * F.linear(x, w3), w2))


def test_dropout_acts_on_the_output_while_training():
    ffn, x = SwiGLU(6, 10, dropout=0.5), torch.randn(200, 6)
    assert ((ffn.train()(x) == 0).float().mean() - 0.5).abs() < 0.05
    assert (ffn.eval()(x) != 0).all()
