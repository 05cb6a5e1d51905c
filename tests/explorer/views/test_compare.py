"""What the tab Compare draws of two runs."""

import re
from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose

from explorer.analysis.attribution import attribution
from explorer.analysis.next_token import next_token
from explorer.analysis.parting import head_distance, stream_distance, surprisal_difference
from explorer.state.interventions import parse_edits
from explorer.state.selection import Selection
from explorer.tracing.capture import capture
from explorer.tracing.comparison import Comparison
from explorer.views.checks import Mark, both
from explorer.views.compare import VIEW
from explorer.views.compare.apart import heads, streams, text
from explorer.views.compare.predictions import next_tokens, parts
from explorer.views.compare.words import formula
from explorer.views.explained import explained
from explorer.views.style import label
from explorer.views.two_runs.difference import Incomparable
from explorer.views.two_runs.selection import selection_in_other
from tests.specimens import CORE, models, tokenizer

TEXTS = "the fox asked the owl", "the fox and then the owl asked the owl"
SELECTION = Selection(query=4, layer=1, head=2)


@cache
def two(style: str, other: str = "") -> Comparison:
    runs = zip((style, other or style), TEXTS, strict=True)
    return Comparison.of(
        *(capture(models()[name], tokenizer().encode(text), tokenizer=tokenizer()) for name, text in runs)
    )


@pytest.mark.parametrize("style", CORE)
def test_numbers_are_drawn_as_they_are(style):
    comparison = two(style)
    assert_allclose(streams(comparison, 4).parts[0][0]["z"], stream_distance(comparison))
    assert_allclose(heads(comparison, 1, 2).parts[0][0]["z"], head_distance(comparison))
    assert_allclose(text(comparison, 4).parts[0][0]["y"], surprisal_difference(comparison))


@pytest.mark.parametrize("style", CORE)
def test_a_parts_bar_tells_what_it_adds_in_each_run(style):
    comparison = two(style)
    (bars,) = parts(comparison, SELECTION).data
    for less, said in zip(bars.y, bars.text, strict=True):
        mine, theirs = (
            float(value.replace("−", "-")) for value in re.search(r"(\S+) in A, (\S+) in B$", said).groups()
        )
        assert mine - theirs == pytest.approx(less, abs=0.01)
    assert np.abs(bars.y).max() > 0.1


@pytest.mark.parametrize("style", CORE)
def test_each_runs_bars_have_its_name(style):
    comparison = two(style)
    figure = next_tokens(comparison, 4)
    bars = {part["name"]: part for part in figure.parts[0]}
    names = [name.strip("\u2068\u2069") for name in figure.parts[1]["yaxis"]["ticktext"]]
    vocabulary = [label(text).strip("\u2068\u2069") for text in comparison.trace.vocabulary]
    ids = [vocabulary.index(name) for name in names if len(name) < 12]
    mine = next_token(comparison.trace, 4).plain
    theirs = next_token(comparison.other, comparison.alignment.nearest(4)).plain
    kept = [i for i, name in enumerate(names) if len(name) < 12]
    assert_allclose(np.array(bars["A"]["x"])[kept], mine[ids], rtol=1e-5)
    assert_allclose(np.array(bars["B"]["x"])[kept], theirs[ids], rtol=1e-5)
    assert len(kept) >= 4 and not np.allclose(mine[ids], theirs[ids])


@pytest.mark.parametrize("style", CORE)
def test_parts_are_those_of_a_less_those_of_b_and_add_up(style):
    comparison = two(style)
    (bars,) = parts(comparison, SELECTION).parts[0]
    there = selection_in_other(comparison, SELECTION)
    logits = [
        attribution(run, look.query, *explained(run, look))
        for run, look in ((comparison.trace, SELECTION), (comparison.other, there))
    ]
    assert sum(bars["y"]) == pytest.approx(logits[0].logit - logits[1].logit, abs=1e-4)
    assert bars["y"][0] == pytest.approx(logits[0].token - logits[1].token, abs=1e-6)


def test_what_cannot_be_compared_is_told():
    with pytest.raises(Incomparable, match="different widths"):
        streams(two("rope", "grouped"), 4)
    with pytest.raises(Incomparable, match="layers or heads"):
        heads(two("rope", "grouped"), 0, 0)
    with pytest.raises(Incomparable, match="different parts"):
        parts(two("rope", "gpt"), SELECTION)


def test_the_words_say_where_runs_part():
    lm, ids = models()["rope"], tokenizer().encode(TEXTS[0])
    plain = capture(lm, ids, tokenizer=tokenizer())
    changed = capture(lm, ids, parse_edits("blocks.1.attn.z.2*zero"), tokenizer=tokenizer())
    told = formula(Comparison.of(changed, plain), SELECTION)
    assert "part first at blocks.1.attn.z, at “t” (0) beside “t” (0)" in told and "KL(A‖B) = " in told
    assert "the same at all tokens" in formula(Comparison.of(plain, plain), SELECTION)


def test_every_panel_compares():
    assert VIEW.compares and all(panel.compares == "other" for panel in VIEW.panels)


def test_of_two_marks_the_worse_is_told():
    fine, off, unchecked = (Mark(state, state) for state in ("recomputed", "off", "unchecked"))
    for worse, better in ((off, fine), (off, unchecked), (unchecked, fine)):
        assert both(worse, better).state == both(better, worse).state == worse.state
    assert both(fine, off).words == "A: recomputed; B: off"
    assert both(fine, fine) == fine
