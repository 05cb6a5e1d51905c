from dataclasses import replace

import numpy as np
from numpy.testing import assert_allclose

from explorer.analysis.intervention_effects import comparison_rounding_threshold, largest_score_change, pattern_change
from explorer.analysis.next_token import surprisal
from explorer.analysis.run_difference import next_token_probabilities, probability_moved
from explorer.explain.notation import format_number
from explorer.interventions import parse_interventions
from explorer.state.selection import Selection
from explorer.tracing.capture import capture
from explorer.tracing.comparison import Comparison
from explorer.views import positions, run_difference_figures
from explorer.views.style import label
from tests.sample_models import capture_edited_style, tokenizer
from tests.subtest_loops import each_style, subtest_each

with_unchanged = Comparison.with_unchanged


@each_style
def test_heatmap_shows_every_weight_change(style):
    edited_trace = capture_edited_style(style)
    heatmap = run_difference_figures.pattern_change_map(with_unchanged(edited_trace), 1, 2).data[0]
    drawn_values = np.tri(12, dtype=bool)
    assert_allclose(heatmap.z[drawn_values], pattern_change(with_unchanged(edited_trace), 1, 2)[drawn_values])
    assert np.isnan(heatmap.z[~drawn_values]).all()
    assert (heatmap.zmin, heatmap.zmax) == (-1, 1)


@each_style
def test_chosen_cell_is_framed(style):
    edited_trace = capture_edited_style(style)
    (frame,) = run_difference_figures.pattern_change_map(
        with_unchanged(edited_trace), 1, 2, query=7, key=3
    ).layout.shapes
    assert (frame.x0, frame.x1, frame.y0, frame.y1) == (2.5, 3.5, 6.5, 7.5)
    assert not run_difference_figures.pattern_change_map(with_unchanged(edited_trace), 1, 2).layout.shapes


@each_style
def test_each_token_has_one_bar_per_run(style):
    edited_trace = capture_edited_style(style)
    after, before = next_token_probabilities(with_unchanged(edited_trace), 7)
    figure = run_difference_figures.next_token_comparison(with_unchanged(edited_trace), 7)
    token_ids = run_difference_figures.top_tokens_of_either_run(after, before)
    assert [bars.name for bars in figure.data] == ["unchanged", "changed"]
    assert_allclose(figure.data[0].x, before[token_ids])
    assert_allclose(figure.data[1].x, after[token_ids])
    names = [label(edited_trace.vocabulary[i], max_chars=12) for i in token_ids]
    assert list(figure.layout.yaxis.ticktext) == names
    assert (
        f"{format_number(100 * probability_moved(with_unchanged(edited_trace), 7))}% moved between tokens"
        in figure.layout.xaxis.title.text
    )


@each_style
def test_top_tokens_are_likeliest_in_either_run(style):
    edited_trace = capture_edited_style(style)
    after, before = next_token_probabilities(with_unchanged(edited_trace), 11)
    top = run_difference_figures.top_tokens_of_either_run(after, before)
    assert {int(before.argmax()), int(after.argmax())} <= set(top)
    others = np.setdiff1d(np.arange(len(before)), top)
    either = np.maximum(before, after)
    assert either[others].max() <= either[top].min()
    assert (np.diff(either[top]) <= 0).all()


@each_style
def test_summary_describes_effect_in_numbers(style):
    edited_trace = capture_edited_style(style)
    summary = run_difference_figures.intervention_summary(
        with_unchanged(edited_trace), Selection(layer=1, head=2, query=7)
    )
    for edit in edited_trace.edits:
        assert edit.describe(edited_trace.config) in summary
    largest = format_number(largest_score_change(with_unchanged(edited_trace), 1, 2))
    assert f"scores of layer 1 head 2 change by at most {largest}," in summary
    for run, words in ((edited_trace, " bits a token"), (edited_trace.baseline, " unchanged")):
        assert format_number(np.nanmean(surprisal(run))) + words in summary


@each_style
def test_single_token_summary_has_no_surprisal(capture_edited_trace, style):
    assert "surprisal" not in run_difference_figures.intervention_summary(
        with_unchanged(capture_edited_trace(style, 1)), Selection()
    )


def edited_run(lms, trace, text):
    changed = capture(lms["rope"], trace.token_ids, parse_interventions(text), tokenizer=tokenizer())
    return replace(changed, baseline=trace)


@subtest_each("amount", [1, 100, 4096])
def test_differences_from_rounding_are_named(lms, capture_trace, amount):
    """With all positions shifted, RoPE gives the same scores: all differences are rounding."""
    trace = edited_run(lms, capture_trace("rope", 32), f"rope.angles*shift*{amount}")
    assert 0 < probability_moved(with_unchanged(trace), 31) < comparison_rounding_threshold(with_unchanged(trace))
    summary = run_difference_figures.intervention_summary(with_unchanged(trace), Selection(layer=1, head=2, query=31))
    assert summary.count("less than float32 can tell") == 3 and "at most" not in summary
    title = run_difference_figures.next_token_comparison(with_unchanged(trace), 31).layout.xaxis.title.text
    least = format_number(100 * comparison_rounding_threshold(with_unchanged(trace)))
    assert title == f"probability; less than float32 can tell ({least}%) moved between tokens"


def test_differences_above_rounding_have_numbers(lms, rope_trace):
    trace = edited_run(lms, rope_trace, "blocks.0.attn.q*scale*1.01")
    assert (
        comparison_rounding_threshold(with_unchanged(trace))
        < np.abs(pattern_change(with_unchanged(trace), 0, 2)).max()
        < 0.01
    )
    assert "can tell" not in run_difference_figures.intervention_summary(
        with_unchanged(trace), Selection(layer=0, head=2, query=7)
    )
    assert not run_difference_figures.pattern_change_map(with_unchanged(trace), 0, 2).layout.annotations


def test_changed_angles_have_a_larger_rounding_threshold(lms, rope_trace):
    shifted, ablated = (
        edited_run(lms, rope_trace, text) for text in ("rope.angles*shift*4096", "blocks.0.attn.z.1*zero")
    )
    assert (
        comparison_rounding_threshold(with_unchanged(ablated))
        < 1e-4
        < 10 * comparison_rounding_threshold(with_unchanged(ablated))
        < comparison_rounding_threshold(with_unchanged(shifted))
    )


@subtest_each(
    "text, why",
    [
        ("blocks.1.attn.z.2*zero", "the head looks where it did; what it fetches there is changed"),
        ("blocks.1.attn.z.1*zero", "the change comes after these weights"),
        ("logits*scale*2", "the change comes after these weights"),
        ("blocks.*.attn.pattern@30-*drop*20", "no weight changes by as much as float32 can tell"),
        ("rope.angles*shift*7", "a shift of all of them leaves as it is"),
        ("rope.angles*base*10000", "no weight changes by as much as float32 can tell"),
    ],
)
def test_figure_without_change_gives_reason(lms, rope_trace, text, why):
    trace = edited_run(lms, rope_trace, text)
    fig = run_difference_figures.pattern_change_map(with_unchanged(trace), 1, 2)
    (annotation,) = fig.layout.annotations
    assert why in annotation.text.replace("<br>", " ") and why in fig.layout.meta["alt"]


def test_single_token_figure_gives_reason(lms, capture_trace):
    runs = with_unchanged(edited_run(lms, capture_trace("rope", 1), "rope.angles*zero"))
    (annotation,) = run_difference_figures.pattern_change_map(runs, 1, 2).layout.annotations
    assert "nothing but itself" in annotation.text.replace("<br>", " ")


@subtest_each(
    "text, words",
    [
        ("rope.angles*shift*5", "angle(position, pair) = (position + 5) · θ^(−2·pair/d), θ = 10000,"),
        ("rope.angles*base*500", "angle(position, pair) = position · θ^(−2·pair/d), θ = 500,"),
        ("rope.angles*base*2000000", "θ = 2000000, d = 8; pair i"),
        ("rope.angles*zero", "θ = 10000, d = 8, then rotation off; pair i"),
    ],
)
def test_rope_formula_includes_interventions(lms, rope_trace, text, words):
    trace = edited_run(lms, rope_trace, text)
    rope_formula = positions.VIEW.formula(trace, Selection(layer=1, head=2, query=7))
    assert words in rope_formula
    assert (
        run_difference_figures.intervention_summary(with_unchanged(trace), Selection(layer=1, head=2, query=7))
        in rope_formula
    )
