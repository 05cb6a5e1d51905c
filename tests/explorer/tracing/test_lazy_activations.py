"""Lazily computed values equal those of a full capture."""

import gc
import pickle
from copy import deepcopy

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

import explorer.tracing.trace as on_demand
from explorer.tracing.capture import capture, tap_shapes, taps_outside_blocks, trace_num_bytes
from explorer.tracing.lru_cache import LRUCache
from explorer.tracing.model_library import ModelLibrary
from explorer.tracing.trace import LazyActivations, named_arrays_num_bytes
from model.transformer_lm import TransformerLM
from tests import sample_models
from tests.subtest_loops import each_style, subtest_each

IDS = tuple(range(3, 15))


@pytest.fixture(autouse=True)
def empty_caches(monkeypatch):
    """Replace the caches of recomputed values by empty ones."""
    blocks = LRUCache(on_demand.MAX_BLOCK_BYTES, named_arrays_num_bytes)
    monkeypatch.setattr(on_demand, "_VALUE_CACHE", LRUCache(on_demand.MAX_VALUE_BYTES, lambda value: value.nbytes))
    monkeypatch.setattr(on_demand, "_BLOCK_CACHE", blocks)
    return blocks


each_edits = subtest_each("edits", ["", "STREAM_INTERVENTIONS", "ALL_KINDS_INTERVENTIONS", "POSITION_INTERVENTIONS"])


def parse_edits(lm: TransformerLM, name: str) -> tuple:
    """Return the interventions named in `sample_models`, as far as a model allows them."""
    if not name:
        return ()
    text = getattr(sample_models, name)
    text = text[lm.config.position] if isinstance(text, dict) else text.format(other="layernorm")
    return sample_models.applicable_interventions(lm, text)


@each_style
@each_edits
def test_lazy_values_equal_a_full_capture(lms, style, edits):
    """Values agree up to rounding, because the pass uses fused kernels."""
    edits = parse_edits(lms[style], edits)
    whole, lazy = capture(lms[style], IDS, edits), capture(lms[style], IDS, edits, max_bytes=0)
    assert lazy.is_lazy and not whole.is_lazy
    assert list(lazy.values) == list(whole.values)
    for name, value in whole.values.items():
        assert_allclose(lazy[name], value, rtol=1e-5, atol=1e-5, err_msg=name)
        assert lazy[name].dtype == np.float32 and not lazy[name].flags.writeable, name


@each_style
@each_edits
def test_recomputed_values_equal_captured_ones_exactly(lms, style, edits):
    edits = parse_edits(lms[style], edits)
    lm = lms[style]
    whole = capture(lm, IDS, edits)
    stored = {name: whole[name] for name in taps_outside_blocks(lm) if name != "logits"}
    recomputed = LazyActivations(stored, tap_shapes(lm.config, len(IDS)), whole.model, IDS, whole.edits)
    for name, value in whole.values.items():
        assert_array_equal(recomputed[name], value, err_msg=name)


@each_style
def test_shapes_need_no_computation(lms, style, empty_caches):
    whole, lazy = capture(lms[style], IDS), capture(lms[style], IDS, max_bytes=0)
    for name, value in whole.values.items():
        assert lazy.shape(name) == whole.shape(name) == value.shape, name
    assert list(empty_caches) == []
    assert (
        named_arrays_num_bytes(whole.values)
        <= trace_num_bytes(whole.config, len(IDS))
        <= 1.2 * sum(value.nbytes for value in whole.values.values())
    )


def test_trace_within_budget_stores_every_value(tiny_lm):
    size = trace_num_bytes(tiny_lm.config, len(IDS))
    assert not capture(tiny_lm, IDS, max_bytes=size).is_lazy
    assert capture(tiny_lm, IDS, max_bytes=size - 1).is_lazy


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_trace_beyond_budget_stores_residual_stream(tiny_lm, tiny_config, dtype):
    lazy = capture(tiny_lm.to(dtype), IDS, max_bytes=0)
    streams = tiny_config.num_layers + 2  # embedding, output of each block, input of the unembedding
    angles = tiny_config.d_head // 2
    assert lazy.num_bytes == 4 * len(IDS) * (streams * tiny_config.d_model + angles)
    before = lazy.num_bytes
    lazy["blocks.0.attn.pattern"]
    assert lazy.num_bytes == before


@each_style
@subtest_each("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_stored_kinds_cover_all_layers(lms, style, dtype):
    lm = deepcopy(lms[style]).to(dtype)
    whole = capture(lm, IDS)
    kinds, least = {}, capture(lm, IDS, max_bytes=0).num_bytes
    for room in range(least, trace_num_bytes(lm.config, len(IDS)), 4000):
        lazy = capture(lm, IDS, max_bytes=room)
        assert lazy.num_bytes <= room
        inside = [name.split(".", 2)[1:] for name in lazy.stored_values if name.startswith("blocks.")]
        layers = {kind: {layer for layer, other in inside if other == kind} for _layer, kind in inside}
        assert set(map(len, layers.values())) == {lm.config.num_layers}
        assert len(layers) >= len(kinds) or room == least
        assert not {"attn.pattern", "attn.scores"} & layers.keys()
        kinds = layers
        for name, value in lazy.stored_values.items():
            assert_allclose(value, whole[name], rtol=1e-5, atol=1e-5, err_msg=name)
    assert {"attn.z", "ffn.out"} <= kinds.keys()


def test_one_block_runs_once_for_all_its_values(tiny_lm, monkeypatch):
    lazy, runs = capture(tiny_lm, IDS, max_bytes=0), []
    for layer, block in enumerate(tiny_lm.blocks):
        block.register_forward_pre_hook(lambda *args, layer=layer: runs.append(layer))
    for name in ("attn.pattern", "ffn.hidden", "attn.pattern", "resid_mid"):
        lazy[f"blocks.1.{name}"]
    assert runs == [1]
    lazy["blocks.1.resid_post"], lazy["embed"]
    assert runs == [1]


def recomputed_block_bytes(trace, layer: int) -> int:
    """Return the bytes of a block's values that the trace does not store."""
    return named_arrays_num_bytes(
        {name: trace[name] for name in trace.values if name not in trace.stored_values and f".{layer}." in name}
    )


def test_recomputed_values_are_bounded_in_bytes(tiny_lm, monkeypatch):
    lazy = capture(tiny_lm, IDS, max_bytes=0)
    block, pattern = recomputed_block_bytes(lazy, 0), lazy["blocks.0.attn.pattern"].nbytes
    monkeypatch.setattr(on_demand, "_BLOCK_CACHE", blocks := LRUCache(block, named_arrays_num_bytes))
    monkeypatch.setattr(on_demand, "_VALUE_CACHE", values := LRUCache(pattern, lambda value: value.nbytes))
    for layer in (0, 1, 0):
        lazy[f"blocks.{layer}.attn.pattern"]
        assert (blocks.total, values.total) == (block, pattern)
        assert on_demand.lazy_cache_num_bytes() == block  # includes the pattern


def test_scan_over_layers_is_cached_without_block_cache(tiny_lm, monkeypatch):
    lazy, runs = capture(tiny_lm, IDS, max_bytes=0), []
    monkeypatch.setattr(on_demand, "_BLOCK_CACHE", LRUCache(0, named_arrays_num_bytes))  # keeps only the last block
    for layer, block in enumerate(tiny_lm.blocks):
        block.register_forward_pre_hook(lambda *args, layer=layer: runs.append(layer))
    for _again in range(3):
        lazy.stack("blocks.*.attn.z")
    assert runs == list(range(len(tiny_lm.blocks)))


@pytest.mark.exhaustive
def test_cached_values_are_freed_with_trace(tiny_lm):
    lazy, other = (capture(tiny_lm, IDS[:length], max_bytes=0) for length in (5, 7))
    lazy["blocks.0.attn.pattern"], other["blocks.1.attn.pattern"]
    both = on_demand.lazy_cache_num_bytes()
    del lazy
    gc.collect()
    assert 0 < on_demand.lazy_cache_num_bytes() == recomputed_block_bytes(other, 1) < both


@each_style
@each_edits
def test_large_scores_are_computed_separately(lms, style, edits, monkeypatch):
    edits = parse_edits(lms[style], edits)
    lm = lms[style]
    whole, lazy = capture(lm, IDS, edits), capture(lm, IDS, edits, max_bytes=0)
    monkeypatch.setattr(on_demand, "MAX_BLOCK_BYTES", 1)
    monkeypatch.setattr(on_demand, "_BLOCK_CACHE", blocks := LRUCache(1, named_arrays_num_bytes))
    for name, value in whole.values.items():
        assert_allclose(lazy[name], value, rtol=1e-5, atol=1e-5, err_msg=name)
        (last,) = blocks.values()[-1:] or [{}]
        if name.endswith(("attn.scores", "attn.pattern")):
            assert list(last) == [name]
        else:
            assert not any(tap.endswith(("attn.scores", "attn.pattern")) for tap in last if name in last)


@each_style
@subtest_each("most_bytes_of_blocks", [on_demand.MAX_BLOCK_BYTES, 1], ids=["small scores", "large scores"])
@subtest_each("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_half_precision_values_are_recomputed_exactly(lms, style, dtype, most_bytes_of_blocks, monkeypatch):
    """No fused kernel computes any of the values: it would round more than the verification tolerates."""
    monkeypatch.setattr(on_demand, "MAX_BLOCK_BYTES", most_bytes_of_blocks)
    lm = deepcopy(lms[style]).to(dtype)
    whole, lazy = capture(lm, IDS), capture(lm, IDS, max_bytes=0)
    for name, value in whole.values.items():
        assert_array_equal(lazy[name], value, err_msg=name)


def test_lazy_values_leave_no_hooks_or_interventions(tiny_lm):
    edits = sample_models.applicable_interventions(tiny_lm, sample_models.STREAM_INTERVENTIONS)
    plain = capture(tiny_lm, IDS)
    lazy = capture(tiny_lm, IDS, edits, max_bytes=0)
    lazy["blocks.1.attn.pattern"], lazy["logits"]
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in tiny_lm.modules())
    assert_array_equal(capture(tiny_lm, IDS)["logits"], plain["logits"])


@pytest.mark.exhaustive
def test_stored_values_survive_model(tiny_config):
    lm = TransformerLM(tiny_config).eval()
    lazy = pickle.loads(pickle.dumps(capture(lm, IDS, max_bytes=0)))
    assert lazy["blocks.0.attn.pattern"].shape == (tiny_config.num_heads, len(IDS), len(IDS))
    del lm
    gc.collect()
    assert lazy["blocks.0.resid_post"].shape == (len(IDS), tiny_config.d_model)
    with pytest.raises(ReferenceError, match="the model of this trace is gone"):
        lazy["blocks.1.attn.pattern"]
    with pytest.raises(KeyError, match="nothing captured as 'blocks.1.attn.patern'; the nearest names are .*pattern"):
        lazy["blocks.1.attn.patern"]


def test_library_makes_large_traces_lazy(tiny_checkpoint):
    size = trace_num_bytes(ModelLibrary("cpu").model("tiny")[0].config, len(IDS))
    library = ModelLibrary("cpu", max_trace_bytes=size)
    lm, small = library.model_and_trace("tiny", IDS)
    _lm, large = library.model_and_trace("tiny", (*IDS, 15))
    assert (small.is_lazy, large.is_lazy) == (False, True)
    assert_allclose(large["blocks.1.ffn.out"], capture(lm, (*IDS, 15))["blocks.1.ffn.out"], atol=1e-5)
