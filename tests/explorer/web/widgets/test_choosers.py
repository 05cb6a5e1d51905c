import json

from explorer.state.selection import Selection
from explorer.views.select_fields import OPTIONS, SelectField, select_fields
from explorer.web.widgets.view_tools import SelectFields


def test_lists_travel_as_json():
    sent = SelectFields.pack([SelectField("layer", "layer", [(0, "0"), (1, "1")]), SelectField("tap", "value", [])])
    assert sent["choices"] == [
        {"field": "layer", "title": "layer", "options": [[0, "0"], [1, "1"]]},
        {"field": "tap", "title": "value", "options": []},
    ]


def test_all_lists_of_a_run_are_json(trace):
    sent = SelectFields.pack(select_fields(list(OPTIONS), trace, Selection(query=5)))
    assert json.loads(json.dumps(sent)) == sent


def test_many_numbers_are_typed():
    sent = SelectFields.pack([SelectField("neuron", "neuron", [(i, str(i)) for i in range(512)])])
    assert sent["choices"] == [{"field": "neuron", "title": "neuron", "most": 511}]
    words = [SelectField("tap", "value", [(f"tap {i}", f"tap {i}") for i in range(512)])]
    assert len(SelectFields.pack(words)["choices"][0]["options"]) == 512
