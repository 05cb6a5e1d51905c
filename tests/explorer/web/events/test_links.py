"""Links and typed texts, valid or hostile."""

import json

import pytest

from explorer.state.generation_settings import RANGES, GenerationSettings
from explorer.state.run import Run
from explorer.state.selection import Selection, field_choices
from explorer.web.answers.endpoints import Endpoints


def test_a_link_opens_what_it_says(page, load):
    answer = load(checkpoint="none", prompt="5.6.7", generated="8", view="activations", query="1", seed="9")
    change = answer[page.layout.update]["change"]
    expected = {"checkpoint": "none", "prompt": [5, 6, 7], "generated": [8], "view": "activations", "query": 1}
    assert {name: change[name] for name in expected} == expected
    assert (change["seed"], answer[page.layout.sampling.seed]) == (9, 9)
    assert answer[page.layout.picker] == "none"
    assert answer[page.layout.tabs].selected == "activations"
    assert answer[page.layout.update]["ask"] == "show"


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
def test_a_hostile_link_opens_the_first_example_and_says_why(page, shown_warnings, asked, load):
    answer = load(**asked)
    assert answer[page.layout.update] == load()[page.layout.update]
    assert len(shown_warnings) == 1
    assert "<" not in shown_warnings[0]


@pytest.mark.parametrize("panel", ["api", "api-recorder", "settings"])
def test_a_panel_of_gradio_in_an_address_is_no_tab(page, shown_warnings, panel, load):
    assert load(view=panel)[page.layout.update] == load()[page.layout.update]
    assert shown_warnings == []


@pytest.mark.parametrize("value", ["-1", "1e99", "9" * 5000, "nan", "<b>", "٣", ""], ids=lambda value: ascii(value)[:8])
def test_a_hostile_selection_or_setting_is_brought_within_its_limits(page, shown_warnings, value, load):
    names = [*Selection().as_dict(), *RANGES, "dropped"]
    answer = load(text="the fox asked the owl", **dict.fromkeys(names, value))
    change = answer[page.layout.update]["change"]
    assert answer[page.layout.tabs].selected == change["view"] == Selection.view
    selection = Selection.parse(change)
    assert selection == selection.clamp_to_trace(page.events.run_factory.runs.trace(Run.parse(change)))
    assert GenerationSettings.parse(change).validate()
    assert Endpoints(page.events.run_factory.runs).answer("show", change)["contents"]["problem"] == ""
    assert ["There is no tab" in sentence and "<b>" not in sentence for sentence in shown_warnings] == [True] * bool(
        value
    )


@pytest.mark.parametrize(
    "wrong, words",
    [
        ({"checkpoint": "nope"}, "the first model is shown instead"),
        ({"checkpoint": "nope", "prompt": "1.2"}, "the first model is shown instead"),
        ({"edits": "<b>*zero"}, "the interventions were ignored"),
        ({"branches": "-1"}, "the tree of continuations is left out"),
        ({"prompt": "1.x"}, "the token ids and the continuation were ignored"),
        ({"generated": "-1"}, "the token ids and the continuation were ignored"),
    ],
    ids=str,
)
def test_what_makes_no_sense_of_a_link_takes_nothing_else_with_it(page, shown_warnings, load, wrong, words):
    answer = load(text="the fox asked the owl", view="tokens", temperature="0.3", **wrong)
    change = answer[page.layout.update]["change"]
    assert answer[page.layout.prompt] == "the fox asked the owl"
    assert (change["checkpoint"], change["view"], change["temperature"]) == ("rope", "tokens", 0.3)
    assert len(shown_warnings) == 1 and words in shown_warnings[0] and "<" not in shown_warnings[0]


def test_ids_in_a_link_are_kept_without_the_tree_or_the_changes_that_make_no_sense(page, shown_warnings, load):
    change = load(prompt="5.6.7", generated="8", edits="x", checkpoint="none")[page.layout.update]["change"]
    assert (change["checkpoint"], change["prompt"], change["generated"], change["edits"]) == (
        "none",
        [5, 6, 7],
        [8],
        "",
    )


def test_an_unknown_tab_is_told(page, shown_warnings, load):
    answer = load(view="<b>tab")
    assert answer[page.layout.tabs].selected == Selection.view
    assert (
        len(shown_warnings) == 1
        and "There is no tab" in shown_warnings[0]
        and "Attention" in shown_warnings[0]
        and "<b>" not in shown_warnings[0]
    )


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ({"layer": "1.5", "head": "-0", "top_k": "true", "temperature": "nan"}, "layer, head, top_k, temperature"),
        ({"temperature": "5", "seed": "1e99", "min_p": "-inf"}, "temperature, seed, min_p"),
        ({"query": "²", "key": "0x1", "top_k": "1.5"}, "query, key, top_k"),
        ({"pattern": "weights", "shown": "c", "dropped": "-1"}, "pattern, shown, dropped"),
    ],
    ids=str,
)
def test_values_of_another_type_are_told_and_read_as_the_default(page, shown_warnings, load, query, names):
    answer = load(text="the fox asked the owl", view="attention", **query)
    change = answer[page.layout.update]["change"]
    assert shown_warnings == [f"Invalid values in this link: {names}. The default or the nearest valid value is shown."]
    assert GenerationSettings.parse(change).validate()
    assert Selection.parse(change).option("pattern") in field_choices()["pattern"]


def test_values_of_the_right_type_are_told_nothing_of(page, shown_warnings, load):
    load(text="the fox", view="attention", layer="1", query="", top_k="40.0", temperature="0.80", pattern="moved")
    assert shown_warnings == []


def test_addresses_that_people_saved_go_on_working(page, shown_warnings, load):
    saved = {"prompt": "5.6.7", "view": "rope", "edits": "blocks.0.attn.z.1*zero", "query": "1", "temperature": "0.5"}
    answer = load(**saved)
    change = answer[page.layout.update]["change"]
    assert (change["prompt"], change["edits"], change["query"]) == ([5, 6, 7], saved["edits"], 1)
    assert change["view"] == answer[page.layout.tabs].selected == "positions"
    assert shown_warnings == []


def test_text_is_shown_as_it_was_typed(page, state, nasty_prompt, load, merged):
    state = merged(state, [page.events.on_prompt(nasty_prompt, "rope", state)])
    contents = Endpoints(page.events.run_factory.runs).answer("token", state)["contents"]
    assert contents["story"] == {"prompt": nasty_prompt, "generated": ""}
    assert json.loads(json.dumps(contents)) == contents
    assert load(text=nasty_prompt)[page.layout.prompt] == nasty_prompt


def test_changes_stay_for_another_prompt_and_go_where_a_model_has_not_what_they_change(
    page, state, shown_warnings, merged
):
    changed = state | {"edits": "rope.angles*zero"}
    assert merged(changed, [page.events.on_prompt("the owl", "rope", changed)])["edits"] == "rope.angles*zero"
    assert shown_warnings == []
    assert merged(changed, [page.events.on_prompt("the owl", "gpt", changed)])["edits"] == ""
    (words,) = shown_warnings
    assert "rope.angles" in words
