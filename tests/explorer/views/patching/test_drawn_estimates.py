"""Estimates of attribution patching as the browser receives them, next to the exact effects."""

import html

import numpy as np
import pytest
from numpy.testing import assert_allclose

from explorer import activation_patching, attribution_patching
from explorer.errors import PointNotFoundError
from explorer.explain.clicked_point import ClickedPoint
from explorer.explain.notation import format_contribution
from explorer.views.style import position_labels
from tests.rendered_figures import contains_number, render_panel

from .patching_figures import INTO, PANEL, cell_values, clicked_point, near


@pytest.mark.parametrize("direction", INTO)
@pytest.mark.parametrize("metric", ["logit_difference", "log_probability"])
@pytest.mark.parametrize(
    ("name", "field", "part"),
    [("estimate", "patch_head", "attn.q"), ("estimate_positions", "patch_position", "ffn.out")],
)
def test_an_estimate_is_that_of_the_chosen_direction_and_metric(two, name, field, part, direction, metric):
    chosen = {field: part, "patch_direction": direction, "metric": metric}
    expected = two.expected(attribution_patching, part=part, direction=direction, metric=metric)
    assert_allclose(cell_values(two.figure(name, **chosen)), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("name", "part"), [("agreement", "attn.z"), ("agreement_positions", "resid_pre")])
@pytest.mark.parametrize("direction", INTO)
def test_a_dot_is_a_node_with_what_it_is_and_what_is_estimated(two, name, part, direction):
    figure = two.figure(name, patch_direction=direction)
    exact, estimate = (
        two.expected(of, part=part, direction=direction) for of in (activation_patching, attribution_patching)
    )
    diagonal, dots = figure.parts
    ends = min(exact.min(), estimate.min()), max(exact.max(), estimate.max())
    assert_allclose([diagonal["x"], diagonal["y"]], [ends, ends], rtol=1e-3, atol=1e-4)
    assert (figure.title("x"), figure.title("y")) == ("exact effect", "estimated effect")
    places = position_labels(two.runs.trace.tokens)
    for p in figure.points():
        layer, column = divmod(p.item, exact.shape[1])
        assert (p.x, p.y) == (near(exact[layer, column]), near(estimate[layer, column]))
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


@pytest.mark.parametrize("direction", INTO)
@pytest.mark.parametrize(
    ("name", "chosen"),
    [
        ("estimate", {"patch_head": "attn.z"}),
        ("estimate", {"patch_head": "attn.k"}),
        ("estimate_positions", {"metric": "log_probability"}),
        ("paths", {"receiver": "logits"}),
        ("paths", {"receiver": "q"}),
    ],
    ids=lambda value: "-".join(value.values()) if isinstance(value, dict) else value,
)
def test_a_clicked_estimate_or_path_is_worked_out_again(two, name, chosen, direction):
    selection = two.selection(patch_direction=direction, **chosen)
    figure = render_panel(PANEL[name], PANEL[name].draw(two.runs, selection))
    points = figure.points()
    for p in (points[0], points[-1]):
        derivation = PANEL[name].inspect(two.runs, selection, clicked_point(p))
        assert derivation.value == pytest.approx(p.value, abs=1e-9) and derivation.recomputed_value == near(p.value)
        assert contains_number("\n".join(derivation.lines()), p.value)
    with pytest.raises(PointNotFoundError):
        PANEL[name].inspect(two.runs, selection, ClickedPoint(x=99, y=0))


@pytest.mark.parametrize("name", ["agreement", "agreement_positions"])
def test_a_clicked_dot_tells_both_of_its_numbers(two, name):
    for p in two.figure(name).points()[1::9]:
        exact, estimate = PANEL[name].inspect(two.runs, two.selection(), clicked_point(p))
        assert (exact.value, estimate.value) == (pytest.approx(p.x), pytest.approx(p.y))
        assert (exact.recomputed_value, estimate.recomputed_value) == (near(p.x), near(p.y))
