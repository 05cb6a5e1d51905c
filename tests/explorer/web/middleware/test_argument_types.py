"""Error messages for arguments of the wrong type."""

from typing import Annotated, Literal

import gradio as gr
import pytest
from pydantic import Field

from explorer.errors import UserError
from explorer.translations import use_locale
from explorer.web.middleware.request_types import Action, PointFields, Stage, State, argument_types


def answer(about: Literal["show", "tune"], state: State, part: Stage = 0, action: Action = None): ...


def write(
    prompt: Annotated[str, Field(max_length=9)], request: gr.Request, heat: float = 0.5, at: PointFields = None
): ...


@pytest.mark.parametrize("values", [["show", {}], ["tune", {"layer": 3, "prompt": "1.2", "other": [1, "a", None]}, 2]])
def test_what_fits_is_taken(values):
    argument_types(answer).check(values)


@pytest.mark.parametrize(
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
def test_what_does_not_is_told(values, sentence):
    with pytest.raises(UserError) as error:
        argument_types(answer).check(values)
    assert str(error.value) == sentence


def test_of_a_request_nothing_is_sent():
    types = argument_types(write)
    assert types.names == ["prompt", "heat", "at"]
    types.check(["the fox", 1, {"x": 0, "y": 0.5}])
    for values, sentence in (
        (["the fox asks"], "prompt must be text of at most 9 characters"),
        (["x", True], "heat must be a number"),
        (["x", 1, {"x": 1}], "at.y is missing"),
        (["x", 1, {"x": 1, "y": float("nan")}], "at.y must be a finite number"),
    ):
        with pytest.raises(UserError, match=sentence):
            types.check(values)
    with pytest.raises(UserError, match="other is unknown here"):
        types.check_named({"prompt": "x", "other": 1})


def test_a_sentence_is_one_in_every_language():
    with use_locale("zh-CN"), pytest.raises(UserError):
        argument_types(answer).check(["show", {"layer": -1}])


def test_a_check_takes_no_time(benchmark_seconds=0.001):
    """On the state of a long text; the fastest of 20 checks, because machines are busy."""
    import time

    values = ["show", {"prompt": list(range(2048)), "generated": list(range(2048)), "layer": 3, "view": "attention"}, 1]
    types, best = argument_types(answer), 1.0
    for _again in range(20):
        began = time.perf_counter()
        types.check(values)
        best = min(best, time.perf_counter() - began)
    assert best < benchmark_seconds
