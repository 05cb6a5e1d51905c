"""Event handlers, called as the page's script calls them; their answers are dicts by component."""

import json
import re
from copy import deepcopy

import gradio as gr
import pytest

from explorer.state.errors import UserError
from explorer.state.page_state import PageState
from explorer.state.run import Run
from explorer.views import FULL, SIMPLE, VIEWS
from explorer.web.page import with_api_errors
from explorer.web.widgets.widget import Widget

PROMPT = "the fox asked the owl"


def test_everything_that_is_drawn_has_its_place(page):
    ids = [block.elem_id for block in page.blocks.blocks.values() if getattr(block, "elem_id", None)]
    assert len(set(ids)) == len(ids)
    assert {f"{view.name}-{panel.name}" for view in VIEWS for panel in view.panels} <= set(ids)
    assert [tab.id for tab in page.layout.tab.values()] == [view.name for view in (*SIMPLE, *FULL)]


def test_handlers_only_answer_with_what_their_events_may_change(page, state, shown_warnings, load):
    answers = {
        "on_load": [load(), load(checkpoint="missing")],
        "on_prompt": [page.events.on_prompt(PROMPT, "none", state), page.events.on_prompt("", "rope", state)],
        "on_model": [page.events.on_model(PROMPT, "gpt", state), page.events.on_model("", "rope", state)],
        "on_follow": [page.events.on_follow(state)],
        "on_step": list(page.writing.on_step(state)),
        "on_generate": list(page.writing.on_generate(state | {"max_new_tokens": 3})),
        "on_regenerate": list(page.writing.on_regenerate(state | {"generated": [5], "max_new_tokens": 3})),
        "on_compare": list(page.writing.on_compare(state)),
        "on_move": [page.writing.on_move(state | {"move": {"kind": "take", "token": 5}}), page.writing.on_move(state)],
    }
    for handler, handler_answers in answers.items():
        events = [event for event in page.blocks.fns.values() if event.name == handler]
        assert all(set(answer) <= set(event.outputs) for answer in handler_answers for event in events) and events, (
            handler
        )
    for answer in [answer for handler_answers in answers.values() for answer in handler_answers]:
        for component, value in answer.items():
            if isinstance(component, Widget):
                assert json.dumps(component.postprocess(value), allow_nan=False)


def test_python_never_writes_the_state_that_its_events_read(page):
    events = page.blocks.fns.values()
    assert all(page.layout.state not in event.outputs for event in events)
    for handler in ("on_follow", "on_step", "on_generate", "on_regenerate", "on_compare", "on_move"):
        inputs = [event.inputs for event in events if event.name == handler]
        assert inputs and all(event_inputs == [page.layout.state] for event_inputs in inputs)


def test_the_last_tokens_of_a_text_cannot_hide_what_ended_it(page):
    """The browser gets only the last of several values that arrive together for one widget."""
    streams = {"on_generate", "on_regenerate", "on_compare"}
    for event in page.blocks.fns.values():
        assert (page.layout.generation_update in event.outputs) == (event.name in streams), event.name
        assert page.layout.update not in event.outputs or event.name not in streams, event.name


def test_programs_are_offered_two_functions(page):
    assert set(page.blocks.get_api_info()["named_endpoints"]) == {"/explore", "/generate"}


def test_programs_get_to_read_what_was_wrong():
    def refuse(number: int) -> int:
        """Refuses."""
        raise UserError("not <this>")

    wrapped = with_api_errors(refuse)
    assert (wrapped.__name__, wrapped.__doc__, wrapped.__annotations__) == (
        "refuse",
        "Refuses.",
        refuse.__annotations__,
    )
    with pytest.raises(gr.Error) as caught:
        wrapped(1)
    assert caught.value.message == "not <this>"


def test_a_new_prompt_is_looked_at_from_its_last_token(page, state, merged):
    answer = page.events.on_prompt("the owl", "none", state | {"generated": [4, 5]})
    now = merged(state, [answer])
    last = len(now["prompt"]) - 1
    assert (now["checkpoint"], now["generated"], now["layer"]) == ("none", [], state["layer"])
    assert (now["query"], now["key"]) == (last, last - 1)
    assert "no positions" in answer[page.layout.facts]
    assert answer[page.layout.update]["ask"] == "show"


def test_an_example_is_looked_at_where_it_shows_something(page, state, merged):
    now = merged(state, [page.events.on_example("the owl", "none", state | {"layer": 9, "target": 3})])
    expected = page.events.run_factory.select_top_head(PageState.parse(now))
    fields = ("layer", "head", "query", "key", "target")
    assert {name: now[name] for name in fields} == {name: expected.selection.as_dict()[name] for name in fields}
    assert now["target"] == 1 and now["view"] == state["view"]


def test_another_model_is_looked_at_in_the_same_place(page, state, merged):
    selected = state | {"query": 2, "key": 1, "layer": 1, "head": 5, "tap": "blocks.1.attn.k"}
    for checkpoint, head in (("grouped", 5), ("gpt", 2)):
        now = merged(selected, [page.events.on_model(PROMPT, checkpoint, selected)])
        assert now == selected | {"checkpoint": checkpoint, "head": head, "turn": selected["turn"] + 1}
    again = merged(
        selected, [page.events.on_prompt(PROMPT, "rope", selected), page.events.on_model(PROMPT + ".", "gpt", selected)]
    )
    assert again["query"] == len(again["prompt"]) - 1


def test_what_was_written_goes_along_to_another_model(page, state, merged):
    continued_state = state | {"generated": [4, 5, 6], "branches": "4.9", "began": 1, "query": 3}
    now = merged(continued_state, [page.events.on_model(PROMPT, "gpt", continued_state | {"own": None})])
    assert (now["generated"], now["branches"], now["began"], now["query"]) == ([4, 5, 6], "", 3, 3)
    typed = merged(continued_state, [page.events.on_model("the owl", "gpt", continued_state)])
    assert typed["generated"] == [] and page.events.run_factory.runs.text(Run.parse(typed))[0] == "the owl"


def test_a_model_finds_its_own_continuations_again(page, state, merged):
    continued_state = state | {"generated": [4, 5, 6], "checkpoint": "gpt"}
    saved_fields = {"prompt": state["prompt"], "generated": [7, 8], "branches": "7.9~beam:3", "began": 1, "dropped": 0}
    now = merged(continued_state, [page.events.on_model(PROMPT, "rope", continued_state | {"own": saved_fields})])
    assert now["checkpoint"] == "rope" and saved_fields.items() <= now.items() and "own" not in now
    nothing = saved_fields | {"generated": [], "branches": ""}
    for nonsense in (
        nothing,
        saved_fields | {"prompt": state["prompt"][:-1]},
        saved_fields | {"generated": "x"},
        "<b>",
        [1],
        {},
    ):
        now = merged(continued_state, [page.events.on_model(PROMPT, "rope", continued_state | {"own": nonsense})])
        assert (now["checkpoint"], now["generated"], now["branches"]) == ("rope", [4, 5, 6], "")


def test_what_is_in_the_box_follows_a_move_within_the_prompt(page, state):
    command_fields = {"query": 1, "move": {"kind": "take", "token": 9}}
    answer = page.writing.on_move(state | command_fields)
    assert (
        answer[page.layout.prompt]
        == page.events.run_factory.runs.text(Run.parse(answer[page.layout.update]["change"]))[0]
    )
    assert PROMPT.startswith(answer[page.layout.prompt]) and answer[page.layout.prompt] != PROMPT
    later = page.writing.on_move(state | command_fields | {"query": len(state["prompt"]) - 1})
    assert page.layout.prompt not in later


def test_gradios_own_widgets_follow_the_state(page, state):
    answer = page.events.on_follow(state | {"view": "tokens", "temperature": 0.3, "checkpoint": "gpt"})
    assert (answer[page.layout.picker], answer[page.layout.prompt]) == ("gpt", PROMPT)
    assert answer[page.layout.sampling.temperature] == 0.3
    assert page.layout.tabs not in answer  # it has an event of its own
    assert "LayerNorm" in answer[page.layout.facts]


def test_a_prompt_longer_than_the_context_is_told(page, state, shown_warnings):
    answer = page.events.on_prompt("\x00" * 40, "rope", state)
    assert shown_warnings == ["The prompt has 40 tokens; the model sees 32 at once: the last 32 are used."]
    assert answer[page.layout.update]["change"]["dropped"] == 8


@pytest.mark.parametrize(("prompt", "checkpoint"), [("", "rope"), ("the owl", "<b>missing</b>")])
def test_a_prompt_that_cannot_run_changes_nothing_and_says_why(page, state, shown_warnings, prompt, checkpoint):
    assert page.events.on_prompt(prompt, checkpoint, state) == {page.layout.picker: "rope"}
    assert len(shown_warnings) == 1
    assert "<b>" not in shown_warnings[0]


def test_our_mistakes_are_logged_and_told_as_ours(page, state, shown_warnings, monkeypatch, caplog):
    def slip(run):
        raise ValueError("could not broadcast <shapes>")

    monkeypatch.setattr(page.events.run_factory.runs, "trace", slip)
    calls = (
        lambda: page.events.on_prompt("the owl", "rope", state),
        lambda: page.writing.on_move(state),
        lambda: list(page.writing.on_generate(state)),
        lambda: with_api_errors(lambda: slip(None))(),
    )
    for call in calls:
        with pytest.raises(gr.Error) as caught:
            call()
        name = re.search("It was logged as ([0-9a-f]{8})", caught.value.message)[1]
        assert "broadcast" not in caught.value.message and name in caplog.records[-1].message
        assert "could not broadcast <shapes>" in caplog.text and "def slip" not in caught.value.message
        caplog.clear()
    assert shown_warnings == []


@pytest.mark.parametrize(
    "broken",
    [{}, {"checkpoint": 1}, {"checkpoint": "missing", "prompt": [1]}, {"checkpoint": "rope", "prompt": [10**6]}],
)
def test_a_state_that_makes_no_sense_is_told(page, shown_warnings, broken):
    assert page.writing.on_move(broken) == page.events.on_follow(broken) == {}
    assert list(page.writing.on_step(broken)) == list(page.writing.on_generate(broken)) == []
    assert len(shown_warnings) == 4


def test_no_handler_changes_the_state_it_was_given(page, state):
    before = deepcopy(state)
    (
        list(page.writing.on_step(state)),
        page.events.on_prompt(PROMPT, "rope", state),
    )
    assert state == before
