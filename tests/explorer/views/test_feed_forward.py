import re
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from explorer.analysis.feed_forward import layer_neurons, neuron_logit_effects, recompute_neuron, sparsity
from explorer.errors import PointNotFoundError
from explorer.explain.captured.formulas import ACTIVATIONS
from explorer.explain.derivation import ClickedPoint
from explorer.explain.notation import format_contribution, format_number, format_six_digits
from explorer.interventions import make_intervention
from explorer.state.selection import Selection
from explorer.views.feed_forward import (
    MAX_NEURON_BARS,
    VIEW,
    activation_function_plot,
    inspect_logit_effect,
    neuron_values_by_token_plot,
    promoted_token_bars,
    sparsity_by_layer_plot,
    strongest_neuron_bars,
)
from explorer.views.style import FEED_FORWARD, SELECTED, label, position_labels
from tests import layouts
from tests.subtest_loops import each_style


@each_style
def test_strongest_neurons_have_bars_per_step(trace):
    gated = trace.config.is_gated
    neuron_values = layer_neurons(trace, 1, 7)
    top = neuron_values.top(MAX_NEURON_BARS)
    figure = strongest_neuron_bars(trace, 1, top[4], 7)
    steps = (
        [neuron_values.active, neuron_values.up, neuron_values.hidden]
        if gated
        else [neuron_values.pre, neuron_values.hidden]
    )
    assert len(figure.data) == len(steps)
    assert figure.layout.meta["labelled_axis"] == "x"  # the CSV has neurons, not places of bars
    for bars, values in zip(figure.data, steps, strict=True):
        assert list(bars.customdata) == list(top)
        assert_allclose(bars.y, values[top])
        assert list(bars.text) == [format_number(length) for length in neuron_values.output_norms[top]]
    if gated:
        gate, up, product = (np.array(bars.y) for bars in figure.data)
        assert_allclose(gate * up, product, rtol=1e-5)


@each_style
def test_legend_says_where_formulas_need_not_hold(trace):
    gated = trace.config.is_gated
    for tap in ("hidden", *["gate"] * gated):
        changed = replace(trace, edits=(make_intervention(f"blocks.1.ffn.{tap}", "zero", index=7),))
        for layer in (0, 1):
            names = [bars.name for bars in strongest_neuron_bars(changed, layer, 7, 7).data if " " in bars.name]
            unless = {name for name in names if name.endswith(", unless changed")}
            assert unless == ({name for name in names if name.startswith(tap)} if layer else set())


def test_chosen_neuron_is_always_drawn_and_framed(rope_trace):
    top = layer_neurons(rope_trace, 0, 3).top(rope_trace.config.d_ff)
    for chosen, bar_position in ((top[6], 6), (top[-1], MAX_NEURON_BARS + 1)):
        figure = strongest_neuron_bars(rope_trace, 0, int(chosen), 3)
        bars = figure.data[0]
        assert bars.customdata[list(bars.x).index(bar_position)] == chosen
        assert [(shape.x0, shape.x1) for shape in figure.layout.shapes] == [(bar_position - 0.5, bar_position + 0.5)]
        assert figure.layout.xaxis.ticktext[list(bars.x).index(bar_position)] == str(chosen)


@each_style
def test_every_neuron_is_a_dot_on_activation_curve(trace):
    neuron_values = layer_neurons(trace, 0, 5)
    line, others, chosen = activation_function_plot(trace, 0, 11, 5).data
    assert sorted([*others.customdata, *chosen.customdata]) == list(range(trace.config.d_ff))
    assert "lie together" not in activation_function_plot(trace, 0, 11, 5).layout.xaxis.title.text
    assert list(chosen.customdata) == [11] and chosen.marker.color == SELECTED
    assert chosen.marker.opacity == 1 > others.marker.opacity > 0
    _, activation = ACTIVATIONS[trace.config.ffn]
    for dots in (others, chosen):
        assert_allclose(dots.x, neuron_values.pre[dots.customdata])
        assert_allclose(dots.y, activation(np.array(dots.x, float)), atol=1e-5)
    sizes = np.array(others.marker.size)
    assert_array_equal(np.argsort(sizes), np.argsort(neuron_values.output_norms[others.customdata]))
    assert sizes.max() > 2 * sizes.min()  # the more a neuron writes, the larger
    assert min(line.x) <= neuron_values.pre.min() and max(line.x) >= neuron_values.pre.max()
    assert_allclose(line.y, activation(np.array(line.x)))


@each_style
def test_many_neurons_draw_largest_dot_per_bin(trace, monkeypatch):
    neuron_values, chosen = layer_neurons(trace, 0, 5), 11
    monkeypatch.setattr("explorer.views.feed_forward.MAX_DOTS", 8)
    figure = activation_function_plot(trace, 0, chosen, 5)
    others = list(figure.data[1].customdata)
    other_neurons = np.delete(np.arange(trace.config.d_ff), chosen)
    edges = np.linspace(neuron_values.pre[other_neurons].min(), neuron_values.pre[other_neurons].max(), 9)[1:-1]
    bin_of_neuron = np.digitize(neuron_values.pre, edges)
    assert sorted(bin_of_neuron[others]) == sorted(set(bin_of_neuron[other_neurons]))
    for neuron_number in others:
        among = [other for other in other_neurons if bin_of_neuron[other] == bin_of_neuron[neuron_number]]
        assert neuron_values.output_norms[neuron_number] == neuron_values.output_norms[among].max()
    assert_allclose(figure.data[1].x, neuron_values.pre[others])
    assert "where dots lie together, the largest is drawn" in figure.layout.xaxis.title.text
    selection = Selection(layer=0, neuron=chosen, query=5)
    panel = next(panel for panel in VIEW.panels if panel.name == "curve")
    for item in range(len(others)):
        before, after = panel.inspect(trace, selection, ClickedPoint(0, 0, curve=1, item=item))
        assert_allclose(
            [before.value, after.value], [figure.data[1].x[item], figure.data[1].y[item]], rtol=1e-4, atol=1e-6
        )
    with pytest.raises(PointNotFoundError):
        panel.inspect(trace, selection, ClickedPoint(0, 0, curve=1, item=len(others)))


def test_layer_of_zeros_can_be_drawn(rope_trace):
    names = [f"blocks.0.ffn.{name}" for name in ("gate_pre", "gate", "up", "hidden")]
    zeroed = {name: np.zeros_like(rope_trace[name]) for name in names}
    silent = replace(rope_trace, values={**rope_trace.values, **zeroed})
    assert np.isfinite(activation_function_plot(silent, 0, 0, 0).data[1].marker.size).all()
    assert sparsity_by_layer_plot(silent, 0).data[0].y[0] == sparsity_by_layer_plot(silent, 0).data[1].y[0] == 1


@each_style
def test_neuron_bars_show_its_values_by_token(trace):
    bars = neuron_values_by_token_plot(trace, 1, 9, 4).data[0]
    assert list(bars.x) == position_labels(trace.tokens)
    assert_array_equal(bars.y, trace["blocks.1.ffn.hidden"][:, 9])
    assert [i for i, color in enumerate(bars.marker.color) if color == SELECTED] == [4]


@each_style
def test_never_active_neuron_is_called_dead(trace):
    figure = neuron_values_by_token_plot(trace, 0, 3, 4)
    assert bool(figure.layout.annotations) is not trace["blocks.0.ffn.hidden"][:, 3].any()
    zeroed = {**trace.values, "blocks.0.ffn.hidden": np.zeros_like(trace["blocks.0.ffn.hidden"])}
    (note,) = neuron_values_by_token_plot(replace(trace, values=zeroed), 0, 3, 4).layout.annotations
    assert "dead in this run" in note.text


@each_style
def test_promoted_tokens_come_first_suppressed_last(trace):
    """Holds for both signs of the hidden value; for 0, tokens are ordered as for a positive value."""
    hidden_values = trace["blocks.0.ffn.hidden"][6]
    for chosen in (int(hidden_values.argmin()), int(hidden_values.argmax())):
        hidden = float(hidden_values[chosen])
        push = hidden * neuron_logit_effects(trace, 0, chosen, 6)
        figure = promoted_token_bars(trace, 0, chosen, 6)
        bars = figure.data[0]
        if hidden:
            assert_allclose(bars.x, [*np.sort(push)[:-11:-1], *np.sort(push)[9::-1]])
            raised = [label(trace.vocabulary[token_id]) for token_id in np.argsort(-push, kind="stable")[:3]]
            assert list(figure.layout.yaxis.ticktext)[:3] == raised
        else:
            assert not np.any(bars.x)
        assert list(bars.text) == [format_contribution(change) for change in bars.x]  # one number, drawn and written
        (note,) = figure.layout.annotations
        assert note.text == f"With its hidden value in this run, {format_number(hidden)}."
        point = ClickedPoint(x=0, y=0, curve=0, item=0)
        derivation = inspect_logit_effect(trace, Selection(layer=0, neuron=chosen, query=6), point)
        assert derivation.value == pytest.approx(bars.x[0])
        assert derivation.recomputed_value == pytest.approx(bars.x[0], rel=1e-4, abs=1e-6)


@each_style
def test_sparsity_bars_explain_threshold(trace):
    figure = sparsity_by_layer_plot(trace, 1)
    shares = sparsity(trace)
    assert_allclose(figure.data[0].y, shares.near_zero)
    assert_allclose(figure.data[1].y, shares.inactive)
    assert figure.data[0].marker.color == FEED_FORWARD
    exact = trace.config.ffn in ("relu", "relu2")
    assert ("exactly 0" in figure.data[0].name) is exact
    assert ("× RMS)" in figure.data[0].name) is not exact
    assert ("dotted" in figure.layout.yaxis.title.text) is not exact
    assert ("dead" in figure.data[1].name) is exact


@each_style
def test_formula_has_numbers_of_chosen_neuron(trace):
    gated = trace.config.is_gated
    formula = VIEW.formula(trace, Selection(layer=1, neuron=17, query=7))
    worked = recompute_neuron(trace, 1, 17, 7)
    name, _ = ACTIVATIONS[trace.config.ffn]
    assert formula.startswith("layer 1 neuron 17 at ")
    assert f"{name}({format_six_digits(worked.pre)}) = {format_six_digits(worked.active)}" in formula
    assert f"= {format_six_digits(worked.hidden)}   recomputed" in formula
    assert worked.hidden == pytest.approx(trace["blocks.1.ffn.hidden"][7, 17], abs=1e-5)
    assert f"off by {format_number(worked.error)}" in formula
    assert ("hidden = gate · up" in formula) is gated
    assert ("+ b_up[17]" in formula) is trace.config.bias
    read = layouts.READS[trace.config.norm_placement][1]
    assert f"x = blocks.1.{read} ({trace.config.d_model} numbers)" in formula


def test_formula_lines_are_aligned(rope_trace):
    lines = VIEW.formula(rope_trace, Selection(neuron=3)).splitlines()[1:]
    assert {line.index("=") for line in lines} == {7}
    assert all(re.match("gate|up|hidden", line) for line in lines)


@each_style
def test_sentence_names_strongest_neuron(trace):
    for layer, query in ((0, 0), (1, 7)):
        columns = trace.weights[f"blocks.{layer}.ffn.down_proj.weight"][:].astype(np.float64).T
        written = [layouts.residual_contributions(trace, layer, "ffn", column, query) for column in columns]
        norms = np.abs(trace[f"blocks.{layer}.ffn.hidden"][query]) * np.linalg.norm(written, axis=-1)
        top, other = np.argsort(-norms)[:2].tolist()
        words = VIEW.sentence(trace, Selection(layer=layer, neuron=top, query=query))
        assert f"Layer {layer}: neuron {top} of {len(norms)} writes most" in words
        assert f"length {format_number(norms[top])}." in words
        words = VIEW.sentence(trace, Selection(layer=layer, neuron=other, query=query))
        assert f"neuron {other} writes a vector" in words and f"neuron {top} writes most (" in words


def test_sentence_handles_a_layer_of_zeros(rope_trace):
    hidden = np.zeros_like(rope_trace["blocks.1.ffn.hidden"])
    silent = replace(rope_trace, values={**rope_trace.values, "blocks.1.ffn.hidden": hidden})
    assert "no neuron writes anything" in VIEW.sentence(silent, Selection(layer=1, query=3))


@each_style
def test_dot_derivation_includes_norm_and_hidden_value(trace):
    gated = trace.config.is_gated
    curve = next(panel for panel in VIEW.panels if panel.name == "curve")
    derivations = curve.inspect(trace, Selection(layer=1, neuron=7, query=9), ClickedPoint(0, 0, curve=2, item=0))
    first, *others = derivations[-1].note.splitlines()
    x = trace[recompute_neuron(trace, 1, 7, 9).read][9]
    weight = trace.weights[f"blocks.1.ffn.{'gate' if gated else 'up'}_proj.weight"][7]
    dim = int(np.abs(weight * x).argmax())
    assert first.startswith(f"x[{dim}]") and first.endswith(f" = {format_six_digits(x[dim])}")
    steps = ("up", "hidden") if gated else ()
    assert len(others) == len(steps)
    for name, line in zip(steps, others, strict=True):
        assert line.startswith(f"{name} = ")
        assert float(line.rsplit(" = ", 1)[1].replace("−", "-")) == pytest.approx(
            trace[f"blocks.1.ffn.{name}"][9, 7], rel=1e-4, abs=1e-5
        )
