import pytest
import torch

from model.layers.attention import MultiHeadSelfAttention, softcap


def test_small_numbers_stay_and_large_ones_end_at_the_cap():
    x = torch.tensor([0.01, -0.02, 3.0, -1e6, 1e6])
    torch.testing.assert_close(softcap(x, 5.0)[:2], x[:2], rtol=1e-5, atol=0)
    assert softcap(x, 5.0)[3:].tolist() == [-5, 5]
    assert softcap(x, 5.0)[2] == pytest.approx(2.6852, abs=1e-4)  # 5 tanh 0.6
    assert softcap(x, None) is x


@pytest.mark.parametrize("watched", [False, True], ids=["unwatched", "watched"])
def test_scores_go_into_the_softmax_capped(watched):
    attention = MultiHeadSelfAttention(12, 3, score_cap=0.5).eval()
    if watched:
        attention.scores.register_forward_hook(lambda tap, inputs, output: None)
    q, k, v = torch.randn(3, 2, 3, 7, 4) * 3
    scores = (0.5 * torch.tanh(q @ k.mT / 2 / 0.5)).masked_fill(~torch.ones(7, 7).tril().bool(), -torch.inf)
    torch.testing.assert_close(attention.attend(q, k, v), scores.softmax(-1) @ v)
