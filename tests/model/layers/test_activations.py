import torch
import torch.nn.functional as F

from model.layers.activations import silu


def test_silu_agrees_with_torch():
    x = torch.linspace(-30, 30, 601)
    torch.testing.assert_close(silu(x), F.silu(x))
