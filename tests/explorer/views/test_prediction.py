from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from explorer.analysis import logit_lens as derived_logit_lens
from explorer.analysis.direct_logit_attribution import direct_logit_attribution
from explorer.analysis.logit_lens import (
    LENSES,
    lens_summaries,
    single_token_ranks,
    token_probabilities,
    unembed_vectors,
)
from explorer.analysis.next_token import next_token_distribution, ranking_without_interventions
from explorer.analysis.token_contributions import attention_rollout
from explorer.architecture.residual_stream import has_final_norm
from explorer.explain.notation import format_contribution, format_number, format_six_digits, quote_token
from explorer.interventions import make_intervention
from explorer.state.selection import Selection
from explorer.tracing.capture import capture
from explorer.views import prediction
from explorer.views.prediction.contributions import component_bars, head_contribution_map
from explorer.views.prediction.logit_lens import lens_map, lens_sentence, token_trajectory, visible_positions
from explorer.views.style import ATTENTION, EMBEDDING, FEED_FORWARD, NORM, RESIDUAL, SELECTED, label, position_labels
from tests import layouts
from tests.subtest_loops import each_style, subtest_each

QUERY, TOKEN, RIVAL = 9, 17, 230


@each_style
def test_sentence_names_depth_where_top_token_settles(trace):
    names = layouts.stage_names(trace.config)
    for query in range(len(trace)):
        first = lens_summaries(trace, visible_positions(trace, query)).top[:, query, 0].tolist()
        start = next(depth for depth in range(len(first)) if set(first[depth:]) == {first[-1]})
        text = lens_sentence(trace, Selection(query=query))
        layer, *sublayer = names[start].split()
        words = f"the {' '.join(sublayer)} of layer {layer} on." if len(sublayer) == 1 else "from layer "
        assert f"the likeliest is {quote_token(trace.vocabulary[first[-1]])}, " in text
        assert (words if start else "at every depth.") in text, names[start]
        assert ("after the final norm" in text) == has_final_norm(trace.config)


@each_style
@subtest_each("kind", LENSES)
def test_last_lens_row_is_prediction(trace, kind):
    heatmap = lens_map(trace, QUERY, TOKEN, kind).data[0]
    own = [next_token_distribution(trace, position) for position in range(len(trace))]
    size = trace.config.vocab_size
    expected, largest = {
        "probability": ([p.plain.max() for p in own], 1),
        "target": ([p.plain[TOKEN] for p in own], 1),
        "rank": ([np.log(size / p.rank(TOKEN)) for p in own], np.log(size)),
        "entropy": ([p.entropy for p in own], np.log2(size)),
    }[kind]
    assert_allclose(heatmap.z[-1], expected, atol=1e-4)
    assert (heatmap.zmin, heatmap.zmax) == (0, largest)
    assert list(heatmap.y) == layouts.stage_names(trace.config)
    assert list(heatmap.x) == list(range(len(trace)))


@each_style
@subtest_each("kind", ["probability", "rank"])
def test_lens_cells_show_top_token_and_details(trace, kind):
    heatmap = lens_map(trace, QUERY, TOKEN, kind).data[0]
    ranks = single_token_ranks(trace, range(len(trace)), TOKEN)
    summaries = lens_summaries(trace, range(len(trace)))
    for depth, column in ((0, 0), (2, 5), (-1, 11)):
        top, p = summaries.top[depth, column], summaries.probabilities[depth, column]
        assert heatmap.text[depth][column] == label(trace.vocabulary[top[0]], 110 // 12)
        hover = heatmap.hovertext[depth][column]
        assert hover.startswith(f"after {position_labels(trace.tokens)[column]}, ")
        assert f"2. {label(trace.vocabulary[top[1]])}  {p[1]:.3f}" in hover
        probability = format_number(token_probabilities(trace, range(len(trace)), TOKEN)[depth, column])
        assert hover.endswith(f"{probability}, rank {ranks[depth, column]}")


def test_rank_lens_has_a_colour_bar_of_ranks(rope_trace):
    bar = lens_map(rope_trace, QUERY, TOKEN, "rank").data[0].colorbar
    assert bar.ticktext == ("1", "10", "100")
    assert_allclose(bar.tickvals, np.log([300, 30, 3]))


@subtest_each("length", [1, 12, 28, 108])
def test_lens_labels_fit_their_columns(rope_trace, length):
    """Holds at every length: the lens has as many columns as fit."""
    values = {name: np.concatenate([value] * 9, axis=-2)[..., :length, :] for name, value in rope_trace.values.items()}
    long = replace(rope_trace, token_ids=(rope_trace.token_ids * 9)[:length], values=values)
    heatmap = lens_map(long, length - 1, TOKEN).data[0]
    summaries = lens_summaries(long, visible_positions(long, length - 1))
    assert heatmap.texttemplate == "%{text}"
    longest = max(len(text) - 2 for row in heatmap.text for text in row)  # without the two Unicode isolates
    assert longest * len(heatmap.x) <= 110 and 110 // len(heatmap.x) >= 6
    for texts, ids in zip(heatmap.text, summaries.top[..., 0], strict=True):
        assert list(texts) == [label(long.vocabulary[i], 110 // len(ids)) for i in ids]


@each_style
def test_trajectory_is_a_column_of_lens(trace):
    token, rival, uniform = token_trajectory(trace, QUERY, TOKEN, RIVAL).data
    assert token.cliponaxis is False and rival.cliponaxis is False  # the last point is whole at the edge
    assert_allclose(token.y, token_probabilities(trace, range(len(trace)), TOKEN)[:, QUERY], rtol=1e-4)
    assert_allclose(rival.y, token_probabilities(trace, range(len(trace)), RIVAL)[:, QUERY], rtol=1e-4)
    assert [line.name for line in (token, rival)] == [f"“{label(trace.vocabulary[i])}”" for i in (TOKEN, RIVAL)]
    assert [(plot_trace.line.color, plot_trace.line.dash) for plot_trace in (token, rival)] == [
        (SELECTED, "solid"),
        (RESIDUAL, "dash"),
    ]
    assert set(uniform.y) == {1 / 300}
    assert len(token_trajectory(trace, QUERY, TOKEN).data) == 2


def test_lens_and_trajectory_are_verified_once(rope_trace, monkeypatch):
    trace, worked_out = replace(rope_trace), []
    monkeypatch.setattr(
        derived_logit_lens, "unembed_vectors", lambda *args: worked_out.append(args) or unembed_vectors(*args)
    )
    marks = {
        panel.verify(trace, Selection(query=QUERY))
        for panel in prediction.VIEW.panels
        if panel.name in ("lens", "path")
    }
    assert len(marks) == len(worked_out) == 1
    prediction.VERIFY_LENS(trace, Selection(query=QUERY - 1))
    assert len(worked_out) == 2


@each_style
def test_component_bars_add_up_to_logit(trace):
    bars = component_bars(trace, QUERY, TOKEN).data[0]
    assert sum(bars.y) == pytest.approx(trace["logits"][QUERY, TOKEN], abs=1e-4)
    one_color = {"embed": EMBEDDING, "attn": ATTENTION, "ffn": FEED_FORWARD, "norm": NORM}
    config = trace.config
    expected = ["embed"] * (1 + (config.position in ("sinusoidal", "learned")))
    expected += ["attn", *["attn"] * config.bias, "ffn"] * 2
    expected += ["norm"] * (config.norm == "layernorm")
    assert list(bars.marker.color) == [one_color[part] for part in expected]


@each_style
def test_component_bars_add_up_to_logit_difference(trace):
    bars = component_bars(trace, QUERY, TOKEN, RIVAL).data[0]
    logits = trace["logits"][QUERY]
    assert sum(bars.y) == pytest.approx(logits[TOKEN] - logits[RIVAL], abs=1e-4)


def test_bar_click_selects_its_layer(rope_trace):
    bars = component_bars(rope_trace, QUERY, TOKEN, layer=1).data[0]
    assert bars.customdata == (1, 0, 0, 1, 1)


@each_style
def test_head_map_shows_contributions(trace):
    figure = head_contribution_map(trace, QUERY, TOKEN, RIVAL, layer=1, head=2)
    heatmap, (frame,) = figure.data[0], figure.layout.shapes
    assert_array_equal(heatmap.z, direct_logit_attribution(trace, QUERY, TOKEN, RIVAL).heads)
    assert heatmap.zmax == -heatmap.zmin == np.abs(heatmap.z).max()
    assert (frame.x0, frame.x1, frame.y0, frame.y1) == (1.5, 2.5, 0.5, 1.5)


@each_style
def test_equal_target_and_contrast_give_zeros(trace):
    assert not np.any(head_contribution_map(trace, QUERY, TOKEN, TOKEN).data[0].z)
    assert not np.any(component_bars(trace, QUERY, TOKEN, TOKEN).data[0].y)


@each_style
def test_actual_token_has_probability_and_rank(trace):
    bars, marks = prediction.actual_token_plot(trace, QUERY).data
    for i, actual in enumerate(trace.token_ids[1:]):
        own = next_token_distribution(trace, i)
        assert bars.y[i] == pytest.approx(own.plain[actual], abs=1e-5)
        assert marks.y[i] == own.rank(actual)
        assert f"1. {label(trace.vocabulary[own.top(1)[0]])}" in bars.text[i]
    assert bars.x == marks.x == tuple(position_labels(trace.tokens)[:-1])


@each_style
def test_last_position_has_no_actual_token(capture_trace, style):
    for trace in (capture_trace(style), capture_trace(style, 1)):
        (annotation,) = prediction.actual_token_plot(trace, len(trace) - 1).layout.annotations
        assert (annotation.text, annotation.x) == ("nothing follows yet", len(trace) - 1)
    assert "nothing follows" in prediction.actual_token_plot(trace).layout.meta["alt"]


@each_style
def test_rollout_equals_its_stated_assumption(trace):
    title = prediction.rollout_bars(trace, QUERY).layout.xaxis.title.text
    assert "half stays" in title and "half comes from where its heads look on average" in title
    patterns = trace.stack("blocks.*.attn.pattern").astype(float).mean(1)  # (L, T, T)
    expected = np.eye(len(trace))
    for pattern in patterns:
        expected = (np.eye(len(trace)) / 2 + pattern / 2) @ expected
    assert_allclose(attention_rollout(trace, QUERY), expected[QUERY], atol=1e-6)


@each_style
def test_rollout_bars_end_at_query(trace):
    (bars,) = prediction.rollout_bars(trace, QUERY, key=4).data
    assert_array_equal(bars.y, attention_rollout(trace, QUERY)[: QUERY + 1])
    assert list(bars.x) == position_labels(trace.tokens)[: QUERY + 1]
    assert [i for i, color in enumerate(bars.marker.color) if color == SELECTED] == [4]


@each_style
def test_target_and_contrast_have_chosen_ranks(trace):
    order = ranking_without_interventions(trace, QUERY)
    assert prediction.target_and_contrast(trace, Selection(query=QUERY, target=3)) == (order[2], None)
    assert prediction.target_and_contrast(trace, Selection(query=QUERY, target=1, rival=300)) == (order[0], order[299])


@each_style
def test_largest_component_is_named(trace):
    token_id = int(ranking_without_interventions(trace, QUERY)[0])
    figure = component_bars(trace, QUERY, token_id)
    (bars,) = figure.data
    values = np.asarray(bars.y)
    (note,) = figure.layout.annotations
    assert note.text.endswith(f", {format_contribution(values[np.abs(values).argmax()])}.")


@each_style
def test_formula_adds_up(trace):
    formula = prediction.VIEW.formula(trace, Selection(query=QUERY, target=2))
    token_id = ranking_without_interventions(trace, QUERY)[1]
    contributions = direct_logit_attribution(trace, QUERY, token_id)
    assert (
        f"= e^logit / Σ e^logits = {format_number(next_token_distribution(trace, QUERY).plain[token_id])}, rank 2"
        in formula
    )
    assert f"feed-forward {format_six_digits(contributions.feed_forward.sum())}" in formula
    assert (
        f"= {format_six_digits(contributions.total)}\ncaptured "
        f"{format_six_digits(contributions.logit)}, off by {format_number(contributions.error)}"
    ) in formula


@each_style
def test_formula_describes_norms_of_model(trace):
    formula, config = prediction.VIEW.formula(trace, Selection(query=QUERY)), trace.config
    assert ("post-norm" in formula) is (config.norm_placement == "post")
    assert ("√(mean x² + ε)" in formula) is (config.norm == "rmsnorm")
    assert ("β " in formula) is (config.norm == "layernorm")
    assert ("one table" in formula) is config.tie_embeddings


def test_formula_describes_a_removed_final_norm(lms, rope_trace):
    changed = capture(
        lms["rope"], rope_trace.token_ids, [make_intervention("final_norm", "norm", positions=5, by="none")]
    )
    formulas = [prediction.VIEW.formula(changed, Selection(query=query)) for query in (5, 6)]
    assert "made to divide nothing" in formulas[0] and "√(mean x²" not in formulas[0]
    assert "divided by the whole’s √(mean x² + ε) = " in formulas[1]


def test_formula_with_contrast_has_difference(rope_trace):
    formula = prediction.VIEW.formula(rope_trace, Selection(query=QUERY, target=1, rival=2))
    order, logits = ranking_without_interventions(rope_trace, QUERY), rope_trace["logits"][QUERY]
    assert f"captured {format_six_digits(logits[order[0]] - logits[order[1]])}, " in formula
    assert " less that of " in formula


def test_panels_draw_selection(rope_trace):
    panels = {panel.name: panel.draw for panel in prediction.VIEW.panels}
    selection = Selection().replace(layer=1, head=2, query=QUERY, key=4, target=2, rival=5, lens="target")
    token, rival = prediction.target_and_contrast(rope_trace, selection)
    assert panels["lens"](rope_trace, selection) == lens_map(rope_trace, QUERY, token, "target")
    assert panels["path"](rope_trace, selection) == token_trajectory(rope_trace, QUERY, token, rival)
    assert panels["rollout"](rope_trace, selection) == prediction.rollout_bars(rope_trace, QUERY, 4)
    assert panels["parts"](rope_trace, selection) == component_bars(rope_trace, QUERY, token, rival, 1)
    assert panels["heads"](rope_trace, selection) == head_contribution_map(rope_trace, QUERY, token, rival, 1, 2)
    assert panels["actual"](rope_trace, selection) == prediction.actual_token_plot(rope_trace, QUERY)
