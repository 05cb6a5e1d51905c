"""The tab of directions: what is drawn of one, and what is offered."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from explorer.analysis.steering import lists_of
from explorer.state.interventions import Recipe, parse_edits
from explorer.state.selection import Selection
from explorer.tracing.capture import capture
from explorer.views.choices import choices
from explorer.views.directions import VIEW
from explorer.views.what_if import offered
from tests.drawn import picture_of, tells

PROJECTION, EXAMPLES = VIEW.panels


def test_every_cell_is_the_cosine_with_the_direction(trace):
    selection = Selection(direction="neuron.1.7", query=9, layer=1)
    u = trace.weights["blocks.1.ffn.down_proj.weight"][:, 7].astype(float)
    picture = picture_of(PROJECTION, PROJECTION.draw(trace, selection))
    last = "resid_post" if trace.config.norm_placement == "pre" else "ffn_norm"
    for p in picture.points():
        x = trace["embed" if p.y == 0 else f"blocks.{int(p.y) - 1}.{last}"][int(p.x)].astype(float)
        assert p.value == pytest.approx(x @ u / np.linalg.norm(x) / np.linalg.norm(u), abs=1e-5)
        assert tells(p.told, p.value) and p.change == {"query": int(p.x), "layer": max(0, int(p.y) - 1)}


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


@pytest.mark.parametrize("direction", ["", "neuron.0.3", "means.0.5.6-7"])
def test_the_list_has_the_direction_that_is_chosen(trace, direction):
    (choice,) = choices(("direction",), trace, Selection(direction=direction, query=9))
    values = [value for value, _words in choice.options]
    assert direction in values and len(set(values)) == len(values)
    assert [words for value, words in choice.options][:2] == ["happy, not sad", "she, not he"]


def test_the_chosen_direction_is_what_sliders_push_along(trace):
    first, second = lists_of(trace)
    for direction, recipe in (("", first), (second, second), ("neuron.0.3", "neuron.0.3")):
        push, remove = (what_if for what_if, _amount in offered(VIEW.what_ifs, trace, Selection(direction=direction)))
        assert str(push.edit(0.5)) == f"blocks.0.resid_post*add*{recipe}*0.5"
        assert str(remove.edit(1)) == f"blocks.0.resid_post*remove*{recipe}"
        assert push.edit(0.5).recipe == Recipe.parse(recipe)


def test_what_is_written_with_and_without_is_told_of_a_changed_run(lms, trace, style, tiny_tokenizer):
    edits = parse_edits("blocks.1.resid_post*add*unembed.17*5")
    changed = replace(capture(lms[style], trace.token_ids, edits, tokenizer=tiny_tokenizer), baseline=trace)
    selection = Selection(query=9, direction="unembed.17")
    assert "random numbers" not in VIEW.formula(trace, selection)
    said = VIEW.formula(changed, selection).split("\n")
    assert said[-2].startswith("with the changes the text goes on") and said[-1].startswith("without, on the same")
    assert said[-2].partition(": ")[2] != said[-1].partition(": ")[2]
