"""Traces: their values, names and shapes, and results that are cached per trace."""

import gc
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch

from explorer.explain.captured.tap_formulas import block_output_tap
from explorer.tracing import trace
from explorer.tracing import trace as trace_module
from explorer.tracing.capture import capture, tap_shapes
from explorer.tracing.trace import Trace, cache_per_trace
from model.transformer_lm import TransformerLM
from tests.sample_models import STYLES, models
from tests.subtest_loops import each_style, subtest_each


@pytest.fixture
def small(tiny_config) -> Trace:
    values = {
        "embed": np.zeros((3, 4), np.float32),
        "blocks.0.resid_pre": np.full((3, 4), 0, np.float32),
        "blocks.1.resid_pre": np.full((3, 4), 1, np.float32),
        "blocks.1.attn.z": np.zeros((2, 3, 2), np.float32),
    }
    return Trace(tiny_config, token_ids=(2, 0, 2), vocabulary=("a", " b", "\n"), values=values)


def test_value_is_found_by_name(small):
    assert small["blocks.1.resid_pre"] is small.values["blocks.1.resid_pre"]


def test_traces_are_hashable(small):
    results = {small: 1, replace(small): 2}
    assert results[small] == 1 and len(results) == 2


def test_unknown_name_suggests_nearest(small):
    with pytest.raises(KeyError, match=r"blocks\.1\.resid_pro.*nearest names are blocks\.1\.resid_pre, blocks\.0"):
        small["blocks.1.resid_pro"]
    with pytest.raises(KeyError, match="nearest names are none"):
        small["?"]


def test_stack_puts_layers_first(small):
    stacked = small.stack("blocks.*.resid_pre")
    assert stacked.shape == (2, 3, 4)
    assert stacked[:, 0, 0].tolist() == [0, 1]


@each_style
def test_stack_contains_every_layer(trace):
    patterns = trace.stack("blocks.*.attn.pattern")
    assert patterns.shape == (2, trace.config.num_heads, 12, 12)
    for layer, pattern in enumerate(patterns):
        np.testing.assert_array_equal(pattern, trace[f"blocks.{layer}.attn.pattern"])


def test_head_value_uses_head_or_its_group(small):
    values = {"q": np.arange(6)[:, None, None], "k": np.arange(2)[:, None, None], "v": np.zeros((1, 1, 1))}
    trace = replace(small, config=replace(small.config, num_heads=6), values=values)
    assert [trace.head_value("q", head).item() for head in range(6)] == [0, 1, 2, 3, 4, 5]
    assert [trace.head_value("k", head).item() for head in range(6)] == [0, 0, 0, 1, 1, 1]
    assert [trace.head_value("v", head).item() for head in range(6)] == [0] * 6


def test_stack_names_missing_tap(small):
    with pytest.raises(KeyError, match=r"blocks\.0\.attn\.z"):
        small.stack("blocks.*.attn.z")


@subtest_each(
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
def test_has_tap_matches_layers_by_star(small, pattern, there):
    assert small.has_tap(pattern) is there


def test_contains_is_exact(small):
    assert "embed" in small
    assert "blocks.*.resid_pre" not in small


def test_length_and_tokens_follow_token_ids(small):
    assert len(small) == 3
    assert small.tokens == ("\n", "a", "\n")


def test_num_bytes_is_sum_of_values(small):
    assert small.num_bytes == 4 * (3 * 12 + 12)


@each_style
def test_shared_memory_counts_once(trace):
    before, after = trace[block_output_tap(trace.config, 0)], trace["blocks.1.resid_pre"]
    assert np.shares_memory(before, after)
    rest = {name: value for name, value in trace.values.items() if name != "blocks.1.resid_pre"}
    assert (
        trace.num_bytes == replace(trace, values=rest).num_bytes < sum(value.nbytes for value in trace.values.values())
    )


def test_baseline_does_not_count_towards_num_bytes(small):
    assert replace(small, baseline=small).num_bytes == small.num_bytes


IDS = tuple(range(3, 15))


def test_block_stops_after_requested_value(tiny_lm, monkeypatch):
    some, runs = capture(tiny_lm, IDS, max_bytes=0), []
    monkeypatch.setattr(trace, "MAX_BLOCK_BYTES", 1)  # patterns are then computed separately
    tiny_lm.blocks[1].ffn.register_forward_pre_hook(lambda *args: runs.append("ffn"))
    some["blocks.1.attn.pattern"]
    assert not runs
    some["blocks.1.ffn.out"]
    assert runs == ["ffn"]


@subtest_each("style", STYLES)
def test_tap_shapes_equal_captured_shapes(style):
    lm = models()[style]
    captured = capture(lm, [3, 1, 4, 1, 5]).values
    assert list(tap_shapes(lm.config, 5).items()) == [(name, value.shape) for name, value in captured.items()]


def test_tap_shapes_handle_wider_heads(tiny_config):
    config = replace(tiny_config, head_dim=2 * tiny_config.d_head, rotary_dim=2)
    captured = capture(TransformerLM(config).eval(), [3, 1, 4]).values
    assert tap_shapes(config, 3) == {name: value.shape for name, value in captured.items()}


def test_tap_shapes_use_no_random_numbers(tiny_config):
    torch.manual_seed(0)
    expected = torch.rand(1)
    torch.manual_seed(0)
    tap_shapes(replace(tiny_config, norm_eps=3e-5), 3)  # a config whose shapes are not cached
    np.testing.assert_array_equal(torch.rand(1), expected)


@pytest.mark.exhaustive
def test_first_run_does_not_import_compiler():
    """Importing the compiler takes longer than a forward pass with 1.2 billion parameters."""
    code = """
import sys
from explorer.tracing.capture import capture
from model import ModelConfig, TransformerLM
config = ModelConfig(vocab_size=50, context_length=8, d_model=16, num_layers=2, num_heads=2, d_ff=16)
capture(TransformerLM(config).eval(), [1, 2], max_bytes=1000)
print(*(name for name in ("sympy", "torch._dynamo") if name in sys.modules))
"""
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not process.stdout.strip()


@pytest.fixture
def calls():
    return []


@pytest.fixture
def lengths(calls):
    @cache_per_trace
    def lengths(trace, position, token_id=None):
        calls.append((position, token_id))
        return len(trace) + position

    return lengths


def test_result_is_cached_per_trace(rope_trace, lengths, calls):
    assert lengths(rope_trace, 2) == lengths(rope_trace, 2) == len(rope_trace) + 2
    assert calls == [(2, None)]


def test_other_arguments_and_traces_are_computed(rope_trace, lengths, calls):
    for run in (rope_trace, replace(rope_trace)):
        lengths(run, 1), lengths(run, 2), lengths(run, 1, token_id=3)
    assert len(calls) == 6


def test_only_latest_results_are_kept(rope_trace, lengths, calls, monkeypatch):
    monkeypatch.setattr(trace_module, "MAX_RESULTS_PER_TRACE", 2)
    for position in (1, 2, 1, 3, 1, 2):
        lengths(rope_trace, position)
    assert [position for position, _token in calls] == [1, 2, 3, 2]


def test_results_are_freed_with_trace(rope_trace):
    alive = []

    class Result:
        def __init__(self):
            alive.append(self)

        def __del__(self):
            alive.append("gone")

    @cache_per_trace
    def result(trace):
        return Result()

    own = replace(rope_trace)
    result(own)
    alive.clear()
    assert not alive
    del own
    gc.collect()
    assert alive == ["gone"]
