import pytest
import torch

from model.layers.basic_layers import LayerNorm, RMSNorm, layer_norm


@pytest.mark.parametrize("scale", [1e-3, 1, 1e3])
def test_rmsnorm_matches_pytorch(scale):
    ours, reference = RMSNorm(8, eps=1e-4), torch.nn.RMSNorm(8, eps=1e-4)
    gain = torch.randn(8)
    ours.load_state_dict({"weight": gain})
    reference.load_state_dict({"weight": gain})
    x = scale * torch.randn(2, 5, 8)
    torch.testing.assert_close(ours(x), reference(x))


def test_fresh_rmsnorm_output_has_rms_1():
    norm = RMSNorm(8)
    assert torch.equal(norm.weight, torch.ones(8))
    y = norm(100 * torch.randn(5, 8))
    torch.testing.assert_close(y.square().mean(-1), torch.ones(5))


def test_rmsnorm_does_not_overflow_in_half_precision():
    x = torch.full((1, 4), 1000.0, dtype=torch.float16)  # its square is beyond float16
    y = RMSNorm(4).half()(x)
    assert y.dtype == torch.float16
    torch.testing.assert_close(y, torch.ones_like(y))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_finer_gain_is_applied_before_rounding(dtype):
    norm, x = RMSNorm(8), torch.randn(5, 8).to(dtype)
    norm.weight.data = 1 + torch.rand(8) / 100
    exact = RMSNorm(8).double()
    exact.weight.data = norm.weight.data.double()
    assert norm(x).dtype == dtype
    assert torch.equal(norm(x), exact(x.double()).to(dtype))


@pytest.mark.parametrize("scale", [1e-3, 1, 1e3])
def test_layernorm_matches_pytorch(scale):
    ours, reference = LayerNorm(8, eps=1e-4), torch.nn.LayerNorm(8, eps=1e-4)
    weights = {"weight": torch.randn(8), "bias": torch.randn(8)}
    ours.load_state_dict(weights)
    reference.load_state_dict(weights)
    x = scale * (torch.randn(2, 5, 8) + 2)
    torch.testing.assert_close(ours(x), reference(x))


def test_fresh_layernorm_output_has_mean_0_and_variance_1():
    norm = LayerNorm(8)
    assert torch.equal(norm.weight, torch.ones(8)) and torch.equal(norm.bias, torch.zeros(8))
    y = norm(100 * torch.randn(5, 8) + 30)
    torch.testing.assert_close(y.mean(-1), torch.zeros(5), atol=1e-5, rtol=0)
    torch.testing.assert_close(y.var(-1, correction=0), torch.ones(5))


def test_layernorm_does_not_overflow_in_half_precision():
    x = torch.tensor([[60000, 60000, 20000, 20000]], dtype=torch.float16)  # their sum and squares are beyond float16
    y = LayerNorm(4).half()(x)
    assert y.dtype == torch.float16
    torch.testing.assert_close(y, torch.tensor([[1, 1, -1, -1]], dtype=torch.float16))


def test_half_precision_layernorm_is_rounded_once():
    x = torch.randn(5, 64).half() + 50  # in float16 the mean of numbers near 50 is off by up to 0.016
    expected = torch.nn.functional.layer_norm(x.float(), (64,)).half()
    torch.testing.assert_close(LayerNorm(64).half()(x), expected, atol=1e-3, rtol=1e-3)


@pytest.mark.parametrize("scale", [1e-3, 1, 1e3])
def test_layernorm_kernel_matches_formula(scale):
    norm, x = LayerNorm(8, eps=1e-4), scale * (torch.randn(2, 5, 8) + 2)
    norm.load_state_dict({"weight": torch.randn(8), "bias": torch.randn(8)})
    torch.testing.assert_close(norm(x), layer_norm(x, norm.weight, norm.bias, eps=1e-4))
