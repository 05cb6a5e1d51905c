"""ZeroGPU: a stub of the `spaces` package records calls and pickles arguments and results."""

import importlib
import pickle
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from explorer.errors import UserError
from explorer.interventions import parse_interventions
from explorer.state.selection import Selection
from explorer.tracing import zero_gpu
from explorer.tracing.model_library import ModelLibrary, pick_device
from explorer.tracing.run_service import RunService
from explorer.views import VIEWS
from explorer.web.actions.page_state_builder import PageStateBuilder
from explorer.web.browser_api.endpoints import BrowserEndpoints


def pickle_round_trip(value):
    """Return the value after pickling, which must contain no torch objects."""
    sent = pickle.dumps(value)
    assert b"torch" not in sent, "sends tensors"
    return pickle.loads(sent)


@pytest.fixture
def calls(monkeypatch) -> list[tuple]:
    """Simulate ZeroGPU and yield the list of its calls' argument tuples."""
    calls = []

    def gpu(function):
        def lends(*args):
            calls.append(args)
            return pickle_round_trip(function(*pickle_round_trip(args)))

        return lends

    with monkeypatch.context() as patches:
        patches.setitem(sys.modules, "spaces", SimpleNamespace(GPU=gpu))
        patches.setenv("SPACES_ZERO_GPU", "true")
        importlib.reload(zero_gpu)
        patches.setattr(zero_gpu, "MIN_PARAMETERS", 0)
        patches.setattr(torch.cuda, "is_available", lambda: False)  # a copy of this process has the GPU
        yield calls
    importlib.reload(zero_gpu)


@pytest.fixture
def library(style_checkpoints) -> ModelLibrary:
    return ModelLibrary("cpu")


def test_large_model_prompt_needs_one_gpu_call(library, calls):
    endpoints = BrowserEndpoints(RunService(library))
    state = PageStateBuilder(endpoints.runs).create_run("rope", "the fox asked the owl").as_dict()
    for view in (view.name for view in VIEWS):
        for part in (0, 1, 2):
            endpoints.answer("show", state | Selection(view=view, query=3, key=1).as_dict(), part)
    assert len([call for call in calls if call[1] == tuple(state["prompt"]) and not call[2]]) == 1


@pytest.mark.parametrize("edits", ["", "blocks.0.attn.z*scale*0"])
@pytest.mark.parametrize("most", [1 << 30, 20_000], ids=["all values", "some values"])
def test_gpu_trace_equals_local_trace(style_checkpoints, calls, monkeypatch, edits, most):
    lending = ModelLibrary("cpu", max_trace_bytes=most)
    lm, lent = lending.model_and_trace("rope", (5, 6, 7, 8), parse_interventions(edits))
    assert len(calls) == (2 if edits else 1)
    monkeypatch.setattr(zero_gpu, "MIN_PARAMETERS", 10**9)
    plain_lm, plain = ModelLibrary("cpu", max_trace_bytes=most).model_and_trace(
        "rope", (5, 6, 7, 8), parse_interventions(edits)
    )
    assert len(calls) == (2 if edits else 1)
    assert list(lent.values) == list(plain.values)
    for name in plain.values:
        assert isinstance(lent[name], np.ndarray)
        np.testing.assert_array_equal(lent[name], plain[name])
    assert (lent.tokens, lent.vocabulary, lent.token_bytes) == (plain.tokens, plain.vocabulary, plain.token_bytes)
    assert (lent.model, lent.edits, lent.dtype) == (plain.model, plain.edits, plain.dtype) and lent.merge_rules
    np.testing.assert_array_equal(lent.weights["lm_head.weight"], plain.weights["lm_head.weight"])
    assert {parameter.device.type for parameter in (*lm.parameters(), *plain_lm.parameters())} == {"cpu"}


def test_small_models_run_on_cpu(library, calls, monkeypatch):
    monkeypatch.setattr(zero_gpu, "MIN_PARAMETERS", 10**6)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)  # as on the hub
    library.trace("rope", (5, 6, 7))
    assert calls == [] and pick_device() == "cpu"


def test_unavailable_gpu_falls_back_to_cpu(library, calls, monkeypatch, caplog):
    monkeypatch.setattr(zero_gpu, "run_on_gpu", lambda *given: 1 / 0)
    assert library.trace("rope", (5, 6, 7))["logits"].shape[0] == 3
    assert "ZeroGPU provided no GPU, computing on the CPU" in caplog.text


def test_user_errors_are_raised_unchanged(library, calls):
    with pytest.raises(UserError):
        library.trace("rope", (10**6,))


def test_without_zero_gpu_function_is_unchanged(monkeypatch):
    def function():
        return 7

    monkeypatch.delenv("SPACES_ZERO_GPU", raising=False)
    monkeypatch.setitem(sys.modules, "spaces", SimpleNamespace(GPU=lambda function: pytest.fail("asked for a GPU")))
    importlib.reload(zero_gpu)
    assert zero_gpu.with_gpu(function) is function and not zero_gpu.HAS_ZERO_GPU
    monkeypatch.setitem(sys.modules, "spaces", None)
    monkeypatch.setattr(zero_gpu, "HAS_ZERO_GPU", True)
    assert zero_gpu.with_gpu(function) is function  # without the `spaces` package
