import numpy as np
import pytest
from numpy.testing import assert_allclose

from explorer.analysis.positions import by_distance, context_vectors, cosines, lengths
from explorer.explain.notation import number
from explorer.state.selection import Selection, tab_named
from explorer.views import VIEW_NAMED
from explorer.views.positions import VIEW
from explorer.views.positions.likeness import alike, by_distances
from explorer.views.positions.vectors import curves, shares
from tests.drawn import Picture, tells

QUERY, KEY = 9, 4


@pytest.fixture(params=["gpt", "learned"])
def adding(trace_of, request):
    return trace_of(request.param)


def test_the_view_goes_by_its_former_name_too():
    assert VIEW_NAMED[tab_named("rope")] is VIEW_NAMED["positions"] is VIEW


@pytest.mark.parametrize(
    ("style", "names"),
    [
        ("rope", ["clocks", "pairs", "distances", "angles", "wavelengths"]),
        ("gpt", ["vectors", "curves", "alike", "by_distance", "shares"]),
        ("learned", ["vectors", "curves", "alike", "by_distance", "shares"]),
    ],
)
def test_every_kind_of_positions_has_its_own_pictures(trace_of, style, names):
    trace = trace_of(style)
    assert VIEW.applies_to(trace)
    assert [panel.name for panel in VIEW.panels if panel.applies_to(trace) and not panel.compares] == names


def test_a_model_without_positions_says_so_in_a_sentence(trace_of):
    trace = trace_of("none")
    assert not VIEW.applies_to(trace)
    assert VIEW.otherwise(trace.config).count(".") == 1 and "causal mask" in VIEW.otherwise(trace.config)


def test_lines_are_the_models_own_and_dots_this_runs(adding):
    picture = curves(adding, QUERY, dim=5)
    table, run = context_vectors(adding), adding["position_embed"]
    d = adding.config.d_model
    for dimension, line, dots in zip(
        (5, 0, d // 8, d // 4, d // 2), picture.data[::2], picture.data[1::2], strict=True
    ):
        assert_allclose(line.y, table[:, dimension])
        assert_allclose(dots.y, run[:, dimension])
        assert f"dimension {dimension}<" in dots.hovertemplate and dots.yaxis == line.yaxis
    (mark,) = picture.layout.shapes
    assert mark.x0 == mark.x1 == QUERY


def test_dots_of_a_shifted_run_stand_where_it_counts(edited_trace_of):
    dots = curves(edited_trace_of("gpt"), QUERY).data[1]  # shifted by 3
    assert list(dots.x) == list(range(3, 15)) and list(dots.customdata) == list(range(12))


def test_every_pair_of_positions_has_its_cosine(adding):
    found = cosines(adding)
    points = Picture(alike(adding, QUERY, KEY), {"x": "key", "y": "query"}).points()
    assert len(points) == found.size
    for p in points:
        assert p.z == pytest.approx(found[p.change["query"], p.change["key"]]) and tells(p.told, p.z)


def test_every_distance_has_its_mean_and_what_it_varies_by(adding):
    found = by_distance(adding)
    for p in Picture(by_distances(adding, QUERY, KEY)).points():
        assert p.y == pytest.approx(found.mean[p.x]) and f"distance {p.x}\n" in p.told
        assert f"from {number(found.least[p.x])} to {number(found.most[p.x])} over {12 - p.x} pairs" in p.told


def test_the_sum_and_its_parts_have_bars(adding):
    found = lengths(adding)
    points = Picture(shares(adding, QUERY), {"x": "query"}).points()
    assert len(points) == found.size
    for p in points:
        assert p.width == pytest.approx(found[p.part, p.change["query"]], rel=1e-5) and tells(p.told, p.width)


def test_the_formula_has_the_chosen_positions(adding):
    told = VIEW.formula(adding, Selection(query=QUERY, key=KEY))
    assert f"cosine of positions {QUERY} and {KEY} = p·p′ / (‖p‖ ‖p′‖) = {number(cosines(adding)[QUERY, KEY])}" in told
    assert f"‖token + position‖ = {number(np.linalg.norm(adding['embed'][QUERY]))}," in told
    assert ("distance alone" in told) is (adding.config.position == "sinusoidal")
