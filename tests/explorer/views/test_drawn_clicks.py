"""Clicks in every figure select what the point or its axis is named after."""

import re

import pytest

from explorer.views import VIEWS
from tests.evaluation_case import Case

CLICKED = {
    f"{view.name}-{panel.name}": (view.name, panel)
    for view in VIEWS
    for panel in view.panels
    if panel.click_selects or panel.kind == "model_map"
}
# word -> the field of the selection that it names
FIELDS = {"query": "query", "key": "key", "layer": "layer", "head": "head", "neuron": "neuron", "dimension": "dim"}


@pytest.fixture(params=[name for name, (_, panel) in CLICKED.items() if panel.kind not in ("head_grid", "head_table")])
def figure(request, look):
    """Return the panel's figure of the first kind of model that has it."""
    view, panel = CLICKED[request.param]
    runs: list[Case] = [look(style, changed=panel.compared_run) for style in ("rope", "gpt")]
    return next(case for case in runs if case.has(view, panel.name)).figure(view, panel.name)


def test_a_click_selects_what_the_pointer_is_told(figure):
    for p in figure.points():
        for word, field in FIELDS.items():
            called = re.search(rf"(?<!kv )\b{word} (\d+)(?![\d.])", p.hover_text)
            if called and field in p.change:
                assert p.change[field] == int(called[1]), p


def test_an_axis_selects_what_it_is_called(figure):
    for letter in {"x", "y"} & set(figure.selects):
        first = re.match(r"\w*", figure.title(letter))[0]
        assert FIELDS.get(first, figure.selects[letter]) == figure.selects[letter], figure.title(letter)
