import torch
import torch.nn.functional as F

from model.layers.feed_forward import GEGLU


def test_is_the_product_gated_by_gelu_s_approximation_projected_down():
    ffn, x = GEGLU(6, 10), torch.randn(2, 3, 6)
    w1, w3, w2 = ffn.gate_proj.weight, ffn.up_proj.weight, ffn.down_proj.weight
    gate = F.gelu(F.linear(x, w1), approximate="tanh")
    torch.testing.assert_close(ffn(x), F.linear(gate * F.linear(x, w3), w2))
