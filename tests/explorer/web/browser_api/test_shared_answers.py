"""Answers that processes share through a store."""

import json
import shutil

import pytest

from explorer.state.generation_settings import GenerationSettings
from explorer.state.page_state import PageState
from explorer.state.selection import Selection
from explorer.tracing.jobs import RequestBudget, mark_incomplete
from explorer.tracing.model_library import ModelLibrary
from explorer.tracing.run_service import RunService
from explorer.translations import use_locale
from explorer.web.actions.page_state_builder import PageStateBuilder
from explorer.web.browser_api import answer_cache
from explorer.web.browser_api.answer_cache import SHARED_TTL_S, code_version
from explorer.web.browser_api.endpoints import BrowserEndpoints
from explorer.web.key_value_stores import FaultTolerantStore, StoreError
from tests.explorer.web.browser_api.test_answer_cache import STATE_CHANGES


class RecordingStore:
    """Store that also records the lifetime of each entry, in seconds."""

    location = "here"

    def __init__(self):
        self.entries, self.seconds = {}, []
        self.get = self.entries.get

    def put(self, key, value, seconds):
        self.seconds.append(seconds)
        self.entries[key] = value


@pytest.fixture
def store() -> RecordingStore:
    return RecordingStore()


@pytest.fixture
def two_processes(library, store, monkeypatch):
    """Endpoints of two processes, and for each the scopes of the answers that it computed."""
    computed_by_process = [], []

    def make_endpoints(computed: list[str]) -> BrowserEndpoints:
        endpoints = BrowserEndpoints(RunService(library), shared=FaultTolerantStore(store))
        answer = endpoints.answer
        monkeypatch.setattr(endpoints, "answer", lambda *args: computed.append(args[0]) or answer(*args))
        return endpoints

    return *map(make_endpoints, computed_by_process), *computed_by_process


@pytest.fixture
def state(library) -> dict:
    run = PageStateBuilder(RunService(library)).create_run("rope", "the fox asked the owl")
    return run.as_dict() | Selection(view="attention", query=3, key=1).as_dict() | {"temperature": 1.0, "top_k": 0}


@pytest.mark.parametrize("part", [0, 1, 2])
def test_answer_is_shared_between_processes(two_processes, state, store, part):
    first, second, computed_by_first, computed_by_second = two_processes
    answer = first.cached_answer("view", state, part)
    assert second.cached_answer("view", state | {"turn": 7}, part) == answer
    assert (computed_by_first, computed_by_second) == (["view"], []) and store.seconds == [SHARED_TTL_S]
    store.entries.clear()
    assert second.cached_answer("view", state, part) == answer and computed_by_second == []  # now in its own cache


@pytest.mark.parametrize("change", STATE_CHANGES, ids=str)
def test_changed_state_is_another_key_in_all_processes(two_processes, state, change):
    first, second, _computed_by_first, computed_by_second = two_processes
    first.cached_answer("view", state, 0)
    second.cached_answer("view", state | change, 0)
    assert computed_by_second == ["view"]


def test_part_language_and_scope_belong_to_shared_key(two_processes, state):
    first, second, _computed_by_first, computed_by_second = two_processes
    first.cached_answer("view", state, 0)
    with use_locale("zh-CN"):
        second.cached_answer("view", state, 0)
    second.cached_answer("view", state, 1)
    second.cached_answer("pick", state, 0)
    assert computed_by_second == ["view", "view", "pick"]


def test_model_files_and_code_version_belong_to_shared_key(two_processes, state, monkeypatch):
    first, second, computed_by_first, computed_by_second = two_processes
    first.cached_answer("view", state, 0)
    with monkeypatch.context() as patch:
        patch.setattr(answer_cache, "code_version", lambda: "of another day")
        second.cached_answer("view", state, 0)
    assert computed_by_second == ["view"]
    monkeypatch.setattr(second.runs, "model_fingerprint", lambda checkpoint: "of another machine")
    second.cached_answer("view", state | {"query": 2}, 0)
    first.cached_answer("view", state | {"query": 2}, 0)
    assert computed_by_second == ["view", "view"] and computed_by_first == ["view", "view"]


def test_files_of_second_model_belong_to_shared_key(two_processes, state, monkeypatch):
    first, second, _computed_by_first, computed_by_second = two_processes
    both = state | {"b.checkpoint": "learned", "b.prompt": [5, 6, 7], "b.generated": []}
    first.cached_answer("view", both, 0)
    fingerprint = second.runs.model_fingerprint
    monkeypatch.setattr(
        second.runs, "model_fingerprint", lambda name: fingerprint(name) + ("!" if name == "learned" else "")
    )
    second.cached_answer("view", both, 0)
    assert computed_by_second == ["view"]


def test_changing_answers_are_not_shared(two_processes, state, store, monkeypatch):
    one, *_others = two_processes
    one.cached_answer("show", state, 0)
    one.cached_answer("view", state | {"view": "training"}, 0)
    answer = one.answer
    monkeypatch.setattr(one, "answer", lambda *args: mark_incomplete() or answer(*args))
    with RequestBudget(9999, 60.0).activate():
        one.cached_answer("view", state, 0)
    assert store.entries == {}


def test_answer_is_not_shared_if_files_changed_meanwhile(two_processes, state, store, monkeypatch):
    one, *_others = two_processes
    answer = one.answer

    def answer_after_file_change(*args):
        monkeypatch.setattr(one.runs, "model_fingerprint", lambda checkpoint: "new")
        return answer(*args)

    monkeypatch.setattr(one, "answer", answer_after_file_change)
    one.cached_answer("view", state, 0)
    assert store.entries == {}


def test_copied_model_shares_answers_and_version(style_checkpoints, tmp_path, store, state):
    one = BrowserEndpoints(RunService(ModelLibrary("cpu")), shared=FaultTolerantStore(store))
    answer = one.cached_answer("view", state, 0)
    shutil.copytree(style_checkpoints / "rope", tmp_path / "rope")
    library = ModelLibrary("cpu")
    library.catalog._opened["rope"] = tmp_path / "rope"  # there is no public way to a second folder of that name
    library.catalog.locate = lambda name: tmp_path / "rope"
    elsewhere = BrowserEndpoints(RunService(library), shared=FaultTolerantStore(store))
    assert elsewhere.runs.version("rope") == one.runs.version("rope") == json.loads(answer)["version"]
    elsewhere.answer = lambda *args: pytest.fail("computed again")
    assert elsewhere.cached_answer("view", state, 0) == answer


def test_failing_store_does_not_fail_answer(library, state):
    class FailingStore:
        location = "nowhere"

        def get(self, *_args):
            raise StoreError("gone")

        put = get

    endpoints = BrowserEndpoints(RunService(library), shared=FaultTolerantStore(FailingStore()))
    assert json.loads(endpoints.cached_answer("view", state, 0))["contents"]


def test_key_depends_on_url_fields_only(two_processes, state):
    one, *_others = two_processes
    changed = state | {"edits": "blocks.0.attn.z*scale*0~rope.angles*shift*5", "branches": "2~5.6"}
    page_state, settings = PageState.parse(changed), GenerationSettings.parse(changed)
    key = one.answer_cache.key("view", 0, page_state, settings)
    assert len(key) == 64 and key == one.answer_cache.key("view", 0, PageState.parse(page_state.as_dict()), settings)


def test_code_version_depends_on_source_files(tmp_path):
    def version_with_files(**files: str) -> str:
        for name, text in files.items():
            path = tmp_path / name.replace("__", "/")
            path.parent.mkdir(exist_ok=True, parents=True)
            path.with_suffix(".py").write_text(text, "utf-8")
        return code_version.__wrapped__(tmp_path)

    versions = [
        version_with_files(explorer__a="1"),
        version_with_files(explorer__a="2"),
        version_with_files(model__b=""),
        version_with_files(tests__c=""),
    ]
    assert len(set(versions[:3])) == 3 and versions[2] == versions[3]
