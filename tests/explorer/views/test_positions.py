import numpy as np
import pytest
from numpy.testing import assert_allclose

from explorer.analysis.positions import (
    context_position_embeddings,
    cosines_by_distance,
    position_cosines,
    token_and_position_norms,
)
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

QUERY, KEY = 9, 4


@pytest.fixture(params=["gpt", "learned"])
def adding(trace_of, request):
    return trace_of(request.param)


def test_the_view_goes_by_its_former_name_too():
    assert VIEW_BY_NAME[resolve_tab("rope")] is VIEW_BY_NAME["positions"] is VIEW


@pytest.mark.parametrize(
    ("style", "names"),
    [
        ("rope", ["clocks", "pairs", "distances", "angles", "wavelengths"]),
        ("gpt", ["vectors", "curves", "alike", "by_distance", "shares"]),
        ("learned", ["vectors", "curves", "alike", "by_distance", "shares"]),
    ],
)
def test_every_kind_of_positions_has_its_own_figures(trace_of, style, names):
    trace = trace_of(style)
    assert VIEW.is_applicable(trace)
    assert [panel.name for panel in VIEW.panels if panel.is_applicable(trace) and not panel.compared_run] == names


def test_a_model_without_positions_says_so_in_a_sentence(trace_of):
    trace = trace_of("none")
    assert not VIEW.is_applicable(trace)
    assert VIEW.unavailable_message(trace.config).count(".") == 2 and "causal mask" in VIEW.unavailable_message(
        trace.config
    )


def test_lines_are_the_models_own_and_dots_this_runs(adding):
    figure = position_vector_curves(adding, QUERY, dim=5)
    table, run = context_position_embeddings(adding), adding["position_embed"]
    d = adding.config.d_model
    for dimension, line, dots in zip((5, 0, d // 8, d // 4, d // 2), figure.data[::2], figure.data[1::2], strict=True):
        assert_allclose(line.y, table[:, dimension])
        assert_allclose(dots.y, run[:, dimension])
        assert f"dimension {dimension}<" in dots.hovertemplate and dots.yaxis == line.yaxis
    (mark,) = figure.layout.shapes
    assert mark.x0 == mark.x1 == QUERY


def test_dots_of_a_shifted_run_stand_where_it_counts(edited_trace_of):
    dots = position_vector_curves(edited_trace_of("gpt"), QUERY).data[1]  # shifted by 3
    assert list(dots.x) == list(range(3, 15)) and list(dots.customdata) == list(range(12))


def test_every_pair_of_positions_has_its_cosine(adding):
    cosine_matrix = position_cosines(adding)
    points = RenderedFigure(position_cosine_map(adding, QUERY, KEY), {"x": "key", "y": "query"}).points()
    assert len(points) == cosine_matrix.size
    for p in points:
        assert p.z == pytest.approx(cosine_matrix[p.change["query"], p.change["key"]]) and contains_number(
            p.hover_text, p.z
        )


def test_every_distance_has_its_mean_and_what_it_varies_by(adding):
    statistics = cosines_by_distance(adding)
    for p in RenderedFigure(cosine_by_distance(adding, QUERY, KEY)).points():
        assert p.y == pytest.approx(statistics.mean[p.x]) and f"distance {p.x}\n" in p.hover_text
        assert (
            f"from {format_number(statistics.minimum[p.x])} to "
            f"{format_number(statistics.maximum[p.x])} over {12 - p.x} pairs"
        ) in p.hover_text


def test_the_sum_and_its_parts_have_bars(adding):
    norms = token_and_position_norms(adding)
    points = RenderedFigure(token_and_position_norm_bars(adding, QUERY), {"x": "query"}).points()
    assert len(points) == norms.size
    for p in points:
        assert p.width == pytest.approx(norms[p.group, p.change["query"]], rel=1e-5) and contains_number(
            p.hover_text, p.width
        )


def test_the_formula_has_the_chosen_positions(adding):
    formula = VIEW.formula(adding, Selection(query=QUERY, key=KEY))
    cosine = format_number(position_cosines(adding)[QUERY, KEY])
    assert f"cosine of positions {QUERY} and {KEY} = p·p′ / (‖p‖ ‖p′‖) = {cosine}" in formula
    assert f"‖token + position‖ = {format_number(np.linalg.norm(adding['embed'][QUERY]))}," in formula
    assert ("distance alone" in formula) is (adding.config.position == "sinusoidal")


def test_the_sentence_has_the_angles_or_the_cosine_of_the_chosen_tokens(trace_of, adding):
    rope = trace_of("rope")
    first, second = (quote_token(rope.tokens[i]) for i in (9, 4))
    words = VIEW.sentence(rope, Selection(query=9, key=4))
    assert f"pair 0 of {first} by 9.00 rad, of {second} by 4.00 rad." in words
    assert f"pair 0 of {first} by 9.00 rad. " in VIEW.sentence(rope, Selection(query=9, key=9))
    assert f"{first} has that of position 9." in VIEW.sentence(adding, Selection(query=9, key=9))
    first, second = adding["position_embed"][[9, 4]].astype(np.float64)
    cosine = first @ second / np.sqrt((first @ first) * (second @ second))
    assert contains_number(VIEW.sentence(adding, Selection(query=9, key=4)), cosine)
