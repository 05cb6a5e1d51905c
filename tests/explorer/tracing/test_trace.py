from dataclasses import replace

import numpy as np
import pytest

from explorer.explain.captured.tap_formulas import block_output_tap
from explorer.tracing.trace import Trace


@pytest.fixture
def small(tiny_config) -> Trace:
    values = {
        "embed": np.zeros((3, 4), np.float32),
        "blocks.0.resid_pre": np.full((3, 4), 0, np.float32),
        "blocks.1.resid_pre": np.full((3, 4), 1, np.float32),
        "blocks.1.attn.z": np.zeros((2, 3, 2), np.float32),
    }
    return Trace(tiny_config, token_ids=(2, 0, 2), vocabulary=("a", " b", "\n"), values=values)


def test_a_value_by_its_name(small):
    assert small["blocks.1.resid_pre"] is small.values["blocks.1.resid_pre"]


def test_results_can_be_kept_by_trace(small):
    results = {small: 1, replace(small): 2}
    assert results[small] == 1 and len(results) == 2


def test_a_wrong_name_is_answered_with_the_near_ones(small):
    with pytest.raises(KeyError, match=r"blocks\.1\.resid_pro.*nearest names are blocks\.1\.resid_pre, blocks\.0"):
        small["blocks.1.resid_pro"]
    with pytest.raises(KeyError, match="nearest names are none"):
        small["?"]


def test_stack_puts_the_layers_first(small):
    stacked = small.stack("blocks.*.resid_pre")
    assert stacked.shape == (2, 3, 4)
    assert stacked[:, 0, 0].tolist() == [0, 1]


def test_stack_of_a_captured_run_is_every_layer_of_it(trace):
    patterns = trace.stack("blocks.*.attn.pattern")
    assert patterns.shape == (2, trace.config.num_heads, 12, 12)
    for layer, pattern in enumerate(patterns):
        np.testing.assert_array_equal(pattern, trace[f"blocks.{layer}.attn.pattern"])


def test_a_head_has_its_own_part_of_a_value_or_that_of_its_group(small):
    values = {"q": np.arange(6)[:, None, None], "k": np.arange(2)[:, None, None], "v": np.zeros((1, 1, 1))}
    trace = replace(small, config=replace(small.config, num_heads=6), values=values)
    assert [trace.head_value("q", head).item() for head in range(6)] == [0, 1, 2, 3, 4, 5]
    assert [trace.head_value("k", head).item() for head in range(6)] == [0, 0, 0, 1, 1, 1]
    assert [trace.head_value("v", head).item() for head in range(6)] == [0] * 6


def test_stack_of_what_a_layer_lacks_names_it(small):
    with pytest.raises(KeyError, match=r"blocks\.0\.attn\.z"):
        small.stack("blocks.*.attn.z")


@pytest.mark.parametrize(
    ("pattern", "there"),
    [
        ("embed", True),
        ("embe", False),
        ("mbed", False),
        ("blocks.*.resid_pre", True),
        ("blocks.*.attn.z", True),
        ("blocks.*.attn.pattern", False),
        ("blocks.*", False),
        ("*", False),
        ("blocks.1.attn.z", True),
        ("blocks.0.attn.z", False),
        ("blocksX1Xattn.z", False),
        ("(", False),
    ],
)
def test_has_knows_layers_by_a_star(small, pattern, there):
    assert small.has_tap(pattern) is there


def test_contains_is_exact(small):
    assert "embed" in small
    assert "blocks.*.resid_pre" not in small


def test_length_and_tokens(small):
    assert len(small) == 3
    assert small.tokens == ("\n", "a", "\n")


def test_num_bytes_is_that_of_all_values(small):
    assert small.num_bytes == 4 * (3 * 12 + 12)


def test_memory_that_values_share_counts_once(trace):
    before, after = trace[block_output_tap(trace.config, 0)], trace["blocks.1.resid_pre"]
    assert np.shares_memory(before, after)
    rest = {name: value for name, value in trace.values.items() if name != "blocks.1.resid_pre"}
    assert (
        trace.num_bytes == replace(trace, values=rest).num_bytes < sum(value.nbytes for value in trace.values.values())
    )


def test_the_baseline_is_counted_where_it_is_itself(small):
    assert replace(small, baseline=small).num_bytes == small.num_bytes
