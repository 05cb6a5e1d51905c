import re
from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from explorer.analysis.intervention_effects import ablation_effects, attention_shift, log2_probability
from explorer.analysis.next_token import next_token_ranking, ranking_without_interventions, surprisal, token_rank
from explorer.analysis.residual import residual_stages
from explorer.analysis.run_difference import relative_stream_distance
from explorer.explain.notation import format_number, format_percent
from explorer.interventions import make_intervention, parse_interventions
from explorer.state.selection import Selection
from explorer.tracing.capture import capture
from explorer.tracing.comparison import Comparison
from explorer.views import experiments, overview, prediction
from explorer.views.experiments.effects import attention_shift_map, head_ablation_map, sublayer_ablation_bars
from explorer.views.run_difference_figures import residual_distance_map, surprisal_difference_bars
from explorer.web.browser_api.open_view import OpenView
from tests.sample_models import capture_edited_style, tokenizer
from tests.subtest_loops import each_style

with_unchanged = Comparison.with_unchanged


@each_style
def test_map_shows_every_ablation_effect(trace):
    (choice,) = experiments.VIEW.fields
    for operation, name in {"zero": "to 0", "mean": "to its mean"}.items():
        ablations = ablation_effects(trace, 9, 33, operation=operation)
        fig = head_ablation_map(trace, 9, 33, layer=1, head=2, operation=operation)
        heatmap = fig.data[0]
        assert choice.values[operation] == name and f"({name})" in fig.layout.meta["alt"]
        assert_allclose(heatmap.z, ablations.heads)
        *_others, second, largest = np.sort(np.abs(ablations.heads), axis=None)
        colour_end = second if second < largest / 2 else largest  # one head does not take all colour from the others
        assert heatmap.zmax == -heatmap.zmin == colour_end
        is_clipped = "(colours end at " in heatmap.colorbar.title.text
        assert is_clipped == (colour_end < largest)
        assert_allclose(np.log2(heatmap.customdata) - ablations.before, ablations.heads, atol=1e-9)
        assert (fig.layout.shapes[0].x0, fig.layout.shapes[0].y0) == (1.5, 0.5)


@each_style
def test_the_sentence_names_the_head_whose_ablation_changes_most_and_what_its_mean_does(lms, trace, style):
    selection = Selection(query=9).clamp_to_trace(trace)
    token_id = int(ranking_without_interventions(trace, 9)[0])
    effects = ablation_effects(trace, 9, token_id)
    layer, head = np.unravel_index(np.abs(effects.heads).argmax(), effects.heads.shape)
    after = format_percent(2 ** (effects.before + effects.heads[layer, head]))
    words = experiments.VIEW.sentence(trace, selection)
    mean = capture(lms[style], trace.token_ids, parse_interventions(f"blocks.{layer}.attn.z.{head}*mean"))
    mean_text = f" → {after}. With its mean instead: {format_percent(2 ** log2_probability(mean, 9, token_id))}. "
    assert words.startswith(f"Without layer {layer} head {head}, ") and mean_text in words


def test_ablated_heads_are_marked(rope_trace):
    edits = parse_interventions("blocks.1.attn.z.2*zero~blocks.0.attn.z.1*scale*2")
    (mark,) = head_ablation_map(rope_trace, 9, 33, interventions=edits).layout.shapes
    assert ((mark.x0 + mark.x1) / 2, (mark.y0 + mark.y1) / 2) == (2, 1)


def test_rounding_is_not_drawn_as_an_effect(lms, capture_trace):
    """With shifted positions, a model with RoPE computes the same values up to rounding."""
    trace = capture_trace("rope", 32)
    shift = parse_interventions("rope.angles*shift*100")
    changed = replace(capture(lms["rope"], trace.token_ids, shift, tokenizer=tokenizer()), baseline=trace)
    runs = with_unchanged(changed)
    stream_change_map, elsewhere, bits = (
        residual_distance_map(runs, 3),
        attention_shift_map(runs),
        surprisal_difference_bars(runs, 3),
    )
    for fig in (stream_change_map, elsewhere, bits):
        (annotation,) = fig.layout.annotations
        assert "can tell" in annotation.text.replace("<br>", " ") and "can tell" in fig.layout.meta["alt"]
    assert stream_change_map.data[0].zmax == elsewhere.data[0].zmax == 1 and stream_change_map.data[0].z.max() > 0
    assert tuple(bits.layout.yaxis.range) == (-1, 1) and np.nanmax(np.abs(bits.data[0].y)) > 0
    view = OpenView(
        experiments.VIEW, changed, Selection(query=31).clamp_to_trace(changed), comparison=with_unchanged(changed)
    )
    assert view.formula.count("less than float32 can tell") == 2


def test_map_without_effects_is_pale(lms):
    """The model's heads write nothing."""
    lm = deepcopy(lms["rope"])
    for block in lm.blocks:
        block.attn.o_proj.weight.zero_()
    fig = head_ablation_map(capture(lm, [1, 2, 3]), 2, 5)
    assert (fig.data[0].zmin, fig.data[0].zmax) == (-1, 1)
    assert "can tell" in fig.layout.annotations[0].text.replace("<br>", " ")


@each_style
def test_sublayer_bars_have_effects_and_layers(trace):
    (bars,) = sublayer_ablation_bars(trace, 9, 33).data
    assert_allclose(bars.y, ablation_effects(trace, 9, 33).sublayers.ravel())
    assert list(bars.customdata) == [0, 0, 1, 1]


@each_style
def test_click_ablates_clicked_component(lms, style, trace):
    """The ablated run has the log-probability that the figure shows, and other interventions stay."""
    figures = [
        draw(trace, 9, 33, operation=operation)
        for draw in (head_ablation_map, sublayer_ablation_bars)
        for operation in ("zero", "mean")
    ]
    for fig in figures:
        ((plot_trace,), layout), ablations = fig.traces_and_layout, ablation_effects(trace, 9, 33)
        changes, values = layout["meta"]["changes"], np.asarray(plot_trace["z" if "z" in plot_trace else "y"])
        assert (changes["of"], changes["adds"]) == ("edits", True)
        assert np.shape(changes["texts"]) == values.shape
        for cell in (np.unravel_index(1, values.shape), np.unravel_index(values.size - 1, values.shape)):
            without = capture(lms[style], trace.token_ids, parse_interventions(str(np.array(changes["texts"])[cell])))
            assert log2_probability(without, 9, 33) - ablations.before == pytest.approx(values[cell], abs=1e-4)


@each_style
def test_change_maps_equal_computed_changes(style):
    edited_trace = capture_edited_style(style)
    runs = with_unchanged(edited_trace)
    assert_allclose(residual_distance_map(runs, 3).data[0].z, relative_stream_distance(runs))
    assert list(residual_distance_map(runs, 3).data[0].y) == [stage.name for stage in residual_stages(edited_trace)]
    assert_allclose(attention_shift_map(runs).data[0].z, attention_shift(runs))


@each_style
def test_surprisal_bars_give_values_before_and_after(style):
    edited_trace = capture_edited_style(style)
    figure = surprisal_difference_bars(with_unchanged(edited_trace), 3)
    (bars,) = figure.data
    before, after = surprisal(edited_trace.baseline), surprisal(edited_trace)
    assert_allclose(bars.y, after - before)
    means = " → ".join(format_number(np.nanmean(bits)) for bits in (before, after))
    assert figure.layout.yaxis.title.text.endswith(f"mean {means}")
    for i in range(1, 12):
        assert bars.text[i].endswith(
            f": {format_number(after[i])} bits (changed), {format_number(before[i])} bits (unchanged)"
        )


@each_style
def test_ablation_figures_use_baseline(trace, style):
    edited_trace = capture_edited_style(style)
    selection = Selection(layer=1, head=2, query=9)
    panels = {panel.name: panel for panel in experiments.VIEW.panels}
    for name in ("heads", "sublayers"):
        changed, unchanged = (panels[name].draw(run, selection) for run in (edited_trace, trace))
        assert changed.with_traces_and_layout(changed.traces_and_layout[0], unchanged.traces_and_layout[1]) == unchanged
    (panel, *_others), selection = experiments.VIEW.panels, Selection().clamp_to_trace(edited_trace)
    assert panel.heading(edited_trace, selection) == "Each head ablated, unchanged model"
    assert panel.heading(edited_trace.baseline, selection).startswith("Each head ablated: log₂ p of “")


@each_style
def test_interventions_keep_target_token(lms, trace, style, tiny_tokenizer):
    selection = Selection(query=9, target=1)
    token_id = experiments.target_token(trace, selection)
    reverse = [make_intervention("logits", "scale", -1.0)]  # now it is the least likely
    changed = replace(capture(lms[style], trace.token_ids, reverse, tokenizer=tiny_tokenizer), baseline=trace)
    assert next_token_ranking(changed, 9)[0] != token_id == next_token_ranking(trace, 9)[0]
    assert experiments.target_token(changed, selection) == token_id
    for view in (experiments, prediction, overview):
        before, after = (
            {choice.field: choice.options for choice in OpenView(view.VIEW, run, selection).choices}["target"]
            for run in (trace, changed)
        )
        now = {rank: text.partition(" (now ") for rank, text in after}
        assert before == [(rank, text) for rank, (text, _, _) in now.items()]
        assert now[1][2] == f"{token_rank(changed, 9, token_id):,}.)"
    assert token_rank(changed, 9, token_id) > trace.config.vocab_size - 3
    for view in (prediction, overview):
        assert f"rank {token_rank(changed, 9, token_id):,}" in view.VIEW.formula(changed, selection)


@each_style
def test_model_map_lists_top_tokens_by_baseline_rank(style):
    edited_trace = capture_edited_style(style)
    parts = overview.draw_model_map(edited_trace, Selection(query=9)).parts
    ranks = [part.selects["target"] for part in parts if part.kind == "next_token"]
    ids = [int(ranking_without_interventions(edited_trace, 9)[rank - 1]) for rank in ranks]
    assert set(next_token_ranking(edited_trace, 9)[:5].tolist()) <= set(ids)


@each_style
def test_formula_gives_change_of_probability(lms, trace, style):
    selection = Selection(layer=1, head=2, query=9, target=3)
    token_id = experiments.target_token(trace, selection)
    ablated = capture(lms[style], trace.token_ids, parse_interventions("blocks.1.attn.z.2*scale*0"))
    before, after = (log2_probability(run, 9, token_id) for run in (trace, ablated))
    for run in (trace, replace(ablated, baseline=trace)):
        numbers = re.search(
            r": (\S+) → (\S+), log₂ (\S+) = (\S+) bits", experiments.VIEW.formula(run, selection)
        ).groups()
        numbers = [float(text.replace("−", "-")) for text in numbers]
        assert numbers == pytest.approx(
            [2**before, 2**after, 2 ** (after - before), after - before], rel=0.01, abs=1e-4
        )
    logits = [run["logits"][9] for run in (trace, ablated)]
    rival = ranking_without_interventions(trace, 9)[0]
    for contrast, values in (
        (0, [row[token_id] for row in logits]),
        (1, [row[token_id] - row[rival] for row in logits]),
    ):
        text = experiments.VIEW.formula(replace(ablated, baseline=trace), selection.replace(rival=contrast))
        numbers = re.search(r": (\S+) → (\S+), Δ (\S+)$", text, re.MULTILINE).groups()
        expected = [*values, values[1] - values[0]]
        assert [float(number.replace("−", "-")) for number in numbers] == pytest.approx(expected, rel=1e-3, abs=1e-4)
