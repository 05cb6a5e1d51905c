import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from explorer.analysis.heads import HEAD_SCORES, head_scores
from explorer.style import SELECTED, number
from explorer.views.attention_detail import FAINTEST, MOST_LINES, MOST_STAGES, dimensions, head_map, ladder, lines


@pytest.mark.parametrize("name", HEAD_SCORES)
def test_the_map_has_every_heads_score_and_frames_the_chosen(trace_of, style, name):
    trace = trace_of(style, 32)
    drawn = head_map(trace, name, False, layer=1, head=2)
    assert_allclose(np.asarray(drawn.data[0].z, dtype=float), head_scores(trace, name))
    (frame,) = drawn.layout.shapes
    assert (frame.x0, frame.x1, frame.y0, frame.y1) == (1.5, 2.5, 0.5, 1.5)


def test_where_no_token_repeats_the_map_says_so(trace_of):
    drawn = head_map(trace_of("rope", 2), "induction", False, 0, 0)
    assert "no token of this prompt occurs twice" in drawn.layout.annotations[0].text
    assert "no token of this prompt occurs twice" in drawn.layout.meta["alt"]


def test_there_is_a_line_for_every_weight_that_is_not_faint(trace):
    weights = trace["blocks.1.attn.pattern"][2]
    strokes = [t for t in lines(trace, 1, 2, query=7).data if t.mode == "lines"]
    ends = {(int(q), int(k)) for t in strokes for q, k in np.reshape(t.y, (-1, 3))[:, :2]}
    assert ends == set(zip(*np.nonzero(weights >= FAINTEST), strict=True))
    chosen = {(int(q), int(k)) for t in strokes if t.line.color == SELECTED for q, k in np.reshape(t.y, (-1, 3))[:, :2]}
    assert chosen == {pair for pair in ends if pair[0] == 7}
    for stroke in strokes:
        for q, k in np.reshape(stroke.y, (-1, 3))[:, :2].astype(int):
            assert stroke.opacity <= weights[q, k] + 1e-6 < stroke.opacity + 0.17


def test_of_a_long_run_the_tokens_around_the_query_are_joined(trace_of, monkeypatch):
    monkeypatch.setattr("explorer.views.attention_detail.MOST_LINES", 8)
    trace = trace_of("rope", 32)
    for query, shown in ((0, range(0, 8)), (20, range(15, 23)), (31, range(24, 32))):
        ends = lines(trace, 0, 0, query).data[-1]
        assert list(ends.customdata) == list(shown) and query in shown
    assert MOST_LINES > 8


def test_the_stages_are_written_out_around_the_chosen_key(trace_of, style):
    trace = trace_of(style, 32)
    query, key = 20, 9
    drawn = ladder(trace, 1, 0, query, key).data[0]
    shown = list(drawn.x)
    assert len(shown) == MOST_STAGES
    column = shown.index(key)
    text = [row[column] for row in drawn.text]
    score = trace["blocks.1.attn.scores"][0, query, key]
    assert text[1] == text[2] == number(score)
    assert text[3] == number(trace["blocks.1.attn.pattern"][0, query, key])


def test_what_the_mask_hides_is_minus_infinity(trace):
    drawn = ladder(trace, 0, 1, query=3, key=3).data[0]
    hidden = [cell == "−∞" for cell in drawn.text[2]]
    assert hidden == [key > 3 for key in drawn.x]
    assert all(float(cell) == 0 for cell, h in zip(drawn.text[3], hidden, strict=True) if h)


def test_the_bars_of_the_dimensions_add_up_to_the_score(trace):
    bars = dimensions(trace, 1, 1, 8, 3).data[0]
    assert_array_equal(bars.x, np.arange(trace.config.d_head))
    assert np.sum(bars.y) == pytest.approx(trace["blocks.1.attn.scores"][1, 8, 3], abs=1e-5)
