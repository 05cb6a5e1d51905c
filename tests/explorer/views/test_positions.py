import re

import numpy as np
import pytest
from numpy.testing import assert_allclose

from explorer.analysis.positions import (
    context_position_embeddings,
    cosines_by_distance,
    main_pair,
    position_cosines,
    rotation_angles,
    token_and_position_norms,
)
from explorer.analysis.walkthroughs import get_walkthrough
from explorer.explain.notation import format_number, quote_token
from explorer.state.selection import Selection, resolve_tab
from explorer.views import VIEW_BY_NAME
from explorer.views.positions import VIEW
from explorer.views.positions.position_vectors import (
    cosine_by_distance,
    position_cosine_map,
    position_vector_curves,
    token_and_position_norm_bars,
)
from tests.rendered_figures import RenderedFigure, contains_number
from tests.subtest_loops import subtest_each

QUERY, KEY = 9, 4


additive_styles = subtest_each("style", ["gpt", "learned"])


def test_former_view_name_still_works():
    assert VIEW_BY_NAME[resolve_tab("rope")] is VIEW_BY_NAME["positions"] is VIEW


@subtest_each(
    "style, names",
    [
        ("rope", ["clocks", "pairs", "distances", "angles", "wavelengths"]),
        ("gpt", ["vectors", "curves", "alike", "by_distance", "shares"]),
        ("learned", ["vectors", "curves", "alike", "by_distance", "shares"]),
    ],
)
def test_each_position_kind_has_own_figures(capture_trace, style, names):
    trace = capture_trace(style)
    assert VIEW.is_applicable(trace)
    assert [panel.name for panel in VIEW.panels if panel.is_applicable(trace) and not panel.compared_run] == names


def test_model_without_positions_has_a_message(capture_trace):
    trace = capture_trace("none")
    assert not VIEW.is_applicable(trace)
    assert VIEW.unavailable_message(trace.config).count(".") == 2 and "causal mask" in VIEW.unavailable_message(
        trace.config
    )


@additive_styles
def test_curves_show_table_and_run(capture_trace, style):
    trace = capture_trace(style)
    figure = position_vector_curves(trace, QUERY, dim=5)
    table, run = context_position_embeddings(trace), trace["position_embed"]
    d = trace.config.d_model
    for dimension, line, dots in zip((5, 0, d // 8, d // 4, d // 2), figure.data[::2], figure.data[1::2], strict=True):
        assert_allclose(line.y, table[:, dimension])
        assert_allclose(dots.y, run[:, dimension])
        assert f"dimension {dimension}<" in dots.hovertemplate and dots.yaxis == line.yaxis
    (mark,) = figure.layout.shapes
    assert mark.x0 == mark.x1 == QUERY


def test_shifted_run_shows_dots_at_shifted_positions(capture_edited_trace):
    dots = position_vector_curves(capture_edited_trace("gpt"), QUERY).data[1]  # shifted by 3
    assert list(dots.x) == list(range(3, 15)) and list(dots.customdata) == list(range(12))


@additive_styles
def test_cosine_map_equals_computed_cosines(capture_trace, style):
    trace = capture_trace(style)
    cosine_matrix = position_cosines(trace)
    points = RenderedFigure(position_cosine_map(trace, QUERY, KEY), {"x": "key", "y": "query"}).points()
    assert len(points) == cosine_matrix.size
    for p in points:
        assert p.z == pytest.approx(cosine_matrix[p.change["query"], p.change["key"]]) and contains_number(
            p.hover_text, p.z
        )


@additive_styles
def test_distance_plot_shows_mean_and_range(capture_trace, style):
    trace = capture_trace(style)
    statistics = cosines_by_distance(trace)
    for p in RenderedFigure(cosine_by_distance(trace, QUERY, KEY)).points():
        assert p.y == pytest.approx(statistics.mean[p.x]) and f"distance {p.x}\n" in p.hover_text
        assert (
            f"from {format_number(statistics.minimum[p.x])} to "
            f"{format_number(statistics.maximum[p.x])} over {12 - p.x} pairs"
        ) in p.hover_text


@additive_styles
def test_norm_bars_show_sum_and_summands(capture_trace, style):
    trace = capture_trace(style)
    norms = token_and_position_norms(trace)
    points = RenderedFigure(token_and_position_norm_bars(trace, QUERY), {"x": "query"}).points()
    assert len(points) == norms.size
    for p in points:
        assert p.width == pytest.approx(norms[p.group, p.change["query"]], rel=1e-5) and contains_number(
            p.hover_text, p.width
        )


@additive_styles
def test_formula_has_chosen_positions(capture_trace, style):
    trace = capture_trace(style)
    formula = VIEW.formula(trace, Selection(query=QUERY, key=KEY))
    cosine = format_number(position_cosines(trace)[QUERY, KEY])
    assert f"cosine of positions {QUERY} and {KEY} = p·p′ / (‖p‖ ‖p′‖) = {cosine}" in formula
    assert f"‖token + position‖ = {format_number(np.linalg.norm(trace['embed'][QUERY]))}," in formula
    assert ("distance alone" in formula) is (trace.config.position == "sinusoidal")


@subtest_each("query, key", [(9, 4), (11, 2), (5, 4)])
def test_sentence_has_largest_change_by_rotation(capture_trace, query, key):
    trace, selection = capture_trace("rope"), Selection(query=query, key=key)
    products = {}
    for suffix in ("", "_rot"):
        q, k = (
            trace.head_value(f"blocks.{selection.layer}.attn.{name}{suffix}", selection.head)[position]
            for name, position in (("q", query), ("k", key))
        )
        products[suffix] = (q * k).astype(np.float64).reshape(-1, 2).sum(-1) / np.sqrt(trace.config.d_head)
    pair = int(np.abs(products["_rot"] - products[""]).argmax())
    sentence = VIEW.sentence(trace, selection)
    before, after = re.search(r"Its part of the score changes most: (\S+) → (\S+)\.$", sentence).groups()
    assert f"RoPE rotates pair {pair} of" in sentence
    assert float(before.replace("−", "-")) == pytest.approx(products[""][pair], rel=1e-2)
    assert float(after.replace("−", "-")) == pytest.approx(products["_rot"][pair], rel=1e-2)


@subtest_each("position", [0, 9])
def test_sentence_of_distance_zero_mentions_no_change(capture_trace, position):
    trace, selection = capture_trace("rope"), Selection(query=position, key=position)
    q, k = (
        trace.head_value(f"blocks.{selection.layer}.attn.{name}_rot", selection.head)[position] for name in ("q", "k")
    )
    pair = int(np.abs((q * k).reshape(-1, 2).sum(-1)).argmax())
    sentence = VIEW.sentence(trace, selection)
    assert f"RoPE rotates pair {pair} of" in sentence
    assert sentence.endswith("Both turn alike: RoPE does not change the score.")


@additive_styles
def test_sentence_has_angles_or_cosine(capture_trace, style):
    rope, trace = capture_trace("rope"), capture_trace(style)
    first, second = (quote_token(rope.tokens[i]) for i in (9, 4))
    words = VIEW.sentence(rope, Selection(query=9, key=4))
    pair = main_pair(rope, Selection.layer, Selection.head, 9, 4)
    angles = rotation_angles(rope, Selection.layer)[[9, 4], pair]
    query, key = (f"{format_number(a)} rad" for a in angles)
    assert f"pair {pair} of {first} by {query}, of {second} by {key}. Its part of the score" in words
    assert get_walkthrough("rotation", rope, Selection(query=9, key=4))["pair"] == pair
    assert f"{first} has that of position 9." in VIEW.sentence(trace, Selection(query=9, key=9))
    first, second = trace["position_embed"][[9, 4]].astype(np.float64)
    cosine = first @ second / np.sqrt((first @ first) * (second @ second))
    assert contains_number(VIEW.sentence(trace, Selection(query=9, key=4)), cosine)
