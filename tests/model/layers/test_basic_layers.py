import math

import pytest
import torch
import torch.nn.functional as F

from model.layers.basic_layers import Dropout, Embedding, Linear


def test_linear_multiplies_by_transposed_weight():
    linear, x = Linear(5, 7), torch.randn(2, 3, 5)
    torch.testing.assert_close(linear(x), x @ linear.weight.T)
    assert linear.weight.shape == (7, 5)
    assert [name for name, _ in linear.named_parameters()] == ["weight"]


@pytest.mark.parametrize(("d_in", "d_out"), [(300, 200), (50, 1200)])
def test_linear_initialisation_is_truncated_normal(d_in, d_out):
    weight = Linear(d_in, d_out).weight.detach() / math.sqrt(2 / (d_in + d_out))
    assert 2.9 < weight.abs().max() <= 3.0001
    assert abs(weight.mean()) < 0.02
    assert weight.std().item() == pytest.approx(0.98658, rel=0.015)  # of a standard normal cut at 3
    assert (weight.abs() < 1).float().mean().item() == pytest.approx(0.68269 / 0.99730, abs=0.01)


def test_bias_starts_at_0_and_is_added():
    linear, x = Linear(5, 7, bias=True), torch.randn(2, 3, 5)
    assert torch.equal(linear.bias, torch.zeros(7))
    linear.bias.data = torch.randn(7)
    torch.testing.assert_close(linear(x), x @ linear.weight.T + linear.bias)


def test_embedding_returns_rows():
    embedding, ids = Embedding(11, 4), torch.tensor([[3, 0, 10], [3, 3, 1]])
    torch.testing.assert_close(embedding(ids), F.embedding(ids, embedding.weight), rtol=0, atol=0)
    assert embedding.weight.shape == (11, 4)


def test_embedding_refuses_unknown_id():
    with pytest.raises(IndexError):
        Embedding(11, 4)(torch.tensor([11]))


def test_embedding_initialisation_is_truncated_normal():
    weight = Embedding(500, 100).weight.detach()
    assert 2.9 < weight.abs().max() <= 3
    assert abs(weight.mean()) < 0.02
    assert weight.std().item() == pytest.approx(0.98658, rel=0.015)  # of a standard normal cut at 3


def test_dropout_zeroes_share_and_keeps_mean():
    y = Dropout(0.2).train()(torch.ones(200, 200))
    assert (y == 0).float().mean().item() == pytest.approx(0.2, abs=0.01)
    torch.testing.assert_close(y[y != 0], torch.full_like(y[y != 0], 1 / 0.8))


@pytest.mark.parametrize("dropout", [Dropout(0.2).eval(), Dropout(0.0).train()], ids=["in eval mode", "with p = 0"])
def test_inactive_dropout_is_identity(dropout):
    x = torch.randn(10, 10)
    assert torch.equal(dropout(x), x)
