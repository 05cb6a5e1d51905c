from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from explorer.analysis.positions import main_pair, pair_contribution, rotated_pairs, score_at_distance, wrap_angles
from explorer.explain.notation import format_number
from explorer.state.selection import Selection
from explorer.views.positions import rope
from explorer.views.style import label, position_labels
from model.config import RopeScaling
from tests.subtest_loops import each_rotating_style, subtest_each

QUERY, KEY = 9, 4


def draw_clocks(trace):
    return rope.rotation_clocks(trace, layer=1, head=2, query=QUERY, key=KEY)


def arrow_points(figure, name: str, stage: str = "after") -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return starts, ends and tips of the arrows of one vector at one stage, (F, 2) each."""
    index = next(i for i, trace in enumerate(figure.data) if trace.legendgroup == name)
    arrows, tips = figure.data[index : index + 2] if stage == "after" else figure.data[index - 2 : index]
    points = np.stack([arrows.x, arrows.y], axis=1)
    assert np.isnan(points[2::3]).all()  # gaps between the arrows
    return points[0::3], points[1::3], np.stack([tips.x, tips.y], axis=1)


@each_rotating_style
def test_heatmap_shows_wrapped_angles(trace):
    heatmap = rope.rotation_angle_map(trace).data[0]
    assert_array_equal(heatmap.customdata, trace["rope.angles"])
    assert_allclose(heatmap.z, wrap_angles(trace["rope.angles"]))
    assert list(heatmap.y) == position_labels(trace.tokens)
    assert (heatmap.zmin, heatmap.zmax) == (-np.pi, np.pi)


@each_rotating_style
def test_query_and_key_are_marked(trace):
    marked = [(shape.y0, shape.y1) for shape in rope.rotation_angle_map(trace, query=QUERY, key=KEY).layout.shapes]
    assert marked == [(8.5, 9.5), (3.5, 4.5)]


@each_rotating_style
def test_arrows_end_at_pairs(trace):
    clocks = draw_clocks(trace)
    for (vector, position), stage in product([("q", QUERY), ("k", KEY)], ["before", "after"]):
        pairs = rotated_pairs(trace, vector, 1, 2, position)
        begins, ends, tips = arrow_points(clocks, f"{vector} of {label(trace.tokens[position])}", stage)
        longest = np.linalg.norm(np.concatenate((pairs.before, pairs.after)), axis=1).max()
        assert_allclose(ends - begins, getattr(pairs, stage) / longest, atol=1e-5, err_msg=f"{vector} {stage}")
        assert_allclose(tips, ends, err_msg=f"{vector} {stage}")


@each_rotating_style
def test_arrows_stay_inside_their_circles(trace):
    clocks = draw_clocks(trace)
    circles = clocks.data[0]
    gaps = np.flatnonzero(np.isnan(circles.x))
    middles = [
        [(np.min(coordinates) + np.max(coordinates)) / 2 for coordinates in (x[~np.isnan(x)], y[~np.isnan(y)])]
        for x, y in zip(np.split(circles.x, gaps), np.split(circles.y, gaps), strict=True)
        if not np.isnan(x).all()
    ]
    for name in {part.legendgroup for part in clocks.data} - {None, "before"}:
        for stage in ("before", "after"):
            begins, ends, _ = arrow_points(clocks, name, stage)
            assert_allclose(begins, middles, atol=1e-2)
            assert (np.linalg.norm(ends - begins, axis=1) <= 1 + 1e-5).all()
    assert circles.line.simplify is False  # round
    assert sum(part.showlegend for part in clocks.data) == 3  # one row
    assert len(middles) == trace["rope.angles"].shape[1]
    highlight, main = clocks.data[-1], main_pair(trace, 1, 2, QUERY, KEY)
    assert len(highlight.x) == len(circles.x)  # as the page rearranges circles by their order
    assert_allclose((np.nanmin(highlight.x) + np.nanmax(highlight.x)) / 2, middles[main][0], atol=1e-2)


@each_rotating_style
def test_hover_text_has_numbers(trace):
    clocks = draw_clocks(trace)
    pairs = rotated_pairs(trace, "k", 1, 2, KEY)
    name = f"k of {label(trace.tokens[KEY])}"
    texts = next(part.text for part in clocks.data if part.name == name)
    assert f"({format_number(pairs.after[1, 0])}, {format_number(pairs.after[1, 1])})" in texts[1]
    assert f"rotated by {format_number(pairs.angles[1])} rad" in texts[1]


@each_rotating_style
def test_circles_do_not_overlap(trace):
    clocks = draw_clocks(trace)
    begins, _, _ = arrow_points(clocks, clocks.data[-2].legendgroup)
    distances = np.linalg.norm(begins[:, None] - begins, axis=-1) + 9 * np.eye(len(begins))
    assert (distances > 2).all()


def test_rows_of_circles_are_full():
    assert [rope.full_row_columns(count) for count in (1, 2, 16, 24, 32, 48, 64)] == [1, 2, 4, 6, 8, 8, 8]


@each_rotating_style
def test_zero_vector_is_drawn(trace):
    zeros = {name: value * 0 for name, value in trace.values.items() if ".attn.q" in name}
    figure = rope.rotation_clocks(replace(trace, values={**trace.values, **zeros}), 0, 0, 3, 1)
    begins, ends, _ = arrow_points(figure, f"q of {label(trace.tokens[3])}")
    assert_array_equal(begins, ends)


@each_rotating_style
def test_formula_has_numbers_of_query(trace):
    pairs = rotated_pairs(trace, "q", 1, 2, QUERY)
    formula = rope.describe_rotation(trace, Selection(layer=1, head=2, query=QUERY, key=KEY))
    config = trace.config
    width = f"d = {config.d_head}"
    if config.rotary_dim:
        width = f"r = {config.rotary_dim}; from pair 2 on they stand still"
    assert f"θ = {config.local_rope_theta or 10000:g}, {width}" in formula
    assert f"pair 0 is rotated by {format_number(pairs.angles[0])} rad" in formula
    assert f"is {QUERY - KEY}\n" in formula
    assert f"‖q‖ = {format_number(np.linalg.norm(pairs.before))} before" in formula


@subtest_each(
    "style, words",
    [
        ("rope", "pair i: dimensions 2i and 2i + 1\nquery"),
        ("grouped", "pair i: dimensions i and i + 4\nslowed for longer texts: every pair is rotated 4 times slower"),
    ],
)
def test_formula_describes_pairs_and_scaling(capture_trace, style, words):
    assert words in rope.describe_rotation(capture_trace(style), Selection(layer=1, query=QUERY, key=KEY))


def test_layer_without_rotation_has_a_message(capture_trace):
    formula = rope.describe_rotation(capture_trace("grouped"), Selection(layer=0, query=QUERY, key=KEY))
    assert formula.startswith(
        "layer 0 does not rotate: its angles are 0; angles by position are those of the layers that do; pair i: "
    )
    assert "slowed" not in formula and "θ" not in formula


@subtest_each(
    "scaling, words",
    [
        ({"kind": "linear", "factor": 4}, "every pair is rotated 4 times slower"),
        ({"kind": "ntk", "factor": 2.5}, "pair 0 as it was, the last pair 2.5 times slower"),
        (
            {"kind": "llama3", "factor": 8, "original_context_length": 8192},
            "pairs with fewer than 1 rotations in 8,192 positions are 8 times slower, those with more than 4",
        ),
    ],
)
def test_every_rope_scaling_is_described(rope_trace, scaling, words):
    config = replace(rope_trace.config, rope_scaling=RopeScaling(**scaling))
    assert words in rope.describe_rotation(replace(rope_trace, config=config), Selection(query=QUERY, key=KEY))


@each_rotating_style
def test_panels_draw_selection(trace):
    clocks = draw_clocks(trace)
    panels = {panel.name: panel.draw for panel in rope.PANELS}
    selection = Selection(layer=1, head=2, query=QUERY, key=KEY)
    assert panels["clocks"](trace, selection) == clocks
    assert panels["angles"](trace, selection) == rope.rotation_angle_map(trace, QUERY, KEY, 1)


def test_derivations_without_rotation_use_no_angles(capture_trace):
    trace = capture_trace("grouped")
    derivations = [
        pair_contribution(trace, 0, 3, 9, 4, 1),
        *(score_at_distance(trace, 0, 3, 9, 4, distance) for distance in (0, 7)),
    ]
    for derivation in derivations:
        assert derivation.recomputed_value == pytest.approx(derivation.value, abs=1e-6)
        assert not any(read.name == "rope.angles" for read in derivation.working.inputs)
