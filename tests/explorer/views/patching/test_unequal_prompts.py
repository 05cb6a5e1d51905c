"""Patching between prompts of unequal length: A (12 tokens) has one token more than B."""

from itertools import product

import numpy as np
import pytest

from explorer import capture
from explorer.tracing.comparison import Comparison
from explorer.views.patching import describe_patching
from explorer.views.two_run_figures import NoDifferenceError
from tests.sample_models import tokenizer
from tests.subtest_loops import subtest_each

from .patching_figures import BY_POSITION, INTO, PANEL, PatchingCase, cell_values, clicked_point


@pytest.fixture
def unequal_case(lms, capture_trace) -> PatchingCase:
    trace = capture_trace("rope")
    ids = (*trace.token_ids[:3], *trace.token_ids[4:5], 70, *trace.token_ids[6:])
    return PatchingCase(Comparison.from_traces(trace, capture(lms["rope"], ids, tokenizer=tokenizer())), lms["rope"])


@subtest_each("name, clean_run", product(BY_POSITION, "ab"))
def test_unaligned_positions_are_marked_as_not_patched(unequal_case, name, clean_run):
    partners = unequal_case.runs.alignment.partners
    unaligned = [partners.index(None)] if clean_run == "a" else []
    figure = unequal_case.figure(name, clean_run=clean_run)
    values = cell_values(figure)
    assert values.shape == (2, 12 if clean_run == "a" else 11)
    assert [i for i in range(values.shape[1]) if np.isnan(values[:, i]).all()] == unaligned
    notes = [note for note in figure.layout.get("annotations", ()) if note["text"] == "not patched"]
    assert [note["x"] for note in notes] == unaligned
    shades = [shape for shape in figure.layout.get("shapes", ()) if shape.get("opacity") == 0.3]
    assert len(shades) == len(notes)
    if "positions" in name.split("_")[0]:
        patches, direction = figure.layout["meta"]["changes"], name.partition("_")[2]
        into_a = patches["of"] == "edits"
        assert into_a == ((direction == "denoise") == (clean_run == "b"))
        inverse = unequal_case.runs.alignment.inverse
        for column in range(values.shape[1]):
            target_position = (
                column if into_a == (clean_run == "a") else (partners if clean_run == "a" else inverse)[column]
            )
            assert patches["texts"][1][column] == (
                "" if column in unaligned else f"blocks.1.resid_pre@{target_position}*patch"
            )
    chosen = 9 if clean_run == "a" else partners[9]
    frame = figure.layout["shapes"][0]
    assert (frame["x0"] + frame["x1"]) / 2 == chosen


@subtest_each("clean_run", "ab")
def test_pinned_tokens_patch_each_other(unequal_case, clean_run):
    a, b = 6, 4
    runs = Comparison.from_traces(unequal_case.runs.trace, unequal_case.runs.other, pins=((a, b),))
    assert runs.alignment.partners[a] == b != unequal_case.runs.alignment.partners[a]
    case = PatchingCase(runs, unequal_case.lm)
    for direction in INTO:
        patches = case.figure(f"positions_{direction}", clean_run=clean_run).layout["meta"]["changes"]
        put_at = a if patches["of"] == "edits" else b
        assert patches["texts"][1][a if clean_run == "a" else b] == f"blocks.1.resid_pre@{put_at}*patch"


def test_unequal_prompts_allow_heads_but_not_patterns(unequal_case):
    for name in ("heads_denoise", "heads_noise", "estimate", "agreement", "paths", "neurons"):
        figure = unequal_case.figure(name, patch_head="attn.q")
        assert figure.points(), name
        last = figure.points()[-1]
        assert PANEL[name].inspect(
            unequal_case.runs, unequal_case.selection(patch_head="attn.q"), clicked_point(last)
        ), name
        assert PANEL[name].verify(unequal_case.runs, unequal_case.selection()).state == "recomputed", name
        if name != "neurons" and name != "paths":
            with pytest.raises(NoDifferenceError, match="pattern can only be patched between prompts of equal length"):
                unequal_case.figure(name, patch_head="attn.pattern")
    assert "values go over between tokens that stand beside each other" in describe_patching(
        unequal_case.runs, unequal_case.selection()
    )
    assert "; 1 of the clean prompt have no partner" in describe_patching(
        unequal_case.runs, unequal_case.selection(clean_run="a")
    )


def test_prompts_without_aligned_tokens_raise(lms, capture_trace):
    trace = capture_trace("rope")
    other = capture(lms["rope"], (70, 71, 72), tokenizer=tokenizer())
    case = PatchingCase(Comparison.from_traces(trace, other), lms["rope"])
    with pytest.raises(
        NoDifferenceError, match="No tokens of the two prompts are aligned. Align two tokens above first"
    ):
        case.figure("heads_denoise")
    assert "Align two tokens" in describe_patching(case.runs, case.selection())
