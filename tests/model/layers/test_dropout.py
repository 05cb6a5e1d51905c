import pytest
import torch

from model.layers.linear import Dropout


def test_zeroes_the_given_share_and_keeps_the_mean():
    y = Dropout(0.2).train()(torch.ones(200, 200))
    assert (y == 0).float().mean().item() == pytest.approx(0.2, abs=0.01)
    torch.testing.assert_close(y[y != 0], torch.full_like(y[y != 0], 1 / 0.8))


@pytest.mark.parametrize("dropout", [Dropout(0.2).eval(), Dropout(0.0).train()], ids=["in eval mode", "with p = 0"])
def test_is_the_identity(dropout):
    x = torch.randn(10, 10)
    assert torch.equal(dropout(x), x)
