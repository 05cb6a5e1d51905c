"""Figures of RoPE as the browser receives them: clocks, pairs, distances and angles."""

import numpy as np
import pytest

from explorer.views import VIEWS
from tests.evaluation_case import Case, ExpectedPoint, check_points, points_at_tokens
from tests.rendered_figures import RenderedFigure, contains_number
from tests.subtest_loops import subtest_each

rotating_styles = subtest_each("style", ["rope", "grouped"])


def draw_figure(case: Case, name: str) -> RenderedFigure:
    """Return the figure of that name, in whichever tab it is."""
    return case.figure(next(view.name for view in VIEWS for panel in view.panels if panel.name == name), name)


def speeds(case: Case) -> np.ndarray:
    """Return the angular speeds (F,) in radians per position."""
    config = case.trace.config
    slower = config.rope_scaling.factor if config.rope_scaling else 1
    return config.rope_theta ** (-2 * np.arange(config.d_head // 2) / config.d_head) / slower


def pairs(case: Case, vector: str, position: int) -> np.ndarray:
    """Return the pairs (F,) of the chosen head's vector at a position, as complex numbers."""
    values = case.trace.head_value(f"blocks.1.attn.{vector}", 2)[position].astype(float)
    halves = (values[::2], values[1::2]) if case.trace.config.rope_layout == "adjacent" else np.split(values, 2)
    return halves[0] + 1j * halves[1]


def pair_scores(case: Case, distance: int) -> np.ndarray:
    """Return the score contribution (F,) of each pair of the unrotated q and k at a distance."""
    q, k = (
        pairs(case, f"{name}{'_norm' * case.trace.config.qk_norm}", position) for name, position in (("q", 9), ("k", 4))
    )
    return (q * k.conj() * np.exp(1j * distance * speeds(case))).real / case.trace.config.divisor


@rotating_styles
def test_pair_bars_equal_their_share_of_score(make_case, style):
    run_case = make_case(style)
    shares = pair_scores(run_case, 5)
    check_points(
        draw_figure(run_case, "pairs").points(),
        [[ExpectedPoint(value, f"pair {i}\n") for i, value in enumerate(shares)]],
    )
    assert shares.sum() == pytest.approx(run_case.trace["blocks.1.attn.scores"][2, 9, 4], abs=1e-4)


@rotating_styles
def test_distance_curve_equals_recomputed_scores(make_case, style):
    run_case = make_case(style)
    scores = [pair_scores(run_case, n).sum() for n in range(run_case.trace.config.context_length)]
    line = [ExpectedPoint(score, f"distance {n}\n") for n, score in enumerate(scores)]
    check_points(draw_figure(run_case, "distances").points(), [line, line[5:6]])


@rotating_styles
def test_wavelength_bars_equal_recomputed_values(make_case, style):
    run_case = make_case(style)
    turns = 2 * np.pi / speeds(run_case)
    check_points(
        draw_figure(run_case, "wavelengths").points(),
        [[ExpectedPoint(turn, f"pair {i}\n") for i, turn in enumerate(turns)]],
    )


@rotating_styles
def test_angle_map_equals_recomputed_angles(make_case, style):
    run_case = make_case(style)
    figure = draw_figure(run_case, "angles")
    angles = np.outer(np.arange(12), speeds(run_case))
    names = [row.text for row in points_at_tokens(run_case, "position", range(12), None)]
    assert len(points := figure.points()) == angles.size
    for p in points:
        angle = angles[int(p.y), int(p.x)]
        assert np.exp(1j * p.z) == pytest.approx(np.exp(1j * angle), abs=1e-4) and abs(p.z) <= np.pi + 1e-6
        assert f"{names[int(p.y)]}, pair {p.x}\n" in p.hover_text and contains_number(p.hover_text, angle)
        assert p.change["query"] == p.y


@rotating_styles
def test_clock_hands_equal_rotated_pairs(make_case, style):
    run_case = make_case(style)
    figure = draw_figure(run_case, "clocks")
    tips = [plot_trace for plot_trace in figure.parts if plot_trace.get("mode") == "markers"]
    centres = np.array([note["x"] + 1j * (note["y"] - 1.2) for note in figure.layout["annotations"]])
    points = iter(figure.points())
    for tip, (vector, position, suffix) in zip(
        tips, [(v, position, suffix) for v, position in (("q", 9), ("k", 4)) for suffix in ("", "_rot")], strict=True
    ):
        before, values = pairs(run_case, vector, position), pairs(run_case, f"{vector}{suffix}", position)
        hands = np.array(tip["x"]) + 1j * np.array(tip["y"]) - centres
        np.testing.assert_allclose(hands, values / abs(before).max(), atol=1e-5)
        for i, value in enumerate(values):
            p = next(points)
            assert f"pair {i} {'after' if suffix else 'before'} " in p.hover_text and p.hover_text.startswith(
                f"{vector} of "
            )
            assert all(
                contains_number(p.hover_text, number)
                for number in (value.real, value.imag, position * speeds(run_case)[i])
            )
