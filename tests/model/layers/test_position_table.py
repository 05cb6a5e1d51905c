import pytest
import torch

from model.layers.positions import RotaryPositionalEmbedding, SinusoidalPositionalEmbedding
from tests.subtest_loops import subtest_each

CONTEXT = 512
TABLES = {
    "rope": lambda: RotaryPositionalEmbedding(10000.0, 32, CONTEXT),
    "sinusoidal": lambda: SinusoidalPositionalEmbedding(CONTEXT, 32),
}


@pytest.fixture(params=TABLES.values(), ids=TABLES.keys())
def table(request):
    return request.param()


@subtest_each("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_table_stays_float32_with_distinct_positions(table, dtype):
    before = table.table.clone()
    table.to(dtype)
    assert table.table.dtype == torch.float32
    assert torch.equal(table.table, before)
    rows = table.table if not hasattr(table, "angles") else table.table.remainder(2 * torch.pi)
    assert len(rows.unique(dim=0)) == CONTEXT


def test_bfloat16_table_would_confuse_positions(table):
    """bfloat16 represents only 385 different values for the 512 angles of RoPE's first pair."""
    if hasattr(table, "angles"):
        assert len(table.table[:, 0].bfloat16().unique()) == 385
    assert (table.table.bfloat16().float() - table.table).abs().max() > 1e-3


def test_table_moves_with_module_and_is_restored(table):
    before = table.table.clone()
    table.to("meta")
    assert table.table.device.type == "meta"
    assert torch.equal(table.to_empty(device="cpu").table, before)


def test_table_on_meta_device_takes_no_memory():
    with torch.device("meta"):
        for table in (RotaryPositionalEmbedding(10000.0, 32, 10**12), SinusoidalPositionalEmbedding(10**12, 32)):
            assert table.table.device.type == "meta"
            assert len(table.table) == 10**12
