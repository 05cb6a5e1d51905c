"""The list of a run's interventions, drop-down lists, and the slider of training steps."""

import json
from dataclasses import replace

import explorer
from explorer.analysis.steering import prompt_lists_by_direction
from explorer.explain.notation import quote_token
from explorer.interventions import KINDS, CrossRunIntervention, parse_interventions
from explorer.state.selection import Selection
from explorer.tracing.capture import capture
from explorer.views.selection import OPTIONS, SelectionDropdown, make_selection_dropdowns
from explorer.web.widgets.view_tools import (
    ActiveInterventionList,
    SelectionDropdowns,
    TrainingStepSlider,
    neighbour_checkpoint,
)
from tests.sample_models import ALL_KINDS_INTERVENTIONS
from tests.subtest_loops import each_style

OTHERS = "rope.angles*shift*3~rope.angles*base*500~blocks.0.attn.v.1*zero~blocks.1.attn.z.2*patch"
OTHERS += "~blocks.1.resid_post@3*patch_mean~blocks.*.attn.pattern@9*mask*4"


def test_every_kind_of_intervention_is_listed(lms, rope_trace):
    operations = set()
    for text in (ALL_KINDS_INTERVENTIONS.format(other="layernorm"), OTHERS):
        edits = parse_interventions(text)
        interventions = [
            replace(edit, source=rope_trace) if isinstance(edit, CrossRunIntervention) else edit for edit in edits
        ]
        listed = ActiveInterventionList.pack(capture(lms["rope"], rope_trace.token_ids[::-1], interventions))["edits"]
        assert [edit for edit, _words in listed] == text.split("~")
        assert len({words for _edit, words in listed}) == len(listed) and all(words for _edit, words in listed)
        operations |= {edit.operation for edit in edits}
    assert operations == set(KINDS)


def test_second_run_has_its_own_interventions(lms, rope_trace):
    changed = capture(lms["rope"], rope_trace.token_ids, parse_interventions("blocks.0.attn.z.1*zero"))
    listed = ActiveInterventionList.pack(rope_trace, changed)
    assert (listed["edits"], [edit for edit, _words in listed["b.edits"]]) == ([], ["blocks.0.attn.z.1*zero"])
    assert set(ActiveInterventionList.pack(changed)) == {"edits"}


def test_steering_is_described_by_direction_layer_and_strength():
    model = explorer.load("llama-fables")
    run = model.run("Once upon a time")
    (happy, *_others) = prompt_lists_by_direction(run)
    texts = {
        f"blocks.3.resid_post*add*{happy}*0.5": "happy, not sad × 0.5, after layer 3",
        f"blocks.2.resid_post*remove*{happy}": "without happy, not sad, after layer 2",
        "blocks.1.resid_post@2*add*means.1.5.9_7.3-8*-2": f"{quote(run, 5, 9)} less {quote(run, 8)} × −2, after ",
        "embed*add*unembed.17*1": f"the unembedding of token {quote(run, 17)} × 1, embed",
    }
    for edit, text in texts.items():
        (listed,) = ActiveInterventionList.pack(model.run(run.text, interventions=[edit]))["edits"]
        assert listed[1].startswith(text) and len(listed[1].split()) <= 11, listed


def quote(run, *token_ids) -> str:
    return quote_token(run.join_tokens(token_ids))


def test_dropdowns_are_packed_as_json():
    sent = SelectionDropdowns.pack(
        [SelectionDropdown("layer", "layer", [(0, "0"), (1, "1")]), SelectionDropdown("tap", "value", [])]
    )
    assert sent["choices"] == [
        {"field": "layer", "title": "layer", "options": [[0, "0"], [1, "1"]]},
        {"field": "tap", "title": "value", "options": []},
    ]


@each_style
def test_all_dropdowns_of_run_are_json(trace):
    sent = SelectionDropdowns.pack(make_selection_dropdowns(list(OPTIONS), trace, Selection(query=5)))
    assert json.loads(json.dumps(sent)) == sent


def test_long_number_lists_become_number_fields():
    sent = SelectionDropdowns.pack([SelectionDropdown("neuron", "neuron", [(i, str(i)) for i in range(512)])])
    assert sent["choices"] == [{"field": "neuron", "title": "neuron", "most": 511}]
    words = [SelectionDropdown("tap", "value", [(f"tap {i}", f"tap {i}") for i in range(512)])]
    assert len(SelectionDropdowns.pack(words)["choices"][0]["options"]) == 512


NAMES = ["b", "f/step-000000", "f/step-000004", "f/step-000016"]


def test_neighbour_is_previous_or_for_first_step_next():
    assert neighbour_checkpoint("f/step-000016", NAMES) == "f/step-000004"
    assert neighbour_checkpoint("f/step-000004", NAMES) == "f/step-000000"
    assert neighbour_checkpoint("f/step-000000", NAMES) == "f/step-000004"
    assert neighbour_checkpoint("b", NAMES) == neighbour_checkpoint("gone", NAMES) == ""


SERIES_NAMES = ["b", "series/step-000512", "series/step-001024", "series", "series/step-000000"]


def test_slider_has_every_step_with_its_number():
    assert TrainingStepSlider.pack("series/step-000512", SERIES_NAMES)["moments"] == [
        ["series/step-000000", "step 0", "0"],
        ["series/step-000512", "step 512", "512"],
        ["series/step-001024", "step 1,024", "1,024"],
        ["series", "at its end", ""],
    ]


def test_model_without_steps_has_no_slider_and_offers_another():
    assert TrainingStepSlider.pack("b", SERIES_NAMES) == {"moments": [], "other": "series/step-001024"}
    assert TrainingStepSlider.pack("b", ["b"]) == {"moments": [], "other": ""}
