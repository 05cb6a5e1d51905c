import pytest
import torch
import torch.nn.functional as F

from model.layers.linear import Embedding


def test_looks_up_rows():
    embedding, ids = Embedding(11, 4), torch.tensor([[3, 0, 10], [3, 3, 1]])
    torch.testing.assert_close(embedding(ids), F.embedding(ids, embedding.weight), rtol=0, atol=0)
    assert embedding.weight.shape == (11, 4)


def test_an_id_outside_the_table_is_an_error():
    with pytest.raises(IndexError):
        Embedding(11, 4)(torch.tensor([11]))


def test_starts_from_a_standard_normal_distribution_cut_at_three():
    weight = Embedding(500, 100).weight.detach()
    assert 2.9 < weight.abs().max() <= 3
    assert abs(weight.mean()) < 0.02
    assert weight.std().item() == pytest.approx(0.98658, rel=0.015)  # of a standard normal cut at 3
