import pytest
import torch

from model.layers.positions import RotaryPositionalEmbedding, SinusoidalPositionalEmbedding
from tests.subtest_loops import subtest_each

POSITIONS = torch.arange(512)
MODULES = {
    "rope": lambda: RotaryPositionalEmbedding(10000.0, 32),
    "sinusoidal": lambda: SinusoidalPositionalEmbedding(32),
}


@pytest.fixture(params=MODULES.values(), ids=MODULES.keys())
def module(request):
    return request.param()


def position_rows(module) -> torch.Tensor:
    """Return what a module computes of each position (C, …), RoPE's cosines and sines side by side."""
    rows = module(POSITIONS)
    return rows if isinstance(rows, torch.Tensor) else torch.cat(rows, dim=-1)


@subtest_each("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_positions_stay_distinct_in_float32_whatever_the_weights_have(module, dtype):
    before = position_rows(module)
    after = position_rows(module.to(dtype))
    assert after.dtype == torch.float32 and torch.equal(after, before)
    assert len(after.unique(dim=0)) == len(POSITIONS)


def test_model_built_without_memory_computes_positions(module):
    expected = position_rows(module)
    with torch.device("meta"):
        other = (
            RotaryPositionalEmbedding(10000.0, 32) if hasattr(module, "angles") else SinusoidalPositionalEmbedding(32)
        )
    assert torch.equal(position_rows(other), expected)


def test_angles_of_far_positions_are_exact():
    """In float32 the last of the angles would be off by up to 0.004."""
    rope, angles = RotaryPositionalEmbedding(10000.0, 32), []
    rope.angles.register_forward_hook(lambda tap, inputs, output: angles.append(output))
    rope(torch.tensor([99_999]))
    assert angles[0].dtype == torch.float32
    expected = torch.tensor([99_999 * 10000 ** (-i / 16) for i in range(16)], dtype=torch.float64)
    assert torch.equal(angles[0][0], expected.float())
