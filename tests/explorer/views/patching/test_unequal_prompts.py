"""Of prompts of unequal length: A (12 tokens) has one token more than B."""

import numpy as np
import pytest

from explorer import capture
from explorer.tracing.comparison import Comparison
from explorer.views.patching import formula
from explorer.views.two_runs.difference import Incomparable
from tests.specimens import tokenizer

from .pictures import BY_POSITION, INTO, PANEL, Two, point_of, shown


@pytest.fixture
def unequal(lms, trace_of) -> Two:
    trace = trace_of("rope")
    ids = (*trace.token_ids[:3], *trace.token_ids[4:5], 70, *trace.token_ids[6:])
    return Two(Comparison.of(trace, capture(lms["rope"], ids, tokenizer=tokenizer())), lms["rope"])


@pytest.mark.parametrize("clean_run", "ab")
@pytest.mark.parametrize("name", BY_POSITION)
def test_of_unequal_prompts_what_has_no_partner_is_not_patched_and_says_so(unequal, name, clean_run):
    partners = unequal.runs.alignment.partners
    lone = [partners.index(None)] if clean_run == "a" else []
    picture = unequal.picture(name, clean_run=clean_run)
    values = shown(picture)
    assert values.shape == (2, 12 if clean_run == "a" else 11)
    assert [i for i in range(values.shape[1]) if np.isnan(values[:, i]).all()] == lone
    notes = [note for note in picture.layout.get("annotations", ()) if note["text"] == "not patched"]
    assert [note["x"] for note in notes] == lone
    if "positions" in name.split("_")[0]:
        patches, way = picture.layout["meta"]["changes"], name.partition("_")[2]
        into_a = patches["of"] == "edits"
        assert into_a == ((way == "denoise") == (clean_run == "b"))
        back = unequal.runs.alignment.back
        for place in range(values.shape[1]):
            at = place if into_a == (clean_run == "a") else (partners if clean_run == "a" else back)[place]
            assert patches["texts"][1][place] == ("" if place in lone else f"blocks.1.resid_pre@{at}*patch")
    chosen = 9 if clean_run == "a" else partners[9]
    frame = picture.layout["shapes"][0]
    assert (frame["x0"] + frame["x1"]) / 2 == chosen


@pytest.mark.parametrize("clean_run", "ab")
def test_tokens_that_were_put_together_take_each_other_s_values_whichever_run_is_clean(unequal, clean_run):
    a, b = 6, 4
    runs = Comparison.of(unequal.runs.trace, unequal.runs.other, pins=((a, b),))
    assert runs.alignment.partners[a] == b != unequal.runs.alignment.partners[a]
    two = Two(runs, unequal.lm)
    for way in INTO:
        patches = two.picture(f"positions_{way}", clean_run=clean_run).layout["meta"]["changes"]
        put_at = a if patches["of"] == "edits" else b
        assert patches["texts"][1][a if clean_run == "a" else b] == f"blocks.1.resid_pre@{put_at}*patch"


def test_of_unequal_prompts_heads_have_effects_and_patterns_a_sentence(unequal):
    for name in ("heads_denoise", "heads_noise", "estimate", "agreement", "paths", "neurons"):
        picture = unequal.picture(name, patch_head="attn.q")
        assert picture.points(), name
        last = picture.points()[-1]
        assert PANEL[name].inspect(unequal.runs, unequal.selection(patch_head="attn.q"), point_of(last)), name
        assert PANEL[name].mark(unequal.runs, unequal.selection()).state == "recomputed", name
        if name != "neurons" and name != "paths":
            with pytest.raises(Incomparable, match="a pattern goes over only between prompts of as many tokens"):
                unequal.picture(name, patch_head="attn.pattern")
    assert "values go over between tokens that stand beside each other" in formula(unequal.runs, unequal.selection())
    assert "; 1 of the clean prompt have no partner" in formula(unequal.runs, unequal.selection(clean_run="a"))


def test_of_prompts_that_have_no_partners_it_is_said_what_to_do(lms, trace_of):
    trace = trace_of("rope")
    other = capture(lms["rope"], (70, 71, 72), tokenizer=tokenizer())
    two = Two(Comparison.of(trace, other), lms["rope"])
    with pytest.raises(Incomparable, match="put two tokens together above first"):
        two.picture("heads_denoise")
    assert "put two tokens together" in formula(two.runs, two.selection())
