import pytest
import torch

from model.layers.attention import MultiHeadSelfAttention, SeparateHeadsSelfAttention, join_heads, separate_heads
from model.layers.norms import LayerNorm
from model.layers.positions import RotaryPositionalEmbedding


@pytest.fixture
def joined():
    """Attention with 3 heads of width 4 and patterns far from uniform."""
    attention = MultiHeadSelfAttention(d_model=12, num_heads=3).eval()
    for parameter in attention.parameters():
        parameter.data *= 3
    return attention


@pytest.mark.parametrize("positions", [None, torch.arange(7), torch.tensor([[3, 1, 4, 1, 5, 9, 2], [6] * 7])], ids=str)
def test_is_the_same_function_with_the_same_number_of_weights(joined, positions):
    separate, x = separate_heads(joined), torch.randn(2, 7, 12)
    rotation = None
    if positions is not None:
        rotation = RotaryPositionalEmbedding(10.0, 4, 10)(positions.expand(2, 7))
    torch.testing.assert_close(separate(x, rotation), joined(x, rotation), atol=1e-5, rtol=1e-5)
    sizes = [sum(p.numel() for p in module.parameters()) for module in (separate, joined)]
    assert sizes[0] == sizes[1] == 4 * 12 * 12


def test_taking_apart_and_joining_again_gives_the_same_weights(joined):
    rejoined = join_heads(separate_heads(joined)).state_dict()
    assert rejoined.keys() == joined.state_dict().keys()
    assert all(torch.equal(rejoined[name], weight) for name, weight in joined.state_dict().items())


def test_joining_heads_drawn_apart_gives_the_same_function():
    separate, x = SeparateHeadsSelfAttention(12, 3), torch.randn(2, 7, 12)
    torch.testing.assert_close(join_heads(separate)(x), separate(x), atol=1e-5, rtol=1e-5)


def test_the_weights_are_a_copy(joined):
    separate, x = separate_heads(joined), torch.randn(1, 4, 12)
    before = separate(x)
    joined.v_proj.weight.data.zero_()
    assert torch.equal(separate(x), before) and not torch.equal(joined(x), before)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"bias": True}, "without biases, norms and shared keys"),
        ({"qkv_bias": True}, "without biases, norms and shared keys"),
        ({"qk_norm": LayerNorm}, "without biases, norms and shared keys"),
        ({"num_kv_heads": 1}, "without biases, norms and shared keys"),
        ({"rope_layout": "half_split"}, "that rotates adjacent dimensions"),
        ({"score_cap": 2.0}, "to all tokens, its scores divided by √d and not capped,"),
    ],
    ids=str,
)
def test_other_attention_cannot_be_taken_apart(settings, message):
    with pytest.raises(ValueError, match=f"only attention {message} can be taken apart"):
        separate_heads(MultiHeadSelfAttention(12, 3, **settings))
