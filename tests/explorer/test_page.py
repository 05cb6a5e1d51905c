"""The page as its script in the browser sees it: answers of handlers, keyed by components."""

import json
from copy import deepcopy
from types import SimpleNamespace

import gradio as gr
import pytest

from explorer.components.widget import Widget
from explorer.page import Page, told_to_programs
from explorer.run import Run
from explorer.selection import Selection
from explorer.settings import LIMITS, GenerationSettings
from explorer.views import VIEWS

PROMPT = "the fox asked the owl"


@pytest.fixture(scope="module")
def page(library) -> Page:
    page = Page(library, "rope")
    page.blocks = page.build()
    return page


@pytest.fixture(autouse=True)
def unpaced(monkeypatch):
    """New tokens are not shown one by one."""
    monkeypatch.setattr("explorer.page.SECONDS_A_TOKEN", 0)


@pytest.fixture
def told(monkeypatch) -> list[str]:
    """What visitors were warned of."""
    warnings = []
    monkeypatch.setattr("explorer.page.gr.Warning", warnings.append)
    return warnings


@pytest.fixture
def state(page) -> dict:
    """After a visitor opened a link to a prompt."""
    return loaded(page, text=PROMPT, seed="3", temperature="1.0", top_k="0")[page.update]["change"]


def loaded(page: Page, **query_params: str) -> dict:
    return page.on_load(SimpleNamespace(query_params=query_params))


def after(page: Page, state: dict, answers) -> dict:
    """The state once the browser has merged the changes in all answers."""
    for answer in answers:
        state = state | answer[page.update]["change"]
    return state


def outputs(page: Page, handler: str) -> list[set]:
    """Components that each event of a handler may change."""
    return [set(function.outputs) for function in page.blocks.fns.values() if function.name == handler]


def shown(answer: dict, component):
    """What a widget of the page sends to the browser, as JSON."""
    return json.dumps(component.postprocess(answer[component]), allow_nan=False)


def test_everything_that_is_drawn_has_its_place(page):
    ids = [block.elem_id for block in page.blocks.blocks.values() if getattr(block, "elem_id", None)]
    assert len(set(ids)) == len(ids)
    assert {f"{view.name}-{panel.name}" for view in VIEWS for panel in view.panels} <= set(ids)
    assert [tab.id for tab in page.tab.values()] == [view.name for view in VIEWS]


def test_handlers_only_answer_with_what_their_events_may_change(page, state, told):
    answers = {
        "on_load": [loaded(page), loaded(page, checkpoint="missing")],
        "on_prompt": [page.on_prompt(PROMPT, "none", state), page.on_prompt("", "rope", state)],
        "on_pick": [page.on_pick(state | {"view": view.name}) for view in VIEWS] + [page.on_pick({})],
        "on_tune": [page.on_tune(state), page.on_tune({})],
        "on_step": list(page.on_step(state)),
        "on_generate": list(page.on_generate(state | {"max_new_tokens": 3})),
    }
    for handler, given in answers.items():
        assert outputs(page, handler)
        for may_change in outputs(page, handler):
            assert all(set(answer) <= may_change for answer in given), handler
    for answer in [answer for given in answers.values() for answer in given]:
        for component, value in answer.items():
            if isinstance(component, Widget) and not isinstance(value, dict | gr.blocks.Block):
                assert shown(answer, component)


def test_python_never_writes_the_state_that_its_events_read(page):
    assert all(page.state not in function.outputs for function in page.blocks.fns.values())
    for handler in ("on_pick", "on_tune", "on_step", "on_generate"):
        inputs = [function.inputs for function in page.blocks.fns.values() if function.name == handler]
        assert inputs == [[page.state]]


def test_programs_are_offered_two_functions(page):
    assert set(page.blocks.get_api_info()["named_endpoints"]) == {"/explore", "/generate"}


def test_programs_get_to_read_what_was_wrong():
    def refuse(number: int) -> int:
        """Refuses."""
        raise ValueError("not <this>")

    wrapped = told_to_programs(refuse)
    assert (wrapped.__name__, wrapped.__doc__, wrapped.__annotations__) == (
        "refuse",
        "Refuses.",
        refuse.__annotations__,
    )
    with pytest.raises(gr.Error) as caught:
        wrapped(1)
    assert caught.value.message == "not <this>"


def test_a_link_opens_what_it_says(page):
    answer = loaded(page, checkpoint="none", prompt="5.6.7", generated="8", view="activations", query="1", seed="9")
    change = answer[page.update]["change"]
    expected = {"checkpoint": "none", "prompt": [5, 6, 7], "generated": [8], "view": "activations", "query": 1}
    assert {name: change[name] for name in expected} == expected
    assert (change["seed"], answer[page.seed]) == (9, 9)
    assert answer[page.picker] == "none"
    assert answer[page.tabs].selected == "activations"
    assert answer[page.update]["ask"] is True


@pytest.mark.parametrize(
    "asked",
    [
        {"checkpoint": "../../etc/passwd"},
        {"checkpoint": "<b>"},
        {"prompt": "1.x"},
        {"prompt": "299999"},
        {"prompt": "." * 9000},
        {"text": ""},
        {"generated": "-1"},
    ],
    ids=lambda asked: str(asked)[:30],
)
def test_a_hostile_link_opens_the_first_example_and_says_why(page, told, asked):
    answer = loaded(page, **asked)
    assert answer == loaded(page) or answer[page.update] == loaded(page)[page.update]
    assert len(told) == 1
    assert "<" not in told[0]


@pytest.mark.parametrize("value", ["-1", "1e99", "9" * 5000, "nan", "<b>", "٣", ""], ids=lambda value: ascii(value)[:8])
def test_a_hostile_selection_or_setting_is_brought_within_its_limits(page, told, value):
    names = [*Selection().as_dict(), *LIMITS, "dropped"]
    answer = loaded(page, text=PROMPT, **dict.fromkeys(names, value))
    change = answer[page.update]["change"]
    assert answer[page.tabs].selected == change["view"] == VIEWS[0].name
    selection = Selection.parse(change)
    assert selection == selection.within(page.presenter.trace(Run.parse(change)))
    assert GenerationSettings.parse(change).checked()
    assert page.on_pick(change)
    assert told == []


def test_a_new_prompt_is_looked_at_as_the_last_one_was_at_its_last_token(page, state):
    answer = page.on_prompt("the owl", "none", state | {"view": "activations", "layer": 1, "generated": [4, 5]})
    merged = after(page, state, [answer])
    last = len(merged["prompt"]) - 1
    assert (merged["checkpoint"], merged["generated"]) == ("none", [])
    assert (merged["query"], merged["key"]) == (last, last - 1)
    assert answer[page.story] == {"prompt": "the owl", "generated": ""}
    assert "no positions" in answer[page.facts]
    assert answer[page.update]["ask"] is True


def test_a_prompt_longer_than_the_context_is_told(page, state, told):
    answer = page.on_prompt("\x00" * 40, "rope", state)
    assert told == ["The prompt has 40 tokens; the model sees 32 at once: the last are used."]
    assert answer[page.update]["change"]["dropped"] == 8
    assert answer[page.strip]["earlier"] == 8


@pytest.mark.parametrize(("prompt", "checkpoint"), [("", "rope"), ("the owl", "<b>missing</b>")])
def test_a_prompt_that_cannot_run_changes_nothing_and_says_why(page, state, told, prompt, checkpoint):
    assert page.on_prompt(prompt, checkpoint, state) == {page.picker: "rope"}
    assert len(told) == 1
    assert "<b>" not in told[0]


@pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.name)
def test_a_pick_draws_the_open_view_and_the_prediction(page, state, view):
    answer = page.on_pick(state | {"view": view.name})
    drawn = {name for name, component in page.pictures.items() if component in answer}
    assert drawn == {(view.name, panel.name) for panel in view.panels}
    assert all(answer[page.pictures[name]] is not None for name in drawn)
    assert answer[page.formulas[view.name]]
    assert answer[page.prediction]


def test_a_view_that_does_not_apply_loses_its_pictures(page, state):
    answer = page.on_pick(page.on_prompt(PROMPT, "none", state)[page.update]["change"] | {"view": "rope"})
    rope = next(view for view in VIEWS if view.name == "rope")
    assert answer[page.words["rope"]] == rope.otherwise
    assert all(answer[page.pictures["rope", panel.name]] is None for panel in rope.panels)


@pytest.mark.parametrize(
    "broken",
    [{}, {"checkpoint": 1}, {"checkpoint": "missing", "prompt": [1]}, {"checkpoint": "rope", "prompt": [10**6]}],
)
def test_a_state_that_makes_no_sense_is_told(page, told, broken):
    for handler in (page.on_pick, page.on_tune):
        assert list(handler(broken)) == [page.prediction]
    assert list(page.on_step(broken)) == list(page.on_generate(broken)) == []
    assert len(told) == 4


def test_a_slider_changes_the_prediction_and_nothing_else(page, state):
    cold, hot = (page.on_tune(state | {"temperature": temperature}) for temperature in (0, 2))
    assert set(cold) == set(hot) == {page.prediction, page.prediction_words}
    assert "1 of 300 tokens can be drawn" in cold[page.prediction_words]
    assert "300 of 300" in hot[page.prediction_words]
    alone = [[list(t.x) for t in answer[page.prediction].data if t.type == "scatter"][0] for answer in (cold, hot)]
    assert alone[0] == alone[1]  # the model itself knows no temperature


def test_no_handler_changes_the_state_it_was_given(page, state):
    before = deepcopy(state)
    page.on_pick(state), page.on_tune(state), list(page.on_step(state)), page.on_prompt(PROMPT, "rope", state)
    assert state == before


@pytest.mark.parametrize("prompt", [PROMPT, "\x00" * 29], ids=["within the context", "past the context"])
@pytest.mark.parametrize("seed", [0, 7])
def test_steps_write_what_generate_writes(page, library, state, prompt, seed):
    start = after(page, state, [page.on_prompt(prompt, "rope", state)]) | {"seed": seed, "max_new_tokens": 8}
    at_once = after(page, start, page.on_generate(start))["generated"]
    stepped = start
    for _ in at_once:
        stepped = after(page, stepped, page.on_step(stepped))
    assert stepped["generated"] == at_once
    assert len(at_once) == 8 or at_once[-1] == library.model("rope")[1].end_of_text


def test_generating_on_goes_on(page, state):
    once = after(page, state, page.on_generate(state | {"max_new_tokens": 8}))
    half = after(page, state, page.on_generate(state | {"max_new_tokens": 4}))
    twice = after(page, half, page.on_generate(half | {"max_new_tokens": 4}))
    assert twice["generated"] == once["generated"]


def test_each_new_token_is_shown_and_looked_at(page, state):
    answers = list(page.on_generate(state | {"max_new_tokens": 4}))
    assert [len(answer[page.update]["change"]["generated"]) for answer in answers] == [1, 2, 3, 4]
    assert [answer[page.update]["ask"] for answer in answers] == [False, False, False, True]
    for done, answer in enumerate(answers, start=1):
        tokens = len(state["prompt"]) + done
        assert len(answer[page.strip]["tokens"]) == tokens
        assert answer[page.update]["change"]["query"] == tokens - 1
        assert answer[page.story]["prompt"] == PROMPT
    assert {answer[page.update]["change"]["prompt"] == state["prompt"] for answer in answers} == {True}


def test_writing_ends_with_the_text(page, library, state, monkeypatch):
    start = state | {"temperature": 0}
    (answer,) = page.on_step(start)
    (likeliest,) = answer[page.update]["change"]["generated"]
    monkeypatch.setattr(library.model("rope")[1], "end_of_text", likeliest)
    (only,) = page.on_generate(start | {"max_new_tokens": 5})
    assert only[page.update]["ask"] is True


def test_text_is_shown_as_it_was_typed(page, state, nasty_prompt):
    answer = page.on_prompt(nasty_prompt, "rope", state)
    assert answer[page.story]["prompt"] == nasty_prompt
    assert json.loads(shown(answer, page.story))["prompt"] == nasty_prompt
    opened = loaded(page, text=nasty_prompt)
    assert opened[page.prompt] == nasty_prompt
