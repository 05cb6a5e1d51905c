import pytest
import torch

from model.layers.norms import RMSNorm


@pytest.mark.parametrize("scale", [1e-3, 1, 1e3])
def test_agrees_with_torch(scale):
    ours, reference = RMSNorm(8, eps=1e-4), torch.nn.RMSNorm(8, eps=1e-4)
    gain = torch.randn(8)
    ours.load_state_dict({"weight": gain})
    reference.load_state_dict({"weight": gain})
    x = scale * torch.randn(2, 5, 8)
    torch.testing.assert_close(ours(x), reference(x))


def test_gains_start_at_one_so_that_the_root_mean_square_is_one():
    norm = RMSNorm(8)
    assert torch.equal(norm.weight, torch.ones(8))
    y = norm(100 * torch.randn(5, 8))
    torch.testing.assert_close(y.square().mean(-1), torch.ones(5))


def test_the_mean_square_does_not_overflow_in_half_precision():
    x = torch.full((1, 4), 1000.0, dtype=torch.float16)  # its square is beyond float16
    y = RMSNorm(4).half()(x)
    assert y.dtype == torch.float16
    torch.testing.assert_close(y, torch.ones_like(y))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_a_gain_of_a_finer_type_is_multiplied_by_in_that(dtype):
    norm, x = RMSNorm(8), torch.randn(5, 8).to(dtype)
    norm.weight.data = 1 + torch.rand(8) / 100
    exact = RMSNorm(8).double()
    exact.weight.data = norm.weight.data.double()
    assert norm(x).dtype == dtype
    assert torch.equal(norm(x), exact(x.double()).to(dtype))
