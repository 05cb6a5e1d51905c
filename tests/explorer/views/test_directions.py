"""The directions view: figures and offered directions."""

import html
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from explorer.analysis.steering import embed_and_block_output_taps, prompt_lists_by_direction
from explorer.explain.derivation import ClickedPoint
from explorer.explain.notation import format_number, quote_token
from explorer.interventions import DirectionSpec, parse_interventions
from explorer.state.generation_settings import GenerationSettings
from explorer.state.selection import Selection
from explorer.tracing.capture import capture
from explorer.tracing.forward_hooks import continue_tokens
from explorer.views.directions import CONTINUATION_TOKENS, VIEW
from explorer.views.intervention_controls import available_controls
from explorer.views.selection import make_selection_dropdowns
from explorer.views.style import ATTENTION, SELECTED, label
from tests import layouts
from tests.rendered_figures import contains_number, render_panel
from tests.subtest_loops import each_style, subtest_each

PROJECTION, EXAMPLES = VIEW.panels


@each_style
def test_cells_are_cosines_with_direction(trace):
    selection = Selection().replace(direction="neuron.1.7", query=9, layer=1)
    column = trace.weights["blocks.1.ffn.down_proj.weight"][:, 7].astype(float)
    u = layouts.residual_contributions(trace, 1, "ffn", column, 9)
    figure = render_panel(PROJECTION, PROJECTION.draw(trace, selection))
    last = "ffn_norm" if trace.config.norm_placement == "post" else "resid_post"
    for p in figure.points():
        x = trace["embed" if p.y == 0 else f"blocks.{int(p.y) - 1}.{last}"][int(p.x)].astype(float)
        assert p.value == pytest.approx(x @ u / np.linalg.norm(x) / np.linalg.norm(u), abs=1e-5)
        assert contains_number(p.hover_text, p.value) and p.change == {"query": int(p.x), "layer": max(0, int(p.y) - 1)}


@pytest.mark.exhaustive
@each_style
def test_examples_are_separate_runs_sorted_by_effect(lms, trace, style, tiny_tokenizer):
    selection = Selection().replace(direction="neuron.1.7", query=9, target=3, rival=2, layer=1)
    order = np.argsort(-trace["logits"][9], kind="stable")
    token, rival = order[2], order[1]
    points = render_panel(EXAMPLES, EXAMPLES.draw(trace, selection)).points()
    expected, edit = [], parse_interventions("blocks.1.resid_post*add*neuron.1.7*0.3")
    for lists in prompt_lists_by_direction(trace).values():
        for text in lists.examples:
            ids = tiny_tokenizer.encode(text)[-trace.config.context_length :]
            after, before = (capture(lms[style], ids, edits)["logits"][-1].astype(float) for edits in (edit, ()))
            expected.append((after[token] - after[rival]) - (before[token] - before[rival]))
    assert_allclose([p.value for p in points], sorted(expected, reverse=True), atol=1e-4)
    assert all(contains_number(p.hover_text, p.value) for p in points)
    (title,) = [EXAMPLES.draw(trace, selection).layout.xaxis.title.text]
    assert f"{sum(value < 0 for value in expected)} of {len(expected)} go backwards" in title


@each_style
def test_projection_has_stream_rows_frame_and_scale(trace):
    selection = Selection().replace(direction="neuron.1.7", query=9, layer=1)
    figure = render_panel(PROJECTION, PROJECTION.draw(trace, selection))
    (heatmap,) = figure.parts
    assert heatmap["y"] == ["embedding", "after layer 0", "after layer 1"]
    largest = np.abs(np.array(heatmap["z"], float)).max()
    assert (-heatmap["zmin"], heatmap["zmax"]) == (pytest.approx(largest), pytest.approx(largest))
    (frame,) = figure.layout["shapes"]
    assert (frame["x0"], frame["x1"]) == (8.5, 9.5)
    projection = heatmap["z"][2][9]
    assert contains_number(VIEW.formula(trace, selection).split("= ")[-1].split(" at ")[0], projection)
    for p in figure.points():
        if p.x == 9:
            derivation = PROJECTION.inspect(trace, selection, ClickedPoint(x=int(p.x), y=int(p.y)))
            assert derivation.value == pytest.approx(p.value) and derivation.recomputed_value == pytest.approx(
                p.value, abs=1e-5
            )


@pytest.mark.exhaustive
@each_style
@subtest_each("rival", [0, 2])
def test_bars_belong_to_named_example(lms, trace, style, tiny_tokenizer, rival):
    """Without a contrast token, the bar is that of the most likely other token."""
    selection = Selection().replace(direction="neuron.1.7", query=9, target=1, rival=rival, layer=1)
    order = np.argsort(-trace["logits"][9], kind="stable")
    examples = {text: None for lists in prompt_lists_by_direction(trace).values() for text in lists.examples}
    edit = parse_interventions("blocks.1.resid_post*add*neuron.1.7*0.3")
    for text in examples:
        ids = tiny_tokenizer.encode(text)[-trace.config.context_length :]
        logits = [capture(lms[style], ids, edits)["logits"][-1].astype(float) for edits in ((), edit)]
        examples[text] = [row[order[0]] - row[order[1]] for row in logits], tiny_tokenizer.decode(ids)
    figure = render_panel(EXAMPLES, EXAMPLES.draw(trace, selection))
    names = figure.axis("y")["ticktext"]
    for p in figure.points():
        ((before, after),) = [
            leads
            for leads, decoded in examples.values()
            if html.unescape(p.hover_text).partition("\n")[0]
            == html.unescape(label(decoded, max_chars=80)).replace("·", " ")
        ]
        first, second, change = p.hover_text.partition("\n")[2].replace(" → ", ": ").split(": ")
        assert contains_number(first, before) and contains_number(second, after) and contains_number(change, p.value)
        assert p.value == pytest.approx(after - before, abs=1e-4)
        assert p.colour == (SELECTED if p.value < 0 else ATTENTION)
        shortest = html.unescape(names[int(p.y)].replace("<br>", " ")).rstrip("…")
        assert html.unescape(p.hover_text).startswith(shortest[:20])
        if p.item in (0, 5):
            derivation = EXAMPLES.inspect(trace, selection, ClickedPoint(x=0, y=p.item, item=p.item))
            assert derivation.value == pytest.approx(p.value, abs=1e-6)
            assert derivation.recomputed_value == pytest.approx(p.value, abs=1e-4)


@each_style
@subtest_each("direction", ["", "neuron.0.3", "means.0.5.6-7"])
def test_dropdown_contains_chosen_direction(trace, direction):
    (choice,) = make_selection_dropdowns(("direction",), trace, Selection().replace(direction=direction, query=9))
    values = [value for value, _words in choice.options]
    assert direction in values and len(set(values)) == len(values)
    assert [text for value, text in choice.options][:3] == ["happy, not sad", "she, not he", "asked, not said"]


@each_style
def test_sliders_use_chosen_direction(trace):
    first, second, _third = prompt_lists_by_direction(trace)
    for direction, recipe in (("", first), (second, second), ("neuron.0.3", "neuron.0.3")):
        push, remove = (
            what_if
            for what_if, _amount in available_controls(
                VIEW.intervention_controls, trace, Selection().replace(direction=direction)
            )
        )
        assert str(push.make_intervention(0.5)) == f"blocks.0.resid_post*add*{recipe}*0.5"
        assert str(remove.make_intervention(1)) == f"blocks.0.resid_post*remove*{recipe}"
        assert push.make_intervention(0.5).direction == DirectionSpec.parse(recipe)


@each_style
def test_continuations_with_and_without_interventions_are_shown(lms, trace, style, tiny_tokenizer):
    edits = parse_interventions("blocks.1.resid_post*add*unembed.17*5")
    changed = replace(capture(lms[style], trace.token_ids, edits, tokenizer=tiny_tokenizer), baseline=trace)
    selection = Selection().replace(query=9, direction="unembed.17")
    settings = GenerationSettings(seed=3, temperature=1.2)
    assert VIEW.continuation_text(trace, selection, settings) == ""
    lines = VIEW.continuation_text(changed, selection, settings).split("\n")
    assert lines[0].startswith("with the changes the text goes on") and lines[1].startswith("without, on the same")
    for line, edited in zip(lines, (edits, ()), strict=True):
        ids = continue_tokens(lms[style], trace.token_ids, edited, CONTINUATION_TOKENS, settings)
        assert line.partition(": ")[2] == quote_token(trace.join_tokens(ids))
    assert lines != VIEW.continuation_text(changed, selection, GenerationSettings(seed=4, temperature=1.2)).split("\n")


@each_style
def test_sentence_names_depth_of_largest_cosine(trace):
    selection = Selection().replace(query=7, direction="unembed.17", layer=1)
    u = trace.weights["lm_head.weight"][17].astype(np.float64)
    streams = [trace[name][7].astype(np.float64) for name in embed_and_block_output_taps(trace.config)]
    cosines = np.array([x @ u / np.linalg.norm(x) / np.linalg.norm(u) for x in streams])
    depth = int(np.abs(cosines).argmax())
    words = VIEW.sentence(trace, selection)
    assert f"furthest {'along' if cosines[depth] > 0 else 'against'} the direction " in words
    assert ("at the embedding (" if depth == 0 else f"after layer {depth - 1} (") in words
    assert f"(cosine {format_number(cosines[depth])})" in words
    bars = EXAMPLES.draw(trace, selection).traces_and_layout[0][0]["x"]
    assert f" in {sum(bars > 0)} of {len(bars)} prompts." in words
