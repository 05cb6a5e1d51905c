"""Answers that processes share."""

import json
import shutil

import pytest

from explorer.language import speaking
from explorer.state.page_state import PageState
from explorer.state.selection import Selection
from explorer.state.settings import GenerationSettings
from explorer.tracing.library import Library
from explorer.tracing.runs import Runs
from explorer.tracing.work import Work, is_now_incomplete
from explorer.web.answers import kept_answers
from explorer.web.answers.endpoints import Endpoints
from explorer.web.answers.kept_answers import SHARED_SECONDS
from explorer.web.events.opening import Opening
from explorer.web.shared.code_version import code_version
from explorer.web.shared.going_without import GoingWithout
from explorer.web.shared.in_memory import InMemory
from explorer.web.shared.store import StoreError
from tests.explorer.web.answers.test_kept_answers import OTHERWISE


class Noting(InMemory):
    """Also notes for how long something is put there."""

    def __init__(self):
        super().__init__()
        self.seconds = []

    def put(self, key, value, seconds):
        self.seconds.append(seconds)
        super().put(key, value, seconds)


@pytest.fixture
def store() -> Noting:
    return Noting()


@pytest.fixture
def two(library, store, monkeypatch):
    """Two processes' endpoints, and about what each made answers."""
    made = [], []

    def endpoints(about: list[str]) -> Endpoints:
        endpoints = Endpoints(Runs(library), shared=GoingWithout(store))
        answer = endpoints.answer
        monkeypatch.setattr(endpoints, "answer", lambda *given: about.append(given[0]) or answer(*given))
        return endpoints

    return *map(endpoints, made), *made


@pytest.fixture
def state(library) -> dict:
    run = Opening(Runs(library)).run_of("rope", "the fox asked the owl")
    return run.as_dict() | Selection(view="attention", query=3, key=1).as_dict() | {"temperature": 1.0, "top_k": 0}


@pytest.mark.parametrize("part", [0, 1, 2])
def test_what_one_answered_the_other_finds(two, state, store, part):
    one, other, made_by_one, made_by_other = two
    answer = one.kept_answer("view", state, part)
    assert other.kept_answer("view", state | {"turn": 7}, part) == answer
    assert (made_by_one, made_by_other) == (["view"], []) and store.seconds == [SHARED_SECONDS]
    store.drop(*store.keys())
    assert other.kept_answer("view", state, part) == answer and made_by_other == []  # it has it now


@pytest.mark.parametrize("change", OTHERWISE, ids=str)
def test_another_question_is_another_for_all(two, state, change):
    one, other, _made, made_by_other = two
    one.kept_answer("view", state, 0)
    other.kept_answer("view", state | change, 0)
    assert made_by_other == ["view"]


def test_so_are_another_part_language_and_what_is_asked(two, state):
    one, other, _made, made_by_other = two
    one.kept_answer("view", state, 0)
    with speaking("zh-CN"):
        other.kept_answer("view", state, 0)
    other.kept_answer("view", state, 1)
    other.kept_answer("pick", state, 0)
    assert made_by_other == ["view", "view", "pick"]


def test_other_files_of_that_name_and_other_code_have_answers_of_their_own(two, state, monkeypatch):
    one, other, _made, made_by_other = two
    one.kept_answer("view", state, 0)
    with monkeypatch.context() as here:
        here.setattr(kept_answers, "code_version", lambda: "of another day")
        other.kept_answer("view", state, 0)
    assert made_by_other == ["view"]
    monkeypatch.setattr(other.runs, "contents", lambda checkpoint: "of another machine")
    other.kept_answer("view", state | {"query": 2}, 0)
    one.kept_answer("view", state | {"query": 2}, 0)
    assert made_by_other == ["view", "view"] and _made == ["view", "view"]


def test_the_other_runs_files_count_too(two, state, monkeypatch):
    one, other, _made, made_by_other = two
    both = state | {"b.checkpoint": "learned", "b.prompt": [5, 6, 7], "b.generated": []}
    one.kept_answer("view", both, 0)
    contents = other.runs.contents
    monkeypatch.setattr(other.runs, "contents", lambda name: contents(name) + ("!" if name == "learned" else ""))
    other.kept_answer("view", both, 0)
    assert made_by_other == ["view"]


def test_what_may_be_otherwise_next_time_is_not_shared(two, state, store, monkeypatch):
    one, *_others = two
    one.kept_answer("show", state, 0)
    one.kept_answer("view", state | {"view": "training"}, 0)
    answer = one.answer
    monkeypatch.setattr(one, "answer", lambda *given: is_now_incomplete() or answer(*given))
    with Work(9999, 60.0).counted():
        one.kept_answer("view", state, 0)
    assert store.keys() == []


def test_an_answer_of_files_that_were_written_meanwhile_is_not_shared(two, state, store, monkeypatch):
    one, *_others = two
    answer = one.answer

    def written_meanwhile(*given):
        monkeypatch.setattr(one.runs, "contents", lambda checkpoint: "new")
        return answer(*given)

    monkeypatch.setattr(one, "answer", written_meanwhile)
    one.kept_answer("view", state, 0)
    assert store.keys() == []


def test_a_copy_of_the_model_elsewhere_has_the_same_answers_and_version(style_checkpoints, tmp_path, store, state):
    one = Endpoints(Runs(Library("cpu")), shared=GoingWithout(store))
    answer = one.kept_answer("view", state, 0)
    shutil.copytree(style_checkpoints / "rope", tmp_path / "rope")
    library = Library("cpu")
    library.offered._opened["rope"] = tmp_path / "rope"  # there is no other way to one of that name
    library.offered.place = lambda name: tmp_path / "rope"
    elsewhere = Endpoints(Runs(library), shared=GoingWithout(store))
    assert elsewhere.runs.version("rope") == one.runs.version("rope") == json.loads(answer)["version"]
    elsewhere.answer = lambda *given: pytest.fail("made anew")
    assert elsewhere.kept_answer("view", state, 0) == answer


def test_a_store_that_is_gone_takes_no_answer_along(library, state):
    class Gone(InMemory):
        def get(self, key):
            raise StoreError("gone")

        put = get

    endpoints = Endpoints(Runs(library), shared=GoingWithout(Gone()))
    assert json.loads(endpoints.kept_answer("view", state, 0))["contents"]


def test_a_question_is_named_by_what_the_address_says(two, state):
    one, *_others = two
    changed = state | {"edits": "blocks.0.attn.z*scale*0~rope.angles*shift*5", "branches": "2~5.6"}
    asked, settings = PageState.parse(changed), GenerationSettings.parse(changed)
    key = one.kept.key("view", 0, asked, settings)
    assert len(key) == 64 and key == one.kept.key("view", 0, PageState.parse(asked.as_dict()), settings)


def test_other_code_is_another_version(tmp_path):
    def of(**files: str) -> str:
        for name, text in files.items():
            path = tmp_path / name.replace("__", "/")
            path.parent.mkdir(exist_ok=True, parents=True)
            path.with_suffix(".py").write_text(text, "utf-8")
        return code_version.__wrapped__(tmp_path)

    versions = [of(explorer__a="1"), of(explorer__a="2"), of(model__b=""), of(tests__c="")]
    assert len(set(versions[:3])) == 3 and versions[2] == versions[3]
