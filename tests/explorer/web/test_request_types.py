"""Strict JSON parser, compared with Python's own, and error messages for arguments of the wrong type."""

import json
from typing import Annotated, Literal

import gradio as gr
import pytest
from pydantic import Field

from explorer.errors import UserError
from explorer.translations import use_locale
from explorer.web.request_validation import Action, ClickedPointFields, Stage, State, argument_types, parse_json
from tests.subtest_loops import subtest_each


def answer(about: Literal["show", "tune"], state: State, part: Stage = 0, action: Action = None): ...


def write(
    prompt: Annotated[str, Field(max_length=9)], request: gr.Request, heat: float = 0.5, at: ClickedPointFields = None
): ...


@pytest.mark.parametrize("values", [["show", {}], ["tune", {"layer": 3, "prompt": "1.2", "other": [1, "a", None]}, 2]])
def test_valid_arguments_are_accepted(values):
    argument_types(answer).check(values)


@subtest_each(
    ("values", "sentence"),
    [
        (["show", {}, 1.0], "part must be a whole number, got 1.0."),
        (["show", {}, -0.0], "part must be a whole number, got -0.0."),
        (["show", {}, True], "part must be a whole number, got true."),
        (["show", {}, None], "part must be a whole number, got null."),
        (["show", {}, 3], "part must be at most 2, got 3."),
        (["other", {}], "about must be one of 'show' or 'tune', got \"other\"."),
        ([["show"], {}], "about must be one of 'show' or 'tune', got a list of 1."),
        (["show"], "state is missing."),
        (["show", []], "state must be an object, got a list of 0."),
        (["show", {"top_k": True}], "state.top_k must be a whole number, got true."),
        (["show", {"top_k": 3.0}], "state.top_k must be a whole number, got 3.0."),
        (["show", {"temperature": "warm"}], 'state.temperature must be a number, got "warm".'),
        (["show", {"layer": -1}], "state.layer must be at least 0, got -1."),
        (["show", {"checkpoint": {"a": 1}}], "state.checkpoint must be text, got an object."),
        (["show", {"prompt": 7}], "state.prompt must be text or a list, got 7."),
        (["show", {"prompt": [1, "2"]}], 'state.prompt[1] must be a whole number, got "2".'),
        (["show", {"b.dropped": "2"}], "state.b.dropped must be a whole number or one of '', got \"2\"."),
        (["show", {}, 0, {"own": {"generated": [1.5]}}], "action.own.generated[0] must be a whole number, got 1.5."),
        (["show", {}, 0, {"kind": "take", "tokem": 1}], "action.tokem is unknown here: leave it out."),
        (["show", {"seed": 10**400}], f"state.seed must be less than 9007199254740992, got {'1' + '0' * 59}…."),
        (["show", {"view": 5}], "state.view must be text, got 5."),
        (
            ["show", {"x": {"path": "/a"}}],
            "state is refused: x is no field of the page’s state, and neither text nor a number.",
        ),
        (["show", {"x": [[1]]}], "state is refused: x is no field of the page’s state, and neither text nor a number."),
        (["show", {}, 0, {}, 0], "The arguments must be a list (about, state, part, action), got a list of 5."),
        ({"about": "show"}, "The arguments must be a list (about, state, part, action), got an object."),
    ],
    ids=str,
)
def test_wrong_arguments_are_refused_with_sentence(values, sentence):
    with pytest.raises(UserError) as error:
        argument_types(answer).check(values)
    assert str(error.value) == sentence


def test_gradio_request_is_not_an_argument():
    types = argument_types(write)
    assert types.names == ["prompt", "heat", "at"]
    types.check(["the fox", 1, {"x": 0, "y": 0.5}])
    for values, sentence in (
        (["the fox asks"], "prompt must be text of at most 9 characters"),
        (["x", True], "heat must be a number"),
        (["x", 1, {"x": 1}], "at.y is missing"),
        (["x", 1, {}], "at.x is missing"),
        (["x", 1, {"x": True, "y": 1}], "at.x must be a number, got true"),
        (["x", 1, {"x": 1, "y": "2"}], "at.y must be a number"),
        (["x", 1, {"x": 1, "y": float("nan")}], "at.y must be a finite number"),
        (["x", 1, {"x": 1, "y": 1e300}], "at.y must be at most 1000000000"),
        (["x", 1, {"x": 1, "y": 1, "customdata": [1]}], "at.customdata is unknown here"),
    ):
        with pytest.raises(UserError, match=sentence):
            types.check(values)
    with pytest.raises(UserError, match="other is unknown here"):
        types.check_named({"prompt": "x", "other": 1})


def test_refusal_is_sentence_in_every_language():
    with use_locale("zh-CN"), pytest.raises(UserError):
        argument_types(answer).check(["show", {"layer": -1}])


def test_check_is_fast(benchmark_seconds=0.001):
    """On the state of a long text; the fastest of 20 checks, because machines are busy."""
    import time

    values = ["show", {"prompt": list(range(2048)), "generated": list(range(2048)), "layer": 3, "view": "attention"}, 1]
    types, best = argument_types(answer), 1.0
    for _again in range(20):
        began = time.perf_counter()
        types.check(values)
        best = min(best, time.perf_counter() - began)
    assert best < benchmark_seconds


@pytest.mark.parametrize(
    "text",
    ['{"a": [1, 2.5, -0.0, "é", null, true]}', " 7 ", '"\\ud83d\\ude00"', '{"a": {"a": 1}, "b": 1e308}', "\ufeff{}"],
)
def test_valid_json_is_parsed_as_by_python(text):
    assert parse_json(text.encode()) == json.loads(text.removeprefix("\ufeff"))


@subtest_each(
    ("body", "sentence"),
    [
        (b"", "not from character 0 on"),
        (b'{"a": 1', "not from character 7 on"),
        (b"[1, 2,]", "not from character 6 on"),
        (b'{"a": NaN}', "no number NaN"),
        (b"[-Infinity]", "no number -Infinity"),
        (b"[1e999]", "no number 1e999"),
        (b'{"a": 1, "b": {"c": 1, "c": 2}}', "'c' twice"),
        (b"[" * 10_000 + b"]" * 10_000, "nested too deeply"),
        (b'{"a":' * 10_000 + b"1" + b"}" * 10_000, "nested too deeply"),
        (b"9" * 5000, "too many digits"),
        (b'"\xff"', "not UTF-8"),
        (b'"\xed\xa0\x80"', "not UTF-8"),
    ],
    ids=range(12),
)
def test_invalid_json_is_refused(body, sentence):
    with pytest.raises(UserError, match=sentence):
        parse_json(body)


@subtest_each("text", ["\ud800", "a\udfffb", "\ud800\ud800", "\udc00\ud800", "\ud83d\ude00\ud83d", "\\ud800"])
def test_lone_surrogate_becomes_replacement_character(text):
    (value,) = parse_json(json.dumps({text: text})[:-1].encode() + b"}").values()
    expected = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    assert value == expected and value.encode()
    assert len(value) == len(text.replace("\ud83d\ude00", "x"))
