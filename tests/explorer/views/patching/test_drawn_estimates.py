"""Estimates of attribution patching as the browser receives them, next to the exact effects."""

import html

import numpy as np
import pytest
from numpy.testing import assert_allclose

from explorer import activation_patching, attribution_patching
from explorer.errors import PointNotFoundError
from explorer.explain.derivation import ClickedPoint
from explorer.explain.notation import format_contribution
from explorer.views.style import position_labels
from tests.rendered_figures import contains_number, render_panel
from tests.subtest_loops import each_style, subtest_each

from .patching_figures import INTO, PANEL, approx_effect, cell_values, clicked_point, make_patching_case


@each_style
@subtest_each("direction", INTO)
@subtest_each("metric", ["logit_difference", "log_probability"])
@subtest_each(
    "name, field, part", [("estimate", "patch_head", "attn.q"), ("estimate_positions", "patch_position", "ffn.out")]
)
def test_estimates_use_chosen_direction_and_metric(style, name, field, part, direction, metric):
    patching_case = make_patching_case(style)
    chosen = {field: part, "patch_direction": direction, "metric": metric}
    expected = patching_case.expected(attribution_patching, part=part, direction=direction, metric=metric)
    assert_allclose(cell_values(patching_case.figure(name, **chosen)), expected, rtol=1e-4, atol=1e-5)


@each_style
@subtest_each("name, part", [("agreement", "attn.z"), ("agreement_positions", "resid_pre")])
@subtest_each("direction", INTO)
def test_dots_show_exact_and_estimated_effects(style, name, part, direction):
    patching_case = make_patching_case(style)
    figure = patching_case.figure(name, patch_direction=direction)
    exact, estimate = (
        patching_case.expected(of, part=part, direction=direction) for of in (activation_patching, attribution_patching)
    )
    diagonal, dots = figure.parts
    ends = min(exact.min(), estimate.min()), max(exact.max(), estimate.max())
    assert_allclose([diagonal["x"], diagonal["y"]], [ends, ends], rtol=1e-3, atol=1e-4)
    assert (figure.title("x"), figure.title("y")) == ("exact effect", "estimated effect")
    places = position_labels(patching_case.runs.trace.tokens)
    for p in figure.points():
        layer, column = divmod(p.item, exact.shape[1])
        assert (p.x, p.y) == (approx_effect(exact[layer, column]), approx_effect(estimate[layer, column]))
        node = f"layer {layer}, {places[column]}" if part == "resid_pre" else f"layer {layer} head {column}"
        assert html.unescape(p.hover_text).startswith(node + "\n")
        first, second = p.hover_text.split("exact ")[1].split(", estimated ")
        assert contains_number(first, p.x) and contains_number(second, p.y)
    (text,) = [note["text"] for note in figure.layout["annotations"]]
    correlation = np.corrcoef(exact.ravel(), estimate.ravel())[0, 1]
    assert contains_number(text.split("<br>")[0], correlation)
    layer, column = np.unravel_index(np.abs(estimate - exact).argmax(), exact.shape)
    worst = f"layer {layer}, {places[column]}" if part == "resid_pre" else f"layer {layer} head {column}"
    assert text.split("<br>")[2] == f"{worst} ({format_contribution((estimate - exact)[layer, column])})"


@each_style
@subtest_each("direction", INTO)
@subtest_each(
    "name, chosen",
    [
        ("estimate", {"patch_head": "attn.z"}),
        ("estimate", {"patch_head": "attn.k"}),
        ("estimate_positions", {"metric": "log_probability"}),
        ("paths", {"receiver": "logits"}),
        ("paths", {"receiver": "q"}),
    ],
)
def test_clicked_estimate_or_path_is_recomputed(style, name, chosen, direction):
    patching_case = make_patching_case(style)
    selection = patching_case.selection(patch_direction=direction, **chosen)
    figure = render_panel(PANEL[name], PANEL[name].draw(patching_case.runs, selection))
    points = figure.points()
    for p in (points[0], points[-1]):
        derivation = PANEL[name].inspect(patching_case.runs, selection, clicked_point(p))
        assert derivation.value == pytest.approx(p.value, abs=1e-9) and derivation.recomputed_value == approx_effect(
            p.value
        )
        assert contains_number("\n".join(derivation.lines()), p.value)
    with pytest.raises(PointNotFoundError):
        PANEL[name].inspect(patching_case.runs, selection, ClickedPoint(x=99, y=0))


@each_style
@subtest_each("name", ["agreement", "agreement_positions"])
def test_clicked_dot_recomputes_both_effects(style, name):
    patching_case = make_patching_case(style)
    for p in patching_case.figure(name).points()[1::9]:
        exact, estimate = PANEL[name].inspect(patching_case.runs, patching_case.selection(), clicked_point(p))
        assert (exact.value, estimate.value) == (pytest.approx(p.x), pytest.approx(p.y))
        assert (exact.recomputed_value, estimate.recomputed_value) == (approx_effect(p.x), approx_effect(p.y))
