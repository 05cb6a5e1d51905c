import numpy as np
import pytest

from explorer.views.rope_detail import by_distance, by_pair, wavelengths


def test_the_bars_add_up_to_the_score_and_say_so(rope_trace):
    drawn = by_pair(rope_trace, 1, 2, 9, 4)
    assert np.sum(drawn.data[0].y) == pytest.approx(rope_trace["blocks.1.attn.scores"][2, 9, 4], abs=1e-5)
    assert "off by" in drawn.layout.yaxis.title.text


def test_the_distance_in_the_run_is_marked_on_the_curve(rope_trace):
    curve, mark = by_distance(rope_trace, 0, 1, 9, 4).data
    assert list(mark.x) == [5]
    assert mark.y[0] == curve.y[5] == pytest.approx(rope_trace["blocks.0.attn.scores"][1, 9, 4], abs=1e-5)
    assert len(curve.x) == rope_trace.config.context_length


def test_a_pair_that_turns_a_radian_a_position_comes_round_after_two_pi(rope_trace):
    assert wavelengths(rope_trace).data[0].y[0] == pytest.approx(2 * np.pi, rel=1e-5)


def test_a_single_token_is_said_to_show_no_speed(trace_of):
    assert "type two" in wavelengths(trace_of("rope", 1)).layout.meta["alt"]
