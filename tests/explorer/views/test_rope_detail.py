import numpy as np
import pytest

from explorer.explain.notation import format_number
from explorer.interventions import parse_interventions
from explorer.tracing.capture import capture
from explorer.views.positions.rope import score_by_distance_plot, score_by_pair_bars, wavelength_plot
from tests.subtest_loops import subtest_each


def test_pair_bars_add_up_to_score(rope_trace):
    figure = score_by_pair_bars(rope_trace, 1, 2, 9, 4)
    assert np.sum(figure.data[0].y) == pytest.approx(rope_trace["blocks.1.attn.scores"][2, 9, 4], abs=1e-5)
    assert figure.layout.yaxis.title.text == "part of the score"
    (note,) = figure.layout.annotations
    assert note.text == f"{len(figure.data[0].y)} parts sum to {format_number(np.sum(figure.data[0].y))}, the score."


def test_actual_distance_is_marked_on_curve(rope_trace):
    curve, mark = score_by_distance_plot(rope_trace, 0, 1, 9, 4).data
    assert list(mark.x) == [5]
    assert mark.y[0] == curve.y[5] == pytest.approx(rope_trace["blocks.0.attn.scores"][1, 9, 4], abs=1e-5)
    assert len(curve.x) == rope_trace.config.context_length


def test_first_pair_has_wavelength_two_pi(rope_trace):
    assert wavelength_plot(rope_trace).data[0].y[0] == pytest.approx(2 * np.pi, rel=1e-5)


def test_single_token_alt_text_asks_for_two(capture_trace):
    assert "type two" in wavelength_plot(capture_trace("rope", 1)).layout.meta["alt"]


def test_unrotated_pair_has_no_bar(lms, rope_trace):
    edits = parse_interventions("rope.angles.1*zero")
    bars = wavelength_plot(capture(lms["rope"], rope_trace.token_ids, edits)).data[0]
    assert np.isnan(bars.y[1]) and np.isfinite(np.delete(bars.y, 1)).all()


@subtest_each("text", ["rope.angles*shift*500", "rope.angles*base*500", "rope.angles*zero"])
def test_curve_and_bars_follow_changed_angles(lms, rope_trace, text):
    run = capture(lms["rope"], rope_trace.token_ids, parse_interventions(text))
    score = pytest.approx(run["blocks.1.attn.scores"][2, 9, 4], abs=1e-4)
    assert score_by_distance_plot(run, 1, 2, 9, 4).data[1].y[0] == score
    assert np.sum(score_by_pair_bars(run, 1, 2, 9, 4).data[0].y) == score
