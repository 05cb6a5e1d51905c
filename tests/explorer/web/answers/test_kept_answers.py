"""Answers that are kept by their questions."""

import json

import numpy as np
import pytest

from explorer.language import speaking
from explorer.state.page_state import PageState
from explorer.state.selection import Selection
from explorer.state.settings import GenerationSettings
from explorer.tracing.jobs import Job, NotYet, worked_out
from explorer.tracing.runs import Runs
from explorer.tracing.work import Work, is_now_incomplete
from explorer.web.answers import kept_answers
from explorer.web.answers.endpoints import Endpoints
from explorer.web.answers.kept_answers import KeptAnswers
from explorer.web.events.opening import Opening
from explorer.web.http.server_functions import as_json


@pytest.fixture
def endpoints(library) -> Endpoints:
    return Endpoints(Runs(library))


@pytest.fixture
def state(endpoints) -> dict:
    run = Opening(endpoints.runs).run_of("rope", "the fox asked the owl")
    return run.as_dict() | Selection(view="attention", query=3, key=1).as_dict() | {"temperature": 1.0, "top_k": 0}


@pytest.fixture
def made(endpoints, monkeypatch) -> list[str]:
    """About what answers were made, in order."""
    about = []
    answer = endpoints.answer
    monkeypatch.setattr(endpoints, "answer", lambda *given: about.append(given[0]) or answer(*given))
    return about


@pytest.mark.parametrize("part", [0, 1, 2])
@pytest.mark.parametrize("about", ["view", "pick"])
def test_the_same_question_is_answered_once(endpoints, state, made, about, part):
    first = endpoints.kept_answer(about, state, part)
    assert json.loads(first) == json.loads(json.dumps(endpoints.answer(about, state, part)))
    made.clear()
    assert endpoints.kept_answer(about, state | {"turn": 7}, part) == first
    assert made == []


OTHERWISE = [
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


@pytest.mark.parametrize("change", OTHERWISE, ids=str)
@pytest.mark.parametrize("part", [0, 1])
@pytest.mark.exhaustive
def test_another_question_is_another(endpoints, state, made, change, part):
    endpoints.kept_answer("view", state, part)
    made.clear()
    changed = endpoints.kept_answer("view", state | change, part)
    assert made == ["view"]
    assert json.loads(changed) == json.loads(json.dumps(endpoints.answer("view", state | change, part)))


@pytest.mark.parametrize("change", [{"b.prompt": [5, 6, 8]}, {"b.generated": [7]}, {"shown": "b"}], ids=str)
def test_another_second_run_is_another_question(endpoints, state, made, change):
    both = state | {"b.checkpoint": "rope", "b.prompt": [5, 6, 7], "b.generated": [], "shown": "difference"}
    endpoints.kept_answer("view", both, 0)
    endpoints.kept_answer("view", both | change, 0)
    assert len(made) == 2


def test_another_part_and_what_is_asked_are_part_of_it(endpoints, state, made):
    for about in ("view", "pick", "tune"):
        for part in (0, 1, 2):
            endpoints.kept_answer(about, state, part)
    assert len(made) == 9


def test_each_language_has_its_own(endpoints, state, made):
    with speaking("zh-CN"):
        chinese = endpoints.kept_answer("view", state, 0)
    english = endpoints.kept_answer("view", state, 0)
    assert len(made) == 2 and "注意力" in chinese.decode() and "注意力" not in english.decode()


def test_a_model_that_was_written_anew_answers_anew(endpoints, state, made, monkeypatch):
    endpoints.kept_answer("view", state, 0)
    monkeypatch.setattr(kept_answers, "identity_of", lambda lm: "of other files")
    endpoints.kept_answer("view", state, 0)
    assert len(made) == 2


def test_the_other_runs_model_is_part_of_it(endpoints, state, made, monkeypatch):
    both = state | {"b.checkpoint": "learned", "b.prompt": [5, 6, 7], "b.generated": []}
    endpoints.kept_answer("view", both, 0)
    identity = kept_answers.identity_of
    other, _tokenizer = endpoints.runs.model("learned")
    monkeypatch.setattr(kept_answers, "identity_of", lambda lm: "other files" if lm is other else identity(lm))
    endpoints.kept_answer("view", both, 0)
    assert len(made) == 2


def test_who_holds_pictures_of_older_files_is_told(endpoints, state):
    endpoints.kept_answer("view", state, 0)
    told = json.loads(endpoints.kept_answer("view", state | {"version": "rope@00000000"}, 0))
    assert told == {"contents": {}, "more": False, "ask": "show"}


ANEW = [("show", {}), ("token", {}), ("view", {"view": "training"}), ("view", {"lesson": "any"})]


@pytest.mark.parametrize(("about", "change"), ANEW, ids=str)
def test_what_may_be_otherwise_next_time_is_made_anew(endpoints, state, made, about, change):
    for _time in range(2):
        endpoints.kept_answer(about, state | change, 0)
    assert len(made) == 2


def test_what_waits_for_a_job_is_not_kept(endpoints, state, made, monkeypatch):
    answer = endpoints.answer
    monkeypatch.setattr(endpoints, "answer", lambda *given: is_now_incomplete() or answer(*given))
    for _time in range(2):
        with Work(9999, 60.0).counted():
            endpoints.kept_answer("view", state, 0)
    assert len(made) == 2


def test_a_job_that_is_not_done_makes_an_answer_incomplete(monkeypatch):
    job = Job("a question of this test", lambda: iter(()), 1, 0.0)
    with (work := Work(9, 1.0)).counted(), pytest.raises(NotYet):
        worked_out(job)
    assert work.is_incomplete


def test_no_more_is_kept_than_fits(library, state):
    kept = KeptAnswers(Runs(library), most_bytes=40_000)
    for query in range(5):
        asked = PageState.parse(state | {"query": query})
        kept.answer("pick", 0, asked, GenerationSettings(), lambda: bytes(10_000))
    assert 10_000 < kept.num_bytes <= 40_000
    made = []
    kept.answer("pick", 0, asked, GenerationSettings(), lambda: made.append(1) or b"")
    kept.answer("pick", 0, PageState.parse(state | {"query": 0}), GenerationSettings(), lambda: made.append(0) or b"")
    assert made == [0]


def test_numbers_that_json_lacks_are_refused():
    with pytest.raises(ValueError):
        as_json({"value": float(np.inf)})
