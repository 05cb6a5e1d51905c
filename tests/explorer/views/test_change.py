from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from explorer.analysis.change import next_token_change, pattern_change, score_change
from explorer.analysis.next_token import surprisal
from explorer.capture import capture
from explorer.edits import parse_edits
from explorer.selection import Selection
from explorer.style import label, number
from explorer.views import change, positions


@pytest.fixture
def edited_trace(edited_trace_of, style):
    return edited_trace_of(style)


def test_the_picture_has_the_change_of_every_weight_on_a_scale_around_zero(edited_trace):
    heatmap = change.patterns(edited_trace, 1, 2).data[0]
    seen = np.tri(12, dtype=bool)
    assert_allclose(heatmap.z[seen], pattern_change(edited_trace, 1, 2)[seen])
    assert np.isnan(heatmap.z[~seen]).all()
    assert (heatmap.zmin, heatmap.zmax) == (-1, 1)


def test_the_chosen_cell_is_framed(edited_trace):
    (frame,) = change.patterns(edited_trace, 1, 2, query=7, key=3).layout.shapes
    assert (frame.x0, frame.x1, frame.y0, frame.y1) == (2.5, 3.5, 6.5, 7.5)
    assert not change.patterns(edited_trace, 1, 2).layout.shapes


def test_each_token_has_a_bar_for_each_run(edited_trace):
    expected = next_token_change(edited_trace, 7)
    drawn = change.next_tokens(edited_trace, 7)
    shown = expected.top(change.BARS)
    assert [bars.name for bars in drawn.data] == ["unchanged", "changed"]
    assert_allclose(drawn.data[0].x, expected.before[shown])
    assert_allclose(drawn.data[1].x, expected.after[shown])
    names = [label(edited_trace.vocabulary[i], longest=12) for i in shown]
    assert list(drawn.layout.yaxis.ticktext) == names
    assert f"{number(100 * expected.moved)}% of it moved" in drawn.layout.xaxis.title.text


def test_the_effect_is_told_in_words_with_its_numbers(edited_trace):
    told = change.effect(edited_trace, Selection(layer=1, head=2, query=7))
    for edit in edited_trace.edits:
        assert edit.words(edited_trace.config) in told
    assert f"scores of layer 1 head 2 change by at most {number(score_change(edited_trace, 1, 2))}," in told
    for run, words in ((edited_trace, " bits a token"), (edited_trace.baseline, " unchanged")):
        assert number(np.nanmean(surprisal(run))) + words in told


def test_of_a_single_token_no_surprisal_is_told(edited_trace_of, style):
    assert "surprisal" not in change.effect(edited_trace_of(style, 1), Selection())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("rope.angles*shift*5", "angle(position, pair) = (position + 5) · θ^(−2·pair/d), θ = 10000,"),
        ("rope.angles*base*500", "angle(position, pair) = position · θ^(−2·pair/d), θ = 500,"),
        ("rope.angles*base*2000000", "θ = 2000000, d = 8; pair i"),
        ("rope.angles*zero", "θ = 10000, d = 8, then rotation off; pair i"),
    ],
)
def test_the_formula_of_rope_is_that_of_the_changed_run(lms, rope_trace, text, words):
    changed = replace(capture(lms["rope"], rope_trace.token_ids, parse_edits(text)), baseline=rope_trace)
    told = positions.VIEW.formula(changed, Selection(layer=1, head=2, query=7))
    assert words in told
    assert change.effect(changed, Selection(layer=1, head=2, query=7)) in told
