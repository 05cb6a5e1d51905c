"""Server functions of the page over HTTP, and their statuses."""

import asyncio
import re
from types import SimpleNamespace

import pytest
from gradio.routes import App
from starlette.testclient import TestClient

from explorer.state.selection import Selection
from explorer.tracing.runs import RunService
from explorer.web.events.run_factory import RunFactory
from explorer.web.http.server_functions import server_function
from explorer.web.http.turns import priority_delay_s


@pytest.fixture(scope="module")
def post(page):
    """Function that returns the browser's response to a call: `post("answer", [...])`."""
    client = TestClient(App.create_app(page.blocks), raise_server_exceptions=False)
    component = {"component_id": page.layout.state._id, "session_hash": "page"}

    def call_function(name: str, args):
        return client.post("/gradio_api/component_server/", json=component | {"fn_name": name, "data": args})

    return call_function


@pytest.fixture(scope="module")
def state(library) -> dict:
    run = RunFactory(RunService(library)).create_run("rope", "the fox asked the owl")
    return run.as_dict() | Selection(view="attention", query=3, key=1).as_dict()


def test_an_answer_is_json(post, state):
    answer = post("answer", ["tune", state, 0])
    assert answer.status_code == 200 and answer.json()["contents"]["problem"] == ""
    working = post("inspect", [state, "attention-pattern", {"x": 1, "y": 3}])
    assert working.status_code == 200 and "recomputed" in working.json()


NOTHING = [None, 7, "show", {}, [], ["show"], ["show", {}, 0, 1]]
STATES = [None, 7, [1], "state", {}, {"checkpoint": "<b>"}, {"checkpoint": "rope", "prompt": [10**6]}]


@pytest.mark.parametrize(
    ("name", "given"),
    [
        *[(name, given) for name in ("answer", "inspect") for given in NOTHING],
        *[("answer", ["show", state, 0]) for state in STATES],
        *[("inspect", [state, "attention-pattern", {"x": 0, "y": 0}]) for state in STATES],
    ],
    ids=str,
)
def test_what_makes_no_sense_gets_a_sentence_and_a_status(post, caplog, name, given):
    answer = post(name, given)
    assert answer.status_code == 422
    assert re.match(r"\w.* .* .*", answer.json()["detail"])
    assert caplog.text == ""


@pytest.mark.parametrize("part", ["0", -1, 3, 0.5, 1.0, -0.0, True, None, [0]])
@pytest.mark.parametrize("about", ["show", "everything", None, ["show"]])
def test_an_answer_has_three_parts_about_four_things(post, state, about, part):
    assert post("answer", [about, state, part]).status_code == 422


@pytest.mark.parametrize("part", [{"layer": 2}, {"head": 99}, {"x": 0.5}, {"y": -1}], ids=str)
def test_a_point_that_the_model_lacks_is_refused(post, state, part):
    for picture in ("attention-heads", "attention-pattern"):
        point = {"x": 0, "y": 0, "layer": 0, "head": 0} | part
        assert post("inspect", [state, picture, point]).status_code == 422


def test_ids_beyond_the_vocabulary_are_refused_even_where_the_model_no_longer_sees_them(post, state):
    answer = post("answer", ["token", state | {"prompt": [10**6] + state["prompt"] * 20}, 0])
    assert answer.status_code == 422 and "token ids run from 0" in answer.json()["detail"]


def test_our_mistakes_are_ours(post, page, state, monkeypatch, caplog):
    def raise_key_error(self, run):
        raise KeyError("blocks.99")

    monkeypatch.setattr(RunService, "trace", raise_key_error)
    answer = post("answer", ["show", state, 0])
    name = re.search("It was logged as ([0-9a-f]{8})", answer.json()["detail"])[1]
    assert answer.status_code == 500 and "blocks.99" not in answer.text
    assert name in caplog.text and "blocks.99" in caplog.text and "Traceback" in caplog.text


def make_request(blocks: SimpleNamespace, **more) -> SimpleNamespace:
    """Return a request to an app with these blocks."""
    return SimpleNamespace(app=SimpleNamespace(get_blocks=lambda: blocks), headers={}, client=None, **more)


def test_a_function_waits_with_its_own_patience_for_a_place_to_compute():
    async def run() -> list[float]:
        priorities, blocks = [], SimpleNamespace(limiter=None)
        request = make_request(blocks, is_disconnected=never)
        endpoint = server_function(
            lambda part: priorities.append(priority_delay_s.get()), lambda part: (0.0, 1.0)[part], name="answer"
        )
        assert endpoint.__name__ == "answer"
        for part in (0, 1, 0):
            await asyncio.create_task(endpoint([part], request))
        return priorities

    async def never() -> bool:
        return False

    assert asyncio.run(run()) == [0.0, 1.0, 0.0]


def test_json_goes_out_as_it_was_made():
    async def run(result) -> bytes:
        request = make_request(SimpleNamespace(limiter=None))
        return (await server_function(lambda: result)([], request)).body

    assert asyncio.run(run(b'{"made": "before"}')) == b'{"made": "before"}'
    assert asyncio.run(run({"ä": [1, None]})).decode() == '{"ä":[1,null]}'


def test_an_unlikely_text_has_a_perplexity(post, state):
    edits = "logits*scale*100~final_norm*scale*100"
    answer = post("answer", ["show", state | {"edits": edits, "branches": "2~5.6"}, 1])
    assert answer.status_code == 200
    assert "over 1e308" in {row["perplexity"] for row in answer.json()["contents"]["branches"]}
