"""Links and typed texts, valid or hostile."""

import json

import pytest

from explorer.state.generation_settings import RANGES, GenerationSettings
from explorer.state.page_state import RunRequest
from explorer.state.selection import Selection, field_choices
from explorer.web.browser_api.endpoints import BrowserEndpoints
from tests.nasty_prompts import NASTY_PROMPTS
from tests.subtest_loops import subtest_each


def test_link_opens_its_state(page, load):
    answer = load(checkpoint="none", prompt="5.6.7", generated="8", view="activations", query="1", seed="9")
    expected = {"checkpoint": "none", "prompt": [5, 6, 7], "generated": [8], "view": "activations", "query": 1}
    expected |= {"seed": 9}
    assert {name: answer.change[name] for name in expected} == expected
    assert answer.prompt == page.library.model("none")[1].decode([5, 6, 7]) and answer.is_done


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
def test_hostile_link_opens_first_example_and_is_reported(notices, asked, load):
    answer = load(**asked)
    assert answer == load()
    assert len(notices) == 1 and len(notices[0].split()) > 3


@pytest.mark.parametrize("panel", ["api", "api-recorder", "settings"])
def test_gradio_panel_in_url_is_no_view(notices, panel, load):
    assert load(view=panel) == load()
    assert notices == []


@pytest.mark.parametrize("value", ["-1", "1e99", "9" * 5000, "nan", "<b>", "٣", ""], ids=lambda value: ascii(value)[:8])
def test_hostile_selection_or_setting_is_clamped(page, notices, value, load):
    names = [*Selection().as_dict(), *RANGES, "dropped"]
    answer = load(text="the fox asked the owl", **dict.fromkeys(names, value))
    change = answer.change
    assert change["view"] == Selection.view
    selection = Selection.parse(change)
    assert selection == selection.clamp_to_trace(page.actions.state_builder.runs.trace(RunRequest.parse(change)))
    assert GenerationSettings.parse(change).validate()
    assert BrowserEndpoints(page.actions.state_builder.runs).answer("show", change)["contents"]["problem"] == ""
    assert ["There is no tab" in sentence for sentence in notices] == [True] * bool(value)


@pytest.mark.parametrize(
    "wrong, words",
    [
        ({"checkpoint": "nope"}, "the first model is shown instead"),
        ({"checkpoint": "nope", "prompt": "1.2"}, "the first model is shown instead"),
        ({"edits": "<b>*zero"}, "the changes were ignored"),
        ({"branches": "-1"}, "the tree of continuations is left out"),
        ({"prompt": "1.x"}, "the token ids and the continuation were ignored"),
        ({"generated": "-1"}, "the token ids and the continuation were ignored"),
    ],
    ids=str,
)
def test_invalid_field_leaves_rest_of_link_intact(notices, load, wrong, words):
    answer = load(text="the fox asked the owl", view="tokens", temperature="0.3", **wrong)
    change = answer.change
    assert answer.prompt == "the fox asked the owl"
    assert (change["checkpoint"], change["view"], change["temperature"]) == ("rope", "tokens", 0.3)
    assert len(notices) == 1 and words in notices[0]


def test_ids_are_kept_without_invalid_interventions(load):
    change = load(prompt="5.6.7", generated="8", edits="x", checkpoint="none").change
    assert (change["checkpoint"], change["prompt"], change["generated"], change["edits"]) == (
        "none",
        [5, 6, 7],
        [8],
        "",
    )


def test_unknown_view_is_reported(notices, load):
    answer = load(view="<b>tab")
    assert answer.change["view"] == Selection.view
    assert len(notices) == 1 and notices[0].startswith("There is no tab") and "Attention" in notices[0]


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
def test_values_of_wrong_type_are_reported_and_replaced(notices, load, query, names):
    answer = load(text="the fox asked the owl", view="attention", **query)
    change = answer.change
    assert notices == [f"Invalid values in this link: {names}. The default or the nearest valid value is shown."]
    assert GenerationSettings.parse(change).validate()
    assert Selection.parse(change).option("pattern") in field_choices()["pattern"]


def test_valid_values_are_not_reported(notices, load):
    load(text="the fox", view="attention", layer="1", query="", top_k="40.0", temperature="0.80", pattern="moved")
    assert notices == []


def test_old_saved_urls_still_work(notices, load):
    saved = {"prompt": "5.6.7", "view": "rope", "edits": "blocks.0.attn.z.1*zero", "query": "1", "temperature": "0.5"}
    answer = load(**saved)
    change = answer.change
    assert (change["prompt"], change["edits"], change["query"]) == ([5, 6, 7], saved["edits"], 1)
    assert change["view"] == "positions"
    assert notices == []


@subtest_each("nasty_prompt", NASTY_PROMPTS, ids=ascii)
def test_text_is_shown_as_typed(page, state, nasty_prompt, load, move):
    state = move(state, "prompt", text=nasty_prompt, checkpoint="rope")
    contents = BrowserEndpoints(page.actions.state_builder.runs).answer("token", state)["contents"]
    text = {"prompt": nasty_prompt, "generated": "", "ended": "", "tokens": [], "position": len(state["prompt"])}
    assert contents["story"] == text
    assert json.loads(json.dumps(contents)) == contents
    assert load(text=nasty_prompt).prompt == nasty_prompt


def test_interventions_are_kept_unless_model_lacks_their_tap(state, notices, move):
    changed = state | {"edits": "rope.angles*zero"}
    assert move(changed, "prompt", text="the owl", checkpoint="rope")["edits"] == "rope.angles*zero"
    assert notices == []
    assert move(changed, "prompt", text="the owl", checkpoint="gpt")["edits"] == ""
    (words,) = notices
    assert "rope.angles" in words
