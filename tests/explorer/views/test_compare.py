"""Figures of the tab Compare for two runs."""

import re
from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose

from explorer import make_intervention
from explorer.analysis.direct_logit_attribution import direct_logit_attribution
from explorer.analysis.next_token import next_token_distribution
from explorer.analysis.run_difference import head_distances, relative_stream_distance, surprisal_difference
from explorer.explain.notation import quote_token
from explorer.interventions import parse_interventions
from explorer.state.selection import Selection
from explorer.tracing.capture import capture
from explorer.tracing.comparison import Comparison
from explorer.views.compare import VIEW, comparison_sentence, describe_differences, head_attention_difference_map
from explorer.views.labels import format_heading, target_and_contrast
from explorer.views.run_difference_figures import (
    contribution_difference_bars,
    next_token_comparison,
    residual_distance_map,
    surprisal_difference_bars,
)
from explorer.views.style import SELECTED, label
from explorer.views.two_run_figures import NoDifferenceError, selection_in_other_run
from explorer.views.verification import Verification, worse_verification
from tests.sample_models import CORE, models, tokenizer
from tests.subtest_loops import subtest_each

TEXTS = "the fox asked the owl", "the fox and then the owl asked the owl"
SELECTION = Selection(query=4, layer=1, head=2)


@cache
def make_comparison(style: str, other: str = "") -> Comparison:
    runs = zip((style, other or style), TEXTS, strict=True)
    return Comparison.from_traces(
        *(capture(models()[name], tokenizer().encode(text), tokenizer=tokenizer()) for name, text in runs)
    )


@subtest_each("style", CORE)
def test_figures_show_computed_differences(style):
    comparison = make_comparison(style)
    assert_allclose(
        residual_distance_map(comparison, 4).traces_and_layout[0][0]["z"], relative_stream_distance(comparison)
    )
    heads = head_attention_difference_map(comparison, 1, 2).traces_and_layout[0][0]
    distances = head_distances(comparison)
    assert_allclose(heads["z"], distances)
    assert (heads["zmin"], heads["zmax"]) == (0, distances.max())  # so that small distances differ in colour
    layer, head = np.unravel_index(distances.argmax(), distances.shape)
    sentence = comparison_sentence(comparison, Selection(query=4))
    assert sentence.endswith(f"Layer {layer} head {head} differs most (Jensen-Shannon {distances.max():.2f} of 1).")
    assert_allclose(
        surprisal_difference_bars(comparison, 4).traces_and_layout[0][0]["y"], surprisal_difference(comparison)
    )


@subtest_each("style", CORE)
def test_component_bars_give_both_contributions(style):
    comparison = make_comparison(style)
    (bars,) = contribution_difference_bars(comparison, SELECTION).data
    for difference, text in zip(bars.y, bars.hovertext, strict=True):
        value_a, value_b = (
            float(value.replace("−", "-")) for value in re.search(r"(\S+) \(A\), (\S+) \(B\)<br>", text).groups()
        )
        assert value_a - value_b == pytest.approx(difference, abs=0.01)
    assert np.abs(bars.y).max() > 0.1
    (heading,) = (panel.heading for panel in VIEW.panels if panel.name == "parts")
    token = comparison.trace.vocabulary[comparison.trace.logits.top(1, 4)[0]]
    text = format_heading(heading, comparison.trace, SELECTION)
    assert text == f"What each part adds to the logit of {quote_token(token)}: A − B"
    assert not residual_distance_map(comparison, 4).layout.annotations


@subtest_each("style", CORE)
def test_bars_are_named_after_their_run(style):
    comparison = make_comparison(style)
    figure = next_token_comparison(comparison, 4)
    bars = {plot_trace["name"]: plot_trace for plot_trace in figure.traces_and_layout[0]}
    names = [name.strip("\u2068\u2069") for name in figure.traces_and_layout[1]["yaxis"]["ticktext"]]
    vocabulary = [label(text).strip("\u2068\u2069") for text in comparison.trace.vocabulary]
    ids = [vocabulary.index(name) for name in names if len(name) < 12]
    probabilities_a = next_token_distribution(comparison.trace, 4).plain
    probabilities_b = next_token_distribution(comparison.other, comparison.alignment.nearest_aligned(4)).plain
    indices = [i for i, name in enumerate(names) if len(name) < 12]
    assert_allclose(np.array(bars["A"]["x"])[indices], probabilities_a[ids], rtol=1e-5)
    assert_allclose(np.array(bars["B"]["x"])[indices], probabilities_b[ids], rtol=1e-5)
    assert len(indices) >= 4 and not np.allclose(probabilities_a[ids], probabilities_b[ids])


@subtest_each("style", CORE)
def test_contribution_differences_add_up(style):
    comparison = make_comparison(style)
    (bars,) = contribution_difference_bars(comparison, SELECTION).traces_and_layout[0]
    other_selection = selection_in_other_run(comparison, SELECTION)
    logits = [
        direct_logit_attribution(run, run_selection.query, *target_and_contrast(run, run_selection))
        for run, run_selection in ((comparison.trace, SELECTION), (comparison.other, other_selection))
    ]
    assert sum(bars["y"]) == pytest.approx(logits[0].logit - logits[1].logit, abs=1e-4)
    assert bars["y"][0] == pytest.approx(logits[0].token - logits[1].token, abs=1e-6)


def test_parts_that_a_patch_replaces_are_told():
    """B's stream after layer 0 is A's: what B adds up to there does not reach the logit."""
    ids = [tokenizer().encode(text)[:5] for text in TEXTS]
    trace = capture(models()["rope"], ids[0], tokenizer=tokenizer())
    patch = make_intervention("blocks.1.resid_pre", "patch", positions="4", source=trace)
    patched = capture(models()["rope"], ids[1], [patch], tokenizer=tokenizer())
    comparison = Comparison.from_traces(trace, patched)
    figure = contribution_difference_bars(comparison, SELECTION)
    (bars,) = figure.data
    replaced = [" (A), replaced by a change (B)<br>" in text for text in bars.hovertext]
    assert replaced == [True] * 3 + [False] * (len(replaced) - 3)
    note = figure.layout.annotations[0].text
    whole, *changes = note.split("<br>")  # in one line it was cut at the frame
    assert changes == ["parts replaced by a change (B): 3", "bar “changes”: what the changes put in"]
    assert whole.startswith("of the whole logit: ") and figure.layout.margin.t == 76
    assert [float(text.replace("−", "-")) for text in bars.text] == pytest.approx(bars.y, abs=0.006)
    assert figure.layout.yaxis.range[0] < min(bars.y) - 0.1 * np.ptp(bars.y)  # else a number is on the bar's name
    assert figure.layout.xaxis.ticktext[-1] == "changes"
    assert bars.marker.color[-1] == SELECTED != bars.marker.color[-2]  # as what is changed in the page
    (note,) = residual_distance_map(comparison, 4).layout.annotations  # whose row of layer 0 is before the change
    assert note.text == "A changed resid_pre shows one row later."


@subtest_each("factor", [0.5, 2.0])
def test_colour_bar_tells_where_colours_end(factor, monkeypatch):
    comparison = make_comparison("rope")
    largest = np.nanmax(relative_stream_distance(comparison))
    monkeypatch.setattr("explorer.views.run_difference_figures.MAX_RELATIVE_DISTANCE", factor * largest)
    (heatmap,) = residual_distance_map(comparison, 4).traces_and_layout[0]
    assert ("colours end at 1" in heatmap["colorbar"]["title"]["text"]) == (factor < 1)


def test_incomparable_runs_raise():
    with pytest.raises(NoDifferenceError, match="different widths"):
        residual_distance_map(make_comparison("rope", "grouped"), 4)
    with pytest.raises(NoDifferenceError, match="layers or heads"):
        head_attention_difference_map(make_comparison("rope", "grouped"), 0, 0)
    with pytest.raises(NoDifferenceError, match="different parts"):
        contribution_difference_bars(make_comparison("rope", "gpt"), SELECTION)


def test_runs_without_a_common_token_raise():
    lm, ids = models()["rope"], ([1, 2, 3], [7, 8])
    comparison = Comparison.from_traces(*(capture(lm, run_ids, tokenizer=tokenizer()) for run_ids in ids))
    with pytest.raises(NoDifferenceError, match="No token of B is aligned"):
        residual_distance_map(comparison, 1)
    with pytest.raises(NoDifferenceError, match="No token of B is aligned"):
        head_attention_difference_map(comparison, 0, 0)


def test_description_names_first_difference():
    lm, ids = models()["rope"], tokenizer().encode(TEXTS[0])
    plain = capture(lm, ids, tokenizer=tokenizer())
    changed = capture(lm, ids, parse_interventions("blocks.1.attn.z.2*zero"), tokenizer=tokenizer())
    text = describe_differences(Comparison.from_traces(changed, plain), SELECTION)
    assert "first differ at blocks.1.attn.z, at “t” (0) beside “t” (0)" in text and "KL(A‖B) = " in text
    assert "the same at all tokens" in describe_differences(Comparison.from_traces(plain, plain), SELECTION)


def test_every_panel_compares_two_runs():
    assert VIEW.is_comparison and all(panel.compared_run == "other" for panel in VIEW.panels)


def test_worse_verification_is_shown():
    fine, off, unchecked = (Verification(state, state) for state in ("recomputed", "off", "unchecked"))
    for worse, better in ((off, fine), (off, unchecked), (unchecked, fine)):
        assert worse_verification(worse, better).state == worse_verification(better, worse).state == worse.state
    assert worse_verification(fine, off).words == "A: recomputed; B: off"
    assert worse_verification(fine, fine) == fine
