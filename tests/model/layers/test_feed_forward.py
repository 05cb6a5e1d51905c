from functools import partial

import pytest
import torch
import torch.nn.functional as F

from model.layers.feed_forward import FeedForward
from model.layers.transformer_block import FEED_FORWARDS

ACTIVATIONS = {
    "relu": F.relu,
    "relu2": lambda x: F.relu(x) ** 2,
    "gelu": F.gelu,
    "gelu_tanh": partial(F.gelu, approximate="tanh"),
}


@pytest.mark.parametrize("bias", [False, True], ids=["without bias", "with bias"])
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_is_the_activated_projection_projected_down(name, bias):
    ffn, x = FEED_FORWARDS[name](6, 10, bias), 2 * torch.randn(2, 3, 6)
    for parameter in ffn.parameters():
        parameter.data.normal_()  # biases start at 0
    up, down = ffn.up_proj, ffn.down_proj
    expected = F.linear(ACTIVATIONS[name](F.linear(x, up.weight, up.bias)), down.weight, down.bias)
    torch.testing.assert_close(ffn(x), expected, atol=1e-5, rtol=1e-5)
    assert (up.bias is not None) == (down.bias is not None) == bias


def test_the_taps_hold_the_steps():
    ffn, x, recorded = FeedForward(torch.relu, 6, 10, bias=True), torch.randn(2, 3, 6), {}
    for name in ("up", "hidden", "out"):
        getattr(ffn, name).register_forward_hook(lambda tap, inputs, output, name=name: recorded.update({name: output}))
    y = ffn(x)
    assert torch.equal(recorded["up"], ffn.up_proj(x))
    assert torch.equal(recorded["hidden"], recorded["up"].relu())
    assert torch.equal(recorded["out"], y)


def test_dropout_acts_on_the_output_while_training():
    ffn, x = FeedForward(torch.relu, 6, 10, bias=True, dropout=0.5), torch.randn(200, 6)
    ffn.down_proj.bias.data.fill_(100)  # else a ReLU layer could put out a 0 of its own
    assert ((ffn.train()(x) == 0).float().mean() - 0.5).abs() < 0.05
    assert (ffn.eval()(x) != 0).all()
