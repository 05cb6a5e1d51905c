"""Bounds of the library's caches: memory, lifetime, no duplicates."""

import gc
import shutil
from weakref import ref

import pytest

import explorer.tracing.model_library as library_module
from explorer.interventions import parse_interventions
from explorer.tracing import zero_gpu
from explorer.tracing.model_library import ModelLibrary, model_num_bytes
from explorer.tracing.run_service import LogitsCache


def test_models_beyond_limit_are_evicted(tiny_checkpoint):
    for name in ("b", "c"):
        shutil.copytree(tiny_checkpoint, tiny_checkpoint.with_name(name))
    size = model_num_bytes(ModelLibrary("cpu").model("tiny")[0])
    library = ModelLibrary("cpu", max_model_cache_bytes=2 * size)
    first, second = library.model("tiny"), library.model("b")
    assert library.model("tiny") is first
    library.model("c")
    assert library.model("tiny") is first
    assert library.model("b") is not second


def test_traces_beyond_limit_are_evicted(tiny_checkpoint):
    size = ModelLibrary("cpu").trace("tiny", (0, 1)).num_bytes
    library = ModelLibrary("cpu", max_trace_cache_bytes=2 * size)
    traces = [library.trace("tiny", (0, i)) for i in range(3)]
    assert library.trace("tiny", (0, 2)) is traces[2]
    assert library.trace("tiny", (0, 1)) is traces[1]
    assert library.trace("tiny", (0, 0)) is not traces[0]


OFF = parse_interventions("rope.angles*zero")

DOUBLED = parse_interventions("embed*scale*2")


def test_intervention_run_is_cached_beside_its_baseline(library):
    plain, off, doubled = (library.trace("rope", (3, 1, 2), edits) for edits in ((), OFF, DOUBLED))
    assert off.edits == OFF and doubled.edits == DOUBLED
    assert off.baseline is doubled.baseline is plain
    assert plain.edits == () and plain.baseline is None
    assert library.trace("rope", (3, 1, 2), OFF) is off
    assert not off["rope.angles"].any() and plain["rope.angles"].any()


def test_inapplicable_interventions_are_not_cached(library):
    for _ in range(2):
        with pytest.raises(ValueError, match=r"no value rope\.angles"):
            library.trace("none", (1, 2), OFF)
    assert library.trace("none", (1, 2)).baseline is None


def test_baselines_count_towards_cache_size(tiny_checkpoint):
    """In any order of requests, a cached run never holds a baseline that was evicted itself."""
    size = ModelLibrary("cpu").trace("tiny", (0, 1)).num_bytes
    library = ModelLibrary("cpu", max_trace_cache_bytes=5 * size)
    for i in range(60):
        library.trace("tiny", (0, i * i % 7), (OFF, DOUBLED, ())[i * 5 % 3])
        cached = library._traces._entries.values()
        distinct = {id(trace): trace for trace in cached} | {id(trace.baseline): trace.baseline for trace in cached}
        distinct.pop(id(None), None)
        assert sum(trace.num_bytes for trace in distinct.values()) == library._traces.total <= 5 * size


def test_baseline_is_computed_once(tiny_checkpoint, monkeypatch):
    calls, capture = [], zero_gpu.capture
    monkeypatch.setattr(zero_gpu, "capture", lambda *args, **kwargs: calls.append(args[2]) or capture(*args, **kwargs))
    library = ModelLibrary("cpu")
    for edits in (OFF, DOUBLED, (), OFF):
        library.trace("tiny", (1, 2), edits)
    assert calls == [OFF, (), DOUBLED]


def test_memory_report_counts_models_and_traces(tiny_checkpoint):
    shutil.copytree(tiny_checkpoint, tiny_checkpoint.with_name("b"))
    library = ModelLibrary("cpu", max_trace_bytes=0)
    before = library.memory()
    assert (before["models"], before["models_bytes"], before["traces"], before["traces_bytes"]) == ({}, 0, 0, 0)
    traces = [library.trace(*args) for args in (("tiny", (1, 2)), ("b", (3, 4, 5)), ("tiny", (1, 2), DOUBLED))]
    pattern = traces[0]["blocks.0.attn.pattern"]
    memory, size = library.memory(), model_num_bytes(library.model("b")[0])
    assert memory["models"] == {"tiny": size, "b": size} and memory["models_bytes"] == 2 * size
    assert memory["traces"] == 3 and memory["traces_bytes"] == sum(trace.num_bytes for trace in traces)
    assert memory["looked_at_bytes"] - before["looked_at_bytes"] > pattern.nbytes
    assert memory["models_limit"] == library_module.MAX_MODEL_CACHE_BYTES


@pytest.mark.exhaustive
def test_evicted_model_is_freed_after_any_use(tiny_checkpoint):
    shutil.copytree(tiny_checkpoint, tiny_checkpoint.with_name("b"))
    library = ModelLibrary("cpu", max_model_cache_bytes=0, max_trace_bytes=0)
    lm, trace = library.model_and_trace("tiny", (1, 2, 3))
    changed = library.trace("tiny", (1, 2, 3), DOUBLED)
    for run in (trace, changed):
        run["blocks.1.attn.pattern"], run["logits"], run.weights["lm_head.weight"].sum()
        run.ablate(1, 2), run.logit_and_log_probability(1, 2), run.token_contributions(2, 3, 4)
    LogitsCache(library).trace("tiny", (1, 2, 3))
    gone = ref(lm)
    del lm
    library.model("b")
    gc.collect()
    assert gone() is None and list(library.memory()["models"]) == ["b"]
    assert trace["blocks.0.resid_post"].shape[0] == 3
    with pytest.raises(ReferenceError, match="the model of this trace is gone"):
        trace["blocks.0.attn.pattern"]
