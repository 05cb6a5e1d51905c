"""The tab of directions: what is drawn of one, and what is offered."""

import html
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from explorer.analysis.steering import lists_of
from explorer.explain.notation import quoted
from explorer.explain.point import Point
from explorer.state.interventions import Recipe, parse_edits
from explorer.state.selection import Selection
from explorer.state.settings import GenerationSettings
from explorer.tracing.capture import capture
from explorer.tracing.going_on import write
from explorer.views.choices import choices
from explorer.views.directions import VIEW, WRITTEN
from explorer.views.style import RESIDUAL, SELECTED, label
from explorer.views.what_if import offered
from tests import layouts
from tests.drawn import picture_of, tells

PROJECTION, EXAMPLES = VIEW.panels


def test_every_cell_is_the_cosine_with_the_direction(trace):
    selection = Selection(direction="neuron.1.7", query=9, layer=1)
    column = trace.weights["blocks.1.ffn.down_proj.weight"][:, 7].astype(float)
    u = layouts.added(trace, 1, "ffn", column, 9)
    picture = picture_of(PROJECTION, PROJECTION.draw(trace, selection))
    last = "ffn_norm" if trace.config.norm_placement == "post" else "resid_post"
    for p in picture.points():
        x = trace["embed" if p.y == 0 else f"blocks.{int(p.y) - 1}.{last}"][int(p.x)].astype(float)
        assert p.value == pytest.approx(x @ u / np.linalg.norm(x) / np.linalg.norm(u), abs=1e-5)
        assert tells(p.told, p.value) and p.change == {"query": int(p.x), "layer": max(0, int(p.y) - 1)}


@pytest.mark.exhaustive
def test_examples_are_sorted_and_each_is_a_run_of_its_own(lms, trace, style, tiny_tokenizer):
    selection = Selection(direction="neuron.1.7", query=9, target=3, rival=2, layer=1)
    order = np.argsort(-trace["logits"][9], kind="stable")
    token, rival = order[2], order[1]
    points = picture_of(EXAMPLES, EXAMPLES.draw(trace, selection)).points()
    expected, edit = [], parse_edits("blocks.1.resid_post*add*neuron.1.7*0.3")
    for lists in lists_of(trace).values():
        for text in lists.examples:
            ids = tiny_tokenizer.encode(text)[-trace.config.context_length :]
            after, before = (capture(lms[style], ids, edits)["logits"][-1].astype(float) for edits in (edit, ()))
            expected.append((after[token] - after[rival]) - (before[token] - before[rival]))
    assert_allclose([p.value for p in points], sorted(expected, reverse=True), atol=1e-4)
    assert all(tells(p.told, p.value) for p in points)
    (title,) = [EXAMPLES.draw(trace, selection).layout.xaxis.title.text]
    assert f"{sum(value < 0 for value in expected)} of {len(expected)} go backwards" in title


def test_rows_frame_and_scale_are_those_of_the_stream(trace):
    selection = Selection(direction="neuron.1.7", query=9, layer=1)
    picture = picture_of(PROJECTION, PROJECTION.draw(trace, selection))
    (heatmap,) = picture.parts
    assert heatmap["y"] == ["embedding", "after layer 0", "after layer 1"]
    largest = np.abs(np.array(heatmap["z"], float)).max()
    assert (-heatmap["zmin"], heatmap["zmax"]) == (pytest.approx(largest), pytest.approx(largest))
    (frame,) = picture.layout["shapes"]
    assert (frame["x0"], frame["x1"]) == (8.5, 9.5)
    here = heatmap["z"][2][9]
    assert tells(VIEW.formula(trace, selection).split("= ")[-1].split(" at ")[0], here)
    for p in picture.points():
        if p.x == 9:
            derivation = PROJECTION.inspect(trace, selection, Point(x=int(p.x), y=int(p.y)))
            assert derivation.value == pytest.approx(p.value) and derivation.recomputed == pytest.approx(
                p.value, abs=1e-5
            )


@pytest.mark.parametrize("rival", [0, 2])
@pytest.mark.exhaustive
def test_a_bar_is_of_the_example_that_it_names(lms, trace, style, tiny_tokenizer, rival):
    """Without a rival, of the likeliest other token."""
    selection = Selection(direction="neuron.1.7", query=9, target=1, rival=rival, layer=1)
    order = np.argsort(-trace["logits"][9], kind="stable")
    examples = {text: None for lists in lists_of(trace).values() for text in lists.examples}
    edit = parse_edits("blocks.1.resid_post*add*neuron.1.7*0.3")
    for text in examples:
        ids = tiny_tokenizer.encode(text)[-trace.config.context_length :]
        logits = [capture(lms[style], ids, edits)["logits"][-1].astype(float) for edits in ((), edit)]
        examples[text] = [row[order[0]] - row[order[1]] for row in logits], tiny_tokenizer.decode(ids)
    picture = picture_of(EXAMPLES, EXAMPLES.draw(trace, selection))
    names = picture.axis("y")["ticktext"]
    for p in picture.points():
        ((before, after),) = [
            leads
            for leads, read in examples.values()
            if html.unescape(p.told).partition("\n")[0] == html.unescape(label(read, longest=80))
        ]
        first, then, change = p.told.partition("\n")[2].replace(" → ", ": ").split(": ")
        assert tells(first, before) and tells(then, after) and tells(change, p.value)
        assert p.value == pytest.approx(after - before, abs=1e-4)
        assert p.colour == (SELECTED if p.value < 0 else RESIDUAL)
        shortest = html.unescape(names[int(p.y)]).rstrip("…")
        assert html.unescape(p.told).startswith(shortest[:20])
        if p.item in (0, 5):
            derivation = EXAMPLES.inspect(trace, selection, Point(x=0, y=p.item, item=p.item))
            assert derivation.value == pytest.approx(p.value, abs=1e-6)
            assert derivation.recomputed == pytest.approx(p.value, abs=1e-4)


@pytest.mark.parametrize("direction", ["", "neuron.0.3", "means.0.5.6-7"])
def test_the_list_has_the_direction_that_is_chosen(trace, direction):
    (choice,) = choices(("direction",), trace, Selection(direction=direction, query=9))
    values = [value for value, _words in choice.options]
    assert direction in values and len(set(values)) == len(values)
    assert [words for value, words in choice.options][:3] == ["happy, not sad", "she, not he", "asked, not said"]


def test_the_chosen_direction_is_what_sliders_push_along(trace):
    first, second, _third = lists_of(trace)
    for direction, recipe in (("", first), (second, second), ("neuron.0.3", "neuron.0.3")):
        push, remove = (what_if for what_if, _amount in offered(VIEW.what_ifs, trace, Selection(direction=direction)))
        assert str(push.edit(0.5)) == f"blocks.0.resid_post*add*{recipe}*0.5"
        assert str(remove.edit(1)) == f"blocks.0.resid_post*remove*{recipe}"
        assert push.edit(0.5).recipe == Recipe.parse(recipe)


def test_what_is_written_with_and_without_is_told_of_a_changed_run(lms, trace, style, tiny_tokenizer):
    edits = parse_edits("blocks.1.resid_post*add*unembed.17*5")
    changed = replace(capture(lms[style], trace.token_ids, edits, tokenizer=tiny_tokenizer), baseline=trace)
    selection = Selection(query=9, direction="unembed.17")
    settings = GenerationSettings(seed=3, temperature=1.2)
    assert VIEW.written(trace, selection, settings) == ""
    said = VIEW.written(changed, selection, settings).split("\n")
    assert said[0].startswith("with the changes the text goes on") and said[1].startswith("without, on the same")
    for line, edited in zip(said, (edits, ()), strict=True):
        ids = write(lms[style], trace.token_ids, edited, WRITTEN, settings)
        assert line.partition(": ")[2] == quoted(trace.text(ids))
    assert said != VIEW.written(changed, selection, GenerationSettings(seed=4, temperature=1.2)).split("\n")
