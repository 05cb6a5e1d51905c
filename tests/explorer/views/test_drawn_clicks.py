"""Clicks in every figure select the field that the hover text or the axis names."""

import re

from explorer.views import VIEWS
from tests.evaluation_case import Case
from tests.subtest_loops import subtest_each

CLICKABLE_PANELS = {
    f"{view.name}-{panel.name}": (view.name, panel)
    for view in VIEWS
    for panel in view.panels
    if panel.click_selects or panel.kind == "model_map"
}
# word in a hover text -> field of the selection
FIELDS = {"query": "query", "key": "key", "layer": "layer", "head": "head", "neuron": "neuron", "dimension": "dim"}


each_panel = subtest_each(
    "name", [name for name, (_, panel) in CLICKABLE_PANELS.items() if panel.kind not in ("head_grid", "head_table")]
)


def draw_panel(make_case, name):
    """Return the panel's figure of the first kind of model that has it."""
    view, panel = CLICKABLE_PANELS[name]
    runs: list[Case] = [make_case(style, changed=panel.compared_run) for style in ("rope", "gpt")]
    return next(case for case in runs if case.has(view, panel.name)).figure(view, panel.name)


@each_panel
def test_click_selects_field_in_hover_text(make_case, name):
    figure = draw_panel(make_case, name)
    for p in figure.points():
        for word, field in FIELDS.items():
            called = re.search(rf"(?<!kv )\b{word} (\d+)(?![\d.])", p.hover_text)
            if called and field in p.change:
                assert p.change[field] == int(called[1]), p


@each_panel
def test_axis_selects_field_in_its_title(make_case, name):
    figure = draw_panel(make_case, name)
    for letter in {"x", "y"} & set(figure.selects):
        first = re.match(r"\w*", figure.title(letter))[0]
        assert FIELDS.get(first, figure.selects[letter]) == figure.selects[letter], figure.title(letter)
