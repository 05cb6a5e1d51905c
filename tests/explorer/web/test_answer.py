"""Answers over HTTP: lines in stages, actions, refusals, cancellation and the queue."""

import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import httpx
import pytest
from starlette.testclient import TestClient

from explorer.errors import UserError
from explorer.tracing.jobs import RequestCancelledError, check_budget
from explorer.web import browser_routes as channel
from explorer.web import rate_limits
from explorer.web.browser_api.endpoints import FILES_CHANGED
from explorer.web.browser_routes import LIGHT_SLOTS
from explorer.web.rate_limits import CLIENT_HEADER, PromptRateLimiter
from tests.subtest_loops import subtest_each

PROMPT = "the fox asked the owl"
TIMEOUT_S = 20.0  # until a waiting test fails


@pytest.fixture
def endpoints(served_page):
    return served_page.channel.endpoints


@pytest.fixture
def state(state) -> dict:
    return state | {"view": "attention", "query": 3, "key": 1}


@contextmanager
def stream_answer(served_page, about: str, state: dict) -> Iterator[Iterator[dict]]:
    """Request an answer and yield its parsed lines; the client disconnects at the end of the block."""
    with (
        httpx.Client(base_url=served_page.blocks.local_url, timeout=TIMEOUT_S) as client,
        client.stream("POST", "explorer/answer", json={"about": about, "state": state}) as response,
    ):
        assert response.status_code == 200
        yield map(json.loads, response.iter_lines())


class Gate:
    """Holds stages of answers back until it is opened or their clients disconnect.

    Args:
        answer: function that computes a stage.
        stages: stages that are held back.
    """

    def __init__(self, answer: Callable[..., bytes], stages: range):
        self.answer, self.stages = answer, stages
        self.is_open, self.num_held, self.num_cancelled = threading.Event(), 0, 0

    def cached_answer(self, about: str, state: dict, stage: int = 0) -> bytes:
        if stage in self.stages:
            self.num_held += 1
            try:
                while not self.is_open.wait(0.01):
                    check_budget()
            except RequestCancelledError:
                self.num_cancelled += 1
                raise
            finally:
                self.num_held -= 1
        return self.answer(about, state, stage)


@pytest.fixture
def gate(endpoints, monkeypatch) -> Iterator[Callable[[range], Gate]]:
    """Function that holds some stages back at a gate, which opens at the end of the test."""
    gates = []

    def close(stages: range) -> Gate:
        gates.append(Gate(endpoints.cached_answer, stages))
        monkeypatch.setattr(endpoints, "cached_answer", gates[-1].cached_answer)
        return gates[-1]

    yield close
    for one in gates:
        one.is_open.set()


def wait_until(holds: Callable[[], bool]):
    end = time.monotonic() + TIMEOUT_S
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.mark.parametrize(
    ("about", "num_lines"), [("show", 3), ("view", 3), ("pick", 3), ("token", 1), ("tune", 1)], ids=str
)
def test_each_stage_is_one_line(ask, endpoints, state, about, num_lines):
    lines = ask(about, state)
    assert lines == [json.loads(json.dumps(endpoints.answer(about, state, stage))) for stage in range(num_lines)]
    parts = [line["contents"].keys() for line in lines]
    assert parts[0] and len(set().union(*parts)) == sum(map(len, parts))


def test_visible_contents_are_sent_before_rest_is_computed(served_page, gate, state):
    held = gate(range(1, 3))
    with stream_answer(served_page, "show", state) as lines:
        first = next(lines)
        assert first["contents"]["attention-heads"] and "attention-entropy" not in first["contents"]
        held.is_open.set()
        rest = [line["contents"] for line in lines]
    assert len(rest) == 2 and "branches" in rest[0] and {name[-5:] for name in rest[1]} == {"-mark"}


def test_state_change_is_sent_before_contents_of_new_state(ask, state):
    update, first, *rest = ask("show", state, {"kind": "prompt", "text": "the owl", "checkpoint": "gpt"})
    assert update.keys() == {"change", "prompt", "done", "notices"}
    assert (update["done"], update["notices"]) == (True, [])
    assert (update["change"]["checkpoint"], update["change"]["turn"]) == ("gpt", state.get("turn", 0) + 1)
    assert first["contents"]["story"]["prompt"] == "the owl" and first["version"].startswith("gpt@")
    assert rest[0]["contents"] == ask("show", state | update["change"])[1]["contents"]


def test_link_is_opened_in_one_answer(ask):
    update, first, *_rest = ask(
        "show", {}, {"kind": "load", "query": {"text": "the owl", "view": "tokens", "head": "-1"}}
    )
    assert (
        update["change"]["view"] == "tokens" and update["prompt"] == first["contents"]["story"]["prompt"] == "the owl"
    )
    assert len(update["notices"]) == 1 and "head" in update["notices"][0]


@subtest_each(
    "action",
    [
        {"kind": "undo"},
        {"kind": "prompt", "text": ""},
        {"kind": "prompt", "text": "the owl", "checkpoint": "../etc"},
        {"kind": "take", "token": 10**6},
        {"kind": "lesson", "lesson": "none", "step": 1},
        {"kind": "no such action"},
        {},
    ],
    ids=str,
)
def test_refused_action_changes_nothing_and_explains_why(ask, state, action):
    (line,) = ask("show", state, action | {"kind": action.get("kind", "")})
    assert (line["change"], line["prompt"], line["done"]) == ({}, None, False)
    (notice,) = line["notices"]
    assert re.match(r"\w.* .* .*", notice)


def test_link_without_any_model_is_refused(post, served_page, monkeypatch):
    def refuse(query):
        raise UserError("There is no model here.")

    monkeypatch.setattr(served_page.actions, "parse_query", refuse)
    response = post("answer", {"about": "show", "state": {}, "action": {"kind": "load", "query": {}}})
    assert (response.status_code, response.json()["detail"]) == (422, "There is no model here.")


def test_derivation_is_sent_after_visible_contents(post, state):
    clicked = {"figure": "attention-pattern", "point": {"x": 1, "y": 3}}
    question = {"about": "pick", "state": state, "inspect": clicked}
    lines = [json.loads(line) for line in post("answer", question).text.splitlines()]
    assert ["inspection" in line for line in lines] == [False, True, False, False]
    assert "recomputed" in lines[1]["inspection"]
    beyond = clicked | {"point": {"x": 0, "y": 0, "layer": 2, "head": 0}}
    lines = [json.loads(line) for line in post("answer", question | {"inspect": beyond}).text.splitlines()]
    assert len(lines) == 4 and re.match(r"\w.* .* .*", lines[1]["inspection"])


def test_changed_model_files_are_reported_and_all_is_sent(ask, state):
    now = ask("show", state)[0]["version"]
    for about in ("pick", "tune", "token"):
        assert ask(about, state | {"version": now})[0]["contents"]["problem"] == ""
        lines = ask(about, state | {"version": "rope@00000000"})
        assert len(lines) == 3 and lines[0]["contents"]["problem"] == FILES_CHANGED
        assert lines[0]["contents"]["story"] and lines[0]["version"] == now


@subtest_each(
    ("field", "value", "words"),
    [
        *[("layer", value, "must be a whole number") for value in ("true", "1.0", "-0.0", '"1"', "null", "[0]")],
        *[("temperature", value, "must be a number") for value in ("true", '"1"', "null", "{}")],
        *[("temperature", value, "JSON has no number") for value in ("NaN", "Infinity", "-Infinity", "1e999")],
        *[("seed", value, "too many digits") for value in ("9" * 5000, "-" + "9" * 5000)],
        ("layer", "-1", "at least 0"),
        ("layer", "9" * 30, "less than"),
        ("prompt", "[1.5]", "whole number"),
        ("prompt", "[" * 10_000 + "]" * 10_000, "nested too deeply"),
        ("prompt", "[1000000]", "token ids run from 0"),
        ("prompt", json.dumps([0] * 100_000), "at most"),
        ("checkpoint", '"<b>"', "there is no checkpoint"),
        ("view", "7", "must be text"),
        ("lang", '"en", "lang": "zh"', "twice"),
        ("my own", '{"path": "/etc/passwd"}', "is no field"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_invalid_state_is_refused_with_explanation(post, state, caplog, field, value, words):
    body = json.dumps({"about": "show", "state": state | {field: "here"}}).replace('"here"', value)
    response = post("answer", body.encode())
    assert response.status_code == 422
    assert words in response.json()["detail"] and len(response.json()["detail"]) < 300
    assert caplog.text == ""


@subtest_each(
    ("body", "words"),
    [
        (b"", "must be JSON"),
        (b"{", "must be JSON"),
        (b"\xff\xfe{}", "not UTF-8"),
        (b'{"about": "show", "state": {"checkpoint": "\xed\xa0\x80"}}', "not UTF-8"),
        (b"null", "must be an object"),
        (b"[]", "must be an object"),
        (b'"show"', "must be an object"),
        (b"{}", "about is missing"),
        (b'{"about": "show"}', "state is missing"),
        (b'{"about": "show", "state": {}}', "checkpoint must be a name"),
        (b'{"about": "show", "state": []}', "state must be an object"),
        (b'{"about": "everything", "state": {}}', "about must be one of"),
        (b'{"about": ["show"], "state": {}}', "about must be one of"),
        (b'{"about": "show", "state": {}, "stage": 1}', "stage is unknown here"),
        (b'{"about": "show", "state": {}, "action": "undo"}', "action must be an object"),
        (b'{"about": "show", "state": {}, "action": {"kind": 7}}', "action.kind must be text"),
        (b'{"about": "show", "state": {}, "action": {"kind": "undo", "other": 1}}', "action.other is unknown here"),
        (b'{"about": "show", "state": {}, "action": {"kind": "take", "token": true}}', "action.token must be a whole"),
        (b'{"about": "show", "state": {}, "action": {"kind": "load", "query": {"seed": 1}}}', "must be text"),
    ],
    ids=lambda value: ascii(value)[:60],
)
def test_invalid_request_is_refused_with_explanation(post, caplog, body, words):
    response = post("answer", body)
    assert response.status_code == 422 and words in response.json()["detail"]
    assert caplog.text == ""


def test_lone_surrogate_becomes_replacement_character(post, state):
    """JavaScript strings may end within a character, and JSON can contain such strings."""
    body = json.dumps(
        {"about": "show", "state": state, "action": {"kind": "prompt", "text": "here", "checkpoint": "rope"}}
    )
    response = post("answer", body.replace('"here"', r'"the owl\ud800"').encode())
    contents = json.loads(response.text.splitlines()[1])["contents"]
    assert contents["story"]["prompt"] == "the owl\ufffd"


def test_refusal_is_in_language_of_page(post, state):
    for name, body in {
        "answer": {"about": "show", "state": state | {"lang": "zh-CN", "prompt": [10**6]}},
        "define": [state | {"lang": "zh-CN"}, "no such term"],
    }.items():
        response = post(name, body)
        assert response.status_code == 422 and re.search("[\u4e00-\u9fff]", response.json()["detail"])


def test_internal_error_is_logged_without_details_for_user(post, endpoints, state, monkeypatch, caplog):
    def slip(*args):
        raise KeyError("blocks.99")

    monkeypatch.setattr(endpoints, "cached_answer", slip)
    response = post("answer", {"about": "show", "state": state})
    name = re.search("It was logged as ([0-9a-f]{8})", response.json()["detail"])[1]
    assert response.status_code == 500 and "blocks.99" not in response.text
    assert name in caplog.text and "blocks.99" in caplog.text and "Traceback" in caplog.text


@pytest.mark.parametrize(
    ("error", "sentence"),
    [(KeyError("blocks.99"), "logged as ([0-9a-f]{8})"), (UserError("Take a shorter prompt."), "^Take a shorter")],
)
def test_error_after_first_stage_is_reported_in_last_line(ask, endpoints, state, monkeypatch, caplog, error, sentence):
    answer = endpoints.cached_answer

    def slip_later(about, state, stage=0):
        if stage == 1:
            raise error
        return answer(about, state, stage)

    monkeypatch.setattr(endpoints, "cached_answer", slip_later)
    first, last = ask("show", state)
    assert first["contents"]["story"]["prompt"] == PROMPT
    assert last["contents"].keys() == {"problem"} and "blocks.99" not in last["contents"]["problem"]
    name = re.search(sentence, last["contents"]["problem"])
    assert name[0] and ("blocks.99" in caplog.text and name[1] in caplog.text if name.groups() else caplog.text == "")


def test_internal_error_in_action_is_logged(post, served_page, state, monkeypatch, caplog):
    def slip(*args):
        raise KeyError("blocks.99")

    monkeypatch.setattr(served_page.actions, "apply", slip)
    response = post("answer", {"about": "show", "state": state, "action": {"kind": "undo"}})
    assert response.status_code == 500 and "It was logged as" in response.json()["detail"]
    assert "blocks.99" in caplog.text and "blocks.99" not in response.text


@pytest.mark.parametrize("stages", [range(1), range(1, 2)], ids=["before the first line", "after it"])
def test_computation_stops_after_client_disconnects(served_page, gate, state, stages):
    held = gate(stages)
    with httpx.Client(base_url=served_page.blocks.local_url, timeout=TIMEOUT_S) as client:
        question = {"about": "show", "state": state}
        if stages.start:
            with client.stream("POST", "explorer/answer", json=question) as response:
                lines = response.iter_lines()  # kept, because its end would close the connection
                next(lines)
                wait_until(lambda: held.num_held == 1)
                assert held.num_cancelled == 0
        else:
            with pytest.raises(httpx.ReadTimeout):
                client.post("explorer/answer", json=question, timeout=0.5)
    wait_until(lambda: held.num_cancelled == 1)
    limiters = served_page.channel.light, served_page.channel.heavy
    wait_until(lambda: sum(limiter.borrowed_tokens for limiter in limiters) == held.num_held == 0)


def test_client_that_disconnects_leaves_queue(served_page, gate, state):
    held = gate(range(1))
    with ExitStack() as clients:
        threads = [threading.Thread(target=read_all, args=(served_page, state)) for _slot in range(LIGHT_SLOTS)]
        for thread in threads:
            thread.start()
        wait_until(lambda: held.num_held == LIGHT_SLOTS)
        lines = clients.enter_context(stream_answer(served_page, "token", state))
        assert next(lines) == {"waiting": 1}
        assert served_page.channel.num_waiting == 1
    wait_until(lambda: served_page.channel.num_waiting == 0)
    held.is_open.set()
    for thread in threads:
        thread.join()
    assert held.num_cancelled == 0


def read_all(served_page, state: dict, about: str = "token") -> list[dict]:
    with stream_answer(served_page, about, state) as lines:
        return list(lines)


def test_waiting_client_gets_queue_length_then_answer(served_page, gate, state, monkeypatch, caplog):
    monkeypatch.setattr(channel, "SHOW_QUEUE_AFTER_S", 0.1)
    monkeypatch.setattr(channel, "POLL_INTERVAL_S", 0.05)
    held = gate(range(1))
    threads = [threading.Thread(target=read_all, args=(served_page, state)) for _slot in range(LIGHT_SLOTS)]
    for thread in threads:
        thread.start()
    wait_until(lambda: held.num_held == LIGHT_SLOTS)
    with (
        stream_answer(served_page, "token", state) as lines,
        stream_answer(served_page, "token", state | {"prompt": [10**6]}) as broken,
    ):
        while next(lines) != {"waiting": 2}:
            pass
        assert next(broken) == {"waiting": 2}
        held.is_open.set()
        assert "story" in [line for line in lines if "waiting" not in line][0]["contents"]
        (error_line,) = [line for line in broken if "waiting" not in line]  # the HTTP status was sent before
        assert error_line["contents"].keys() == {"problem"}
        assert "token ids run from 0" in error_line["contents"]["problem"]
    for thread in threads:
        thread.join()
    assert caplog.text == ""


def test_queue_length_is_not_sent_during_computation(served_page, gate, state, monkeypatch):
    monkeypatch.setattr(channel, "SHOW_QUEUE_AFTER_S", 0.05)
    monkeypatch.setattr(channel, "POLL_INTERVAL_S", 0.02)
    held = gate(range(1))
    threading.Timer(0.5, held.is_open.set).start()
    assert all("waiting" not in line for line in read_all(served_page, state))


def test_lower_figures_do_not_block_visible_contents(served_page, gate, state, post, ask):
    held = gate(range(1, 3))
    with ExitStack() as clients:
        answers = [
            clients.enter_context(stream_answer(served_page, "show", state | {"query": query}))
            for query in range(LIGHT_SLOTS + 2)
        ]
        assert all("story" in next(lines)["contents"] for lines in answers)
        wait_until(lambda: held.num_held == 1 and served_page.channel.num_waiting == LIGHT_SLOTS + 1)
        assert ask("token", state)[0]["contents"]["story"]["prompt"] == PROMPT
        assert post("define", [state, "token"]).status_code == 200
        assert held.num_held == 1
        health = httpx.get(f"{served_page.blocks.local_url}health").json()
        assert health["queue"] == LIGHT_SLOTS + 1


PROMPT_ACTION = {"kind": "prompt", "text": PROMPT, "checkpoint": "rope"}


def test_prompt_rate_is_limited_for_each_user(ask, served_page, state, monkeypatch):
    monkeypatch.setattr(served_page.actions, "prompts", PromptRateLimiter(2))
    for kind in ("prompt", "example", "model"):
        lines = ask("show", state, PROMPT_ACTION | {"kind": kind}, **{CLIENT_HEADER: "mine"})
        assert lines[0]["done"] is (kind != "model")
    assert len(lines) == 1 and lines[0]["notices"][0].startswith("Limit reached (2 prompts per minute). Try again in ")
    assert ask("show", state, {"kind": "step"}, **{CLIENT_HEADER: "mine"})[0]["done"]
    assert ask("show", state, PROMPT_ACTION, **{CLIENT_HEADER: "another's"})[0]["done"]


def test_prompt_rate_is_limited_for_each_ip_address(served_page, state, monkeypatch):
    monkeypatch.setattr(rate_limits, "CLIENTS_PER_ADDRESS", 3)
    monkeypatch.setattr(served_page.actions, "prompts", PromptRateLimiter(1))

    def is_done(address: str, name: str) -> bool:
        client = TestClient(served_page.blocks.app, base_url=served_page.blocks.local_url, client=(address, 5000))
        question = {"about": "token", "state": state, "action": PROMPT_ACTION}
        response = client.post("/explorer/answer", json=question, headers={CLIENT_HEADER: name})
        return json.loads(response.text.splitlines()[0])["done"]

    assert [is_done("10.0.0.7", f"visitor {number}") for number in range(5)] == [True] * 3 + [False] * 2
    assert is_done("10.0.0.8", "visitor 4")
    assert [is_done("10.0.0.9", ""), is_done("10.0.0.9", ""), is_done("10.0.0.10", "")] == [True, False, True]


def test_improbable_text_has_finite_perplexity_text(ask, state):
    edits = "logits*scale*100~final_norm*scale*100"
    rows = ask("show", state | {"edits": edits, "branches": "2~5.6"})[1]["contents"]["branches"]
    assert "over 1e308" in {row["perplexity"] for row in rows}
