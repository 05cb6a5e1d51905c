"""Patching effects of neurons as the browser receives them."""

import pytest

from tests.rendered_figures import contains_number
from tests.subtest_loops import each_style

from .patching_figures import INTO, PANEL, approx_effect, clicked_point, make_patching_case


@pytest.mark.exhaustive
@each_style
def test_bars_show_neurons_and_select_them(style):
    patching_case = make_patching_case(style)
    figure = patching_case.figure("neurons")
    patches, order = figure.layout["meta"]["changes"], figure.parts[0]["customdata"]
    assert [plot_trace["name"] for plot_trace in figure.parts] == list(INTO.values())
    assert patches["of"] == "b.edits" and patches["texts"] == [f"blocks.1.ffn.hidden.{i}*patch" for i in order]
    elements = figure.points()
    for plot_trace in figure.parts:
        assert plot_trace["customdata"] == order == [int(name) for name in plot_trace["x"]]
    for p in elements:
        assert (
            p.change == {"neuron": order[p.item]}
            and f"neuron {order[p.item]}\n" in p.hover_text
            and contains_number(p.hover_text, p.value)
        )
        derivation = PANEL["neurons"].inspect(patching_case.runs, patching_case.selection(), clicked_point(p))
        assert p.value == pytest.approx(derivation.value, abs=1e-9)
        assert derivation.recomputed_value == approx_effect(p.value)
        assert (INTO["denoise"] if p.group == 0 else INTO["noise"]) == figure.parts[p.group]["name"]
