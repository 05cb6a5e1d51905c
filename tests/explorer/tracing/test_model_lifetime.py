"""A model is freed when nobody uses it, even if its runs are cached."""

import gc
import pickle
import shutil
from contextlib import suppress
from weakref import ref

import numpy as np
import pytest

from explorer.errors import PointNotFoundError
from explorer.interventions import parse_interventions
from explorer.state.generation_settings import GenerationSettings
from explorer.state.page_state import PageState, RunRequest
from explorer.tracing.capture import capture
from explorer.tracing.model_library import ModelLibrary
from explorer.tracing.model_registry import find_model, get_identity, register_model
from explorer.tracing.run_service import RunService
from explorer.views import VIEWS
from explorer.web.actions.page_state_builder import PageStateBuilder
from explorer.web.browser_api.endpoints import BrowserEndpoints
from explorer.web.browser_api.page_contents import ContinuationSurprisals, next_token_distribution_in_run
from explorer.web.public_api import PublicApi
from model.checkpoint import load_checkpoint
from tests.exhaustive import first_in_core

IDS = (5, 6, 7, 8)


def test_trace_reads_weights_of_live_model(tiny_lm):
    trace = capture(tiny_lm, IDS)
    assert trace.weights.keys() == tiny_lm.state_dict().keys()
    for name, weight in tiny_lm.state_dict().items():
        np.testing.assert_array_equal(trace.weights[name], weight.numpy())
    assert "no.weight" not in trace.weights and trace.weights.get("no.bias", 0) == 0


def test_trace_of_deleted_model_raises(tiny_checkpoint):
    lm, _ = load_checkpoint(tiny_checkpoint)
    trace, logits = capture(lm, IDS), None
    logits, is_there = trace["logits"].copy(), ref(lm)
    trace.ablate(1, 2)
    del lm
    assert is_there() is None
    np.testing.assert_array_equal(trace["logits"], logits)
    for ask in (lambda: trace.weights["lm_head.weight"], lambda: len(trace.weights), lambda: trace.ablate(0, 1)):
        with pytest.raises(ReferenceError, match="the model of this trace is gone"):
            ask()


def test_pickled_trace_finds_its_model(tiny_lm, tiny_tokenizer):
    trace = capture(tiny_lm, IDS, parse_interventions("embed*scale*2"), tokenizer=tiny_tokenizer)
    pickled = pickle.dumps(trace)
    unpickled = pickle.loads(pickled)
    assert (unpickled.token_ids, unpickled.edits, unpickled.tokens, unpickled.config) == (
        IDS,
        trace.edits,
        trace.tokens,
        trace.config,
    )
    assert list(unpickled.values) == list(trace.values)
    for name in trace.values:
        np.testing.assert_array_equal(unpickled[name], trace[name])
    assert unpickled.weights["lm_head.weight"] is trace.weights["lm_head.weight"]
    assert tiny_lm.token_embedding.weight.detach().numpy().tobytes() not in pickled


def test_models_have_distinct_identities(tiny_lm, lms):
    identities = {get_identity(lm) for lm in (tiny_lm, *lms.values())}
    assert len(identities) == 1 + len(lms)
    assert get_identity(tiny_lm) in identities


def test_identity_belongs_to_one_live_model(lms, tiny_checkpoint):
    first, second = (load_checkpoint(tiny_checkpoint)[0] for _ in range(2))
    assert register_model(first, "it") is first is register_model(second, "it") is find_model("it")
    del first
    assert find_model("it") is None
    assert register_model(second, "it") is second is find_model("it")


def explore_run(library: ModelLibrary):
    PublicApi(PageStateBuilder(RunService(library)), "tiny").explore("the fox")


def generate_tokens(library: ModelLibrary):
    PublicApi(PageStateBuilder(RunService(library)), "tiny").generate("the fox", max_new_tokens=3)


def show_all_views(library: ModelLibrary):
    """Request every view with its panels and explanations, of an original and an edited run, and the branches."""
    endpoints, run = BrowserEndpoints(RunService(library)), RunRequest("tiny", IDS, (9, 10))
    for edits in ((), parse_interventions("blocks.1.attn.z.1*zero")):
        for view in VIEWS:
            state = RunRequest("tiny", IDS, (9, 10), 0, edits).as_dict() | {"view": view.name, "branches": "9.11"}
            for part in range(3):
                assert endpoints.answer("show", state, part)["contents"]
            for panel in view.panels:
                with suppress(PointNotFoundError):
                    endpoints.inspect(state, f"{view.name}-{panel.name}", {"x": 0, "y": 0, "curve": 0})
    endpoints.answer("token", run.as_dict())


def predict_tokens(library: ModelLibrary):
    opening = PageStateBuilder(RunService(library))
    for end in (2, 3, 4):
        opening.runs.logits(RunRequest("tiny", IDS[:end]))
    state = opening.state_from_query({"checkpoint": "tiny", "text": "the fox"})
    next_token_distribution_in_run(
        state.run, state.selection.query, GenerationSettings(), opening.runs.logits(state.run)
    )
    library.kept_beside = opening


def read_continuations(library: ModelLibrary):
    library.kept_beside = ContinuationSurprisals(library)
    library.kept_beside.surprisals(PageState.parse(RunRequest("tiny", IDS, (9, 10)).as_dict() | {"branches": "9.11"}))


@pytest.mark.parametrize(
    "use", first_in_core([show_all_views, explore_run, generate_tokens, predict_tokens, read_continuations])
)
@pytest.mark.exhaustive
def test_evicted_model_is_freed_after_any_use(tiny_checkpoint, use):
    shutil.copytree(tiny_checkpoint, tiny_checkpoint.with_name("other"))
    library = ModelLibrary("cpu", max_model_cache_bytes=1)
    is_there = ref(library.model("tiny")[0])
    use(library)
    trace = library.trace("tiny", IDS)
    library.model("other")
    gc.collect()  # references in tracebacks
    assert is_there() is None
    assert library.trace("tiny", IDS) is trace
    assert trace.weights["lm_head.weight"].size
