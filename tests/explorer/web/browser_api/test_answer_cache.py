"""The cache of answers, keyed by the state and settings of the request."""

import json

import numpy as np
import pytest

from explorer.state.generation_settings import GenerationSettings
from explorer.state.page_state import PageState
from explorer.state.selection import Selection
from explorer.tracing.jobs import Job, RequestBudget, ResultNotReadyError, get_or_run, mark_incomplete
from explorer.tracing.run_service import RunService
from explorer.translations import use_locale
from explorer.web.actions.page_state_builder import PageStateBuilder
from explorer.web.browser_api import answer_cache
from explorer.web.browser_api.answer_cache import AnswerCache
from explorer.web.browser_api.endpoints import FILES_CHANGED, BrowserEndpoints
from explorer.web.request_validation import to_json_bytes
from tests.exhaustive import first_in_core
from tests.subtest_loops import subtest_each


@pytest.fixture
def endpoints(library) -> BrowserEndpoints:
    return BrowserEndpoints(RunService(library))


@pytest.fixture
def state(endpoints) -> dict:
    run = PageStateBuilder(endpoints.runs).create_run("rope", "the fox asked the owl")
    return run.as_dict() | Selection(view="attention", query=3, key=1).as_dict() | {"temperature": 1.0, "top_k": 0}


@pytest.fixture
def computed_answers(endpoints, monkeypatch) -> list[str]:
    """Names of the answers that were computed, in order."""
    computed = []
    answer = endpoints.answer
    monkeypatch.setattr(endpoints, "answer", lambda *args: computed.append(args[0]) or answer(*args))
    return computed


@subtest_each("part", [0, 1, 2])
@subtest_each("about", ["view", "pick"])
def test_repeated_request_uses_cache(endpoints, state, computed_answers, about, part):
    first = endpoints.cached_answer(about, state, part)
    assert json.loads(first) == json.loads(json.dumps(endpoints.answer(about, state, part)))
    computed_answers.clear()
    assert endpoints.cached_answer(about, state | {"turn": 7}, part) == first
    assert computed_answers == []


STATE_CHANGES = [
    {"query": 2},
    {"key": 2},
    {"view": "residual"},
    {"layer": 1},
    {"head": 1},
    {"temperature": 0.5},
    {"top_k": 3},
    {"seed": 9},
    {"repetition_penalty": 1.5},
    {"edits": "blocks.0.attn.z*scale*0"},
    {"generated": [5]},
    {"dropped": 4},
    {"branches": "2~5.6"},
    {"find": "a"},
    {"b.checkpoint": "rope", "b.prompt": [5, 6, 7], "b.generated": []},
    {"checkpoint": "learned"},
]


@pytest.mark.parametrize("part", first_in_core([0, 1]))
def test_changed_state_is_computed_separately(endpoints, state, computed_answers, part):
    endpoints.cached_answer("view", state, part)
    for change in STATE_CHANGES:
        computed_answers.clear()
        changed = endpoints.cached_answer("view", state | change, part)
        assert computed_answers == ["view"], change
        assert json.loads(changed) == json.loads(json.dumps(endpoints.answer("view", state | change, part))), change


@pytest.mark.parametrize("change", [{"b.prompt": [5, 6, 8]}, {"b.generated": [7]}, {"shown": "b"}], ids=str)
def test_changed_second_run_is_computed_separately(endpoints, state, computed_answers, change):
    both = state | {"b.checkpoint": "rope", "b.prompt": [5, 6, 7], "b.generated": [], "shown": "difference"}
    endpoints.cached_answer("view", both, 0)
    endpoints.cached_answer("view", both | change, 0)
    assert len(computed_answers) == 2


def test_part_and_scope_belong_to_cache_key(endpoints, state, computed_answers):
    for about in ("view", "pick", "tune"):
        for part in (0, 1, 2):
            endpoints.cached_answer(about, state, part)
    assert len(computed_answers) == 9


def test_language_belongs_to_cache_key(endpoints, state, computed_answers):
    with use_locale("zh-CN"):
        chinese = endpoints.cached_answer("view", state, 0)
    english = endpoints.cached_answer("view", state, 0)
    assert len(computed_answers) == 2 and "注意力" in chinese.decode() and "注意力" not in english.decode()


def test_changed_model_files_invalidate_cache(endpoints, state, computed_answers, monkeypatch):
    endpoints.cached_answer("view", state, 0)
    monkeypatch.setattr(answer_cache, "get_identity", lambda lm: "of other files")
    endpoints.cached_answer("view", state, 0)
    assert len(computed_answers) == 2


def test_changed_files_of_second_model_invalidate_cache(endpoints, state, computed_answers, monkeypatch):
    both = state | {"b.checkpoint": "learned", "b.prompt": [5, 6, 7], "b.generated": []}
    endpoints.cached_answer("view", both, 0)
    identity = answer_cache.get_identity
    other, _tokenizer = endpoints.runs.model("learned")
    monkeypatch.setattr(answer_cache, "get_identity", lambda lm: "other files" if lm is other else identity(lm))
    endpoints.cached_answer("view", both, 0)
    assert len(computed_answers) == 2


def test_client_with_outdated_version_is_notified(endpoints, state):
    endpoints.cached_answer("view", state, 0)
    for _time in range(2):
        response = json.loads(endpoints.cached_answer("view", state | {"version": "rope@00000000"}, 0))
        assert response["contents"]["problem"] == FILES_CHANGED
    assert json.loads(endpoints.cached_answer("view", state, 0))["contents"]["problem"] == ""


UNCACHED = [("show", {}), ("token", {}), ("view", {"view": "training"}), ("view", {"lesson": "any"})]


@pytest.mark.parametrize(("about", "change"), UNCACHED, ids=str)
def test_changing_answers_are_not_cached(endpoints, state, computed_answers, about, change):
    for _time in range(2):
        endpoints.cached_answer(about, state | change, 0)
    assert len(computed_answers) == 2


def test_incomplete_answer_is_not_cached(endpoints, state, computed_answers, monkeypatch):
    answer = endpoints.answer
    monkeypatch.setattr(endpoints, "answer", lambda *args: mark_incomplete() or answer(*args))
    for _time in range(2):
        with RequestBudget(9999, 60.0).activate():
            endpoints.cached_answer("view", state, 0)
    assert len(computed_answers) == 2


def test_pending_job_marks_answer_incomplete(monkeypatch):
    job = Job("a question of this test", lambda: iter(()), 1, 0.0)
    with (budget := RequestBudget(9, 1.0)).activate(), pytest.raises(ResultNotReadyError):
        get_or_run(job)
    assert budget.is_incomplete


def test_cache_size_is_limited(library, state):
    cache = AnswerCache(RunService(library), max_bytes=40_000)
    for query in range(5):
        page_state = PageState.parse(state | {"query": query})
        cache.answer("pick", 0, page_state, GenerationSettings(), lambda: bytes(10_000))
    assert 10_000 < cache.num_bytes <= 40_000
    computed_queries = []
    cache.answer("pick", 0, page_state, GenerationSettings(), lambda: computed_queries.append(1) or b"")
    cache.answer(
        "pick",
        0,
        PageState.parse(state | {"query": 0}),
        GenerationSettings(),
        lambda: computed_queries.append(0) or b"",
    )
    assert computed_queries == [0]


def test_numbers_outside_json_are_refused():
    with pytest.raises(ValueError):
        to_json_bytes({"value": float(np.inf)})
