"""Patching of another run's values equals patching by hand with PyTorch's hooks."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import torch
from numpy.testing import assert_allclose, assert_array_equal

from explorer import capture, make_intervention
from explorer.explain.captured import check_captured_value, derive
from explorer.explain.notation import format_six_digits
from tests.subtest_loops import each_style, subtest_each

from .manual_cross_run_patches import CLEAN, CORRUPTED, MANUAL_PATCHES, SHORTER, make_patches, patched_logits


@each_style
@subtest_each("text", MANUAL_PATCHES)
def test_patch_equals_manual_patch(lms, style, text):
    lm = lms[style]
    clean, corrupted = capture(lm, CLEAN), capture(lm, CORRUPTED)
    tap, index, numbers = MANUAL_PATCHES[text](clean)
    changed = capture(lm, CORRUPTED, make_patches(text, clean))
    assert_allclose(changed["logits"], patched_logits(lm, CORRUPTED, {tap: (index, numbers)}), atol=1e-5)
    assert np.abs(changed["logits"] - corrupted["logits"]).max() > 1e-4
    assert [str(edit) for edit in changed.edits] == [text]
    assert_array_equal(capture(lm, CORRUPTED)["logits"], corrupted["logits"])  # no hook remains


@each_style
@subtest_each("text", MANUAL_PATCHES)
def test_patched_values_pass_verification(lms, style, text):
    lm = lms[style]
    changed = capture(lm, CORRUPTED, make_patches(text, capture(lm, CLEAN)))
    tap = changed.edits[0].tap
    for name in changed.values:
        assert check_captured_value(changed, name).is_within_tolerance, name
    values = dict(changed.values)
    values[tap] = values[tap] + 1e-2
    assert not check_captured_value(replace(changed, values=values), tap).is_within_tolerance


def test_patched_number_names_other_run(lms):
    lm, clean = lms["rope"], capture(lms["rope"], CLEAN)
    changed = capture(lm, CORRUPTED, make_patches("blocks.0.attn.z.1@2*patch", clean))
    text = "\n".join(derive(changed, "blocks.0.attn.z", (1, 2, 0)).lines())
    assert "as in the other run" in text and format_six_digits(clean["blocks.0.attn.z"][1, 2, 0]) in text
    assert "other run" not in "\n".join(derive(changed, "blocks.0.attn.z", (1, 3, 0)).lines())


@each_style
@subtest_each("tap", ["embed", "blocks.0.resid_pre", "blocks.1.resid_post", "blocks.1.resid_pre"])
def test_patching_whole_stream_gives_clean_run(lms, style, tap):
    lm, clean = lms[style], capture(lms[style], CLEAN)
    changed = capture(lm, CORRUPTED, [make_intervention(tap, "patch", source=clean)])
    assert_allclose(changed["logits"], clean["logits"], atol=1e-5)


@each_style
def test_patching_all_sublayers_gives_clean_run(lms, style):
    """Sublayers are patched one by one, with all positions named."""
    lm, clean = lms[style], capture(lms[style], CLEAN)
    taps = ["embed", *(f"blocks.{layer}.{part}.out" for layer in range(2) for part in ("attn", "ffn"))]
    edits = [make_intervention(tap, "patch", positions="0-7", source=clean) for tap in taps]
    assert_allclose(capture(lm, CORRUPTED, edits)["logits"], clean["logits"], atol=1e-5)


@each_style
def test_patching_own_values_changes_nothing(lms, style):
    lm, corrupted = lms[style], capture(lms[style], CORRUPTED)
    edits = [
        make_intervention(tap, "patch", source=corrupted)
        for tap in ("blocks.0.attn.z", "blocks.1.attn.pattern", "embed")
    ]
    assert_allclose(capture(lm, CORRUPTED, edits)["logits"], corrupted["logits"], atol=1e-5)


@each_style
def test_only_aligned_tokens_are_patched(lms, style):
    lm = lms[style]
    clean, unpatched = capture(lm, SHORTER), capture(lm, CLEAN)  # the token at position 1 has no partner
    changed = capture(lm, CLEAN, [make_intervention("blocks.0.resid_post", "patch", source=clean)])
    after = changed["blocks.0.resid_post"]
    assert_array_equal(np.delete(after, 1, axis=0), clean["blocks.0.resid_post"])
    assert_array_equal(after[1], unpatched["blocks.0.resid_post"][1])
    assert all(check_captured_value(changed, name).is_within_tolerance for name in changed.values)
    pinned = replace(make_intervention("blocks.0.resid_post", "patch", positions=1, source=clean), pins=((1, 0),))
    patched = capture(lm, CLEAN, [pinned])["blocks.0.resid_post"]
    assert_array_equal(patched[1], clean["blocks.0.resid_post"][0])


@each_style
def test_mean_is_over_whole_other_run(lms, style):
    lm, clean = lms[style], capture(lms[style], SHORTER)
    changed = capture(lm, CLEAN, [make_intervention("blocks.1.attn.z", "patch_mean", index=1, source=clean)])
    expected = clean["blocks.1.attn.z"][1].astype(np.float64).mean(0)
    assert_allclose(changed["blocks.1.attn.z"][1], np.tile(expected, (8, 1)), atol=1e-6)


def test_concurrent_patches_do_not_mix(lms):
    """Each thread patches from its own source run, while a third patches nothing."""
    lm = lms["rope"]
    donors = [capture(lm, ids) for ids in (CLEAN, CLEAN[::-1])]
    runs = [
        [],
        *([make_intervention("blocks.0.resid_post", "patch", positions="0-7", source=donor)] for donor in donors),
    ]
    expected = [capture(lm, CORRUPTED, edits)["logits"] for edits in runs]
    with ThreadPoolExecutor(6) as pool:
        logits_per_run = list(pool.map(lambda index: capture(lm, CORRUPTED, runs[index % 3])["logits"], range(60)))
    for index, logits in enumerate(logits_per_run):
        assert_array_equal(logits, expected[index % 3])


def test_ablations_keep_patch(lms):
    lm, clean = lms["rope"], capture(lms["rope"], CLEAN)
    changed = capture(lm, CORRUPTED, make_patches("blocks.1.resid_pre@4*patch", clean))
    ablations = changed.ablate(5, 17)
    expected = torch.tensor(changed["logits"][5]).double().log_softmax(-1)[17]
    assert_allclose(ablations[0], expected, atol=1e-5)
