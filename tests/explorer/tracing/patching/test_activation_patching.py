"""Effects of activation patching equal those of manually patched runs."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from explorer import activation_patching, path_patching
from explorer.tracing import jobs
from explorer.tracing.patching.patching_setup import COMPONENTS
from tests.exhaustive import pairwise_params
from tests.subtest_loops import each_style, subtest_each

from .manual_patching import CLEAN, CONTRAST, CORRUPTED, measure_metric, patch_hook, values

IDS = {"denoise": (CORRUPTED, CLEAN), "noise": (CLEAN, CORRUPTED)}


def axis_length(config, tap_name: str) -> int:
    if tap_name in ("resid_pre", "attn.out", "ffn.out"):
        return len(CLEAN)
    return config.kv_heads if tap_name in ("attn.k", "attn.v") else config.num_heads


@each_style
@subtest_each(("part", "direction"), pairwise_params(list(COMPONENTS), list(IDS)))
def test_each_effect_equals_a_manually_patched_run(lms, style, part, direction):
    lm, (recipient, donor) = lms[style], IDS[direction]
    clean, corrupted = measure_metric(lm, CLEAN), measure_metric(lm, CORRUPTED)
    expected = np.empty((lm.config.num_layers, axis_length(lm.config, part)))
    for layer, index in np.ndindex(expected.shape):
        tap = f"blocks.{layer}.{part}"
        after = measure_metric(lm, recipient, {tap: patch_hook(values(lm, donor, tap)[tap], index)})
        expected[layer, index] = (after - (corrupted if direction == "denoise" else clean)) / (clean - corrupted)
    effects = activation_patching(lm, **CONTRAST, part=part, direction=direction)
    assert effects.shape == expected.shape
    assert_allclose(effects, expected, atol=2e-4)
    assert np.ptp(effects) > 1e-3


@each_style
@subtest_each("metric", ["log_probability", "probability"])
def test_other_metrics_equal_a_manually_patched_run(lms, style, metric):
    lm = lms[style]
    clean, corrupted = (measure_metric(lm, ids, metric=metric) for ids in (CLEAN, CORRUPTED))
    tap = "blocks.1.attn.z"
    after = measure_metric(lm, CORRUPTED, {tap: patch_hook(values(lm, CLEAN, tap)[tap], 2)}, metric)
    effects = activation_patching(lm, **CONTRAST, part="attn.z", metric=metric)
    assert effects[1, 2] == pytest.approx((after - corrupted) / (clean - corrupted), abs=2e-4)


@each_style
@subtest_each("direction", IDS)
def test_first_stream_has_effects_only_at_differing_tokens(lms, style, direction):
    """Before layer 0, the two runs differ only at the positions where the prompts differ."""
    effects = activation_patching(lms[style], **CONTRAST, part="resid_pre", direction=direction)
    differing = [i for i, pair in enumerate(zip(CLEAN, CORRUPTED, strict=True)) if pair[0] != pair[1]]
    assert_allclose(np.delete(effects[0], differing), 0, atol=1e-4)


@each_style
def test_patching_only_differing_token_restores_everything(lms, style):
    """For prompts that differ in one token, patching its first residual stream restores the whole difference."""
    corrupted = (*CLEAN[:3], 77, *CLEAN[4:])
    contrast = CONTRAST | {"corrupted_ids": corrupted}
    assert activation_patching(lms[style], **contrast, part="resid_pre")[0, 3] == pytest.approx(1, abs=1e-4)
    noised = activation_patching(lms[style], **contrast, part="resid_pre", direction="noise")
    assert noised[0, 3] == pytest.approx(-1, abs=1e-4)


def test_effects_do_not_depend_on_batch_size(lms, monkeypatch):
    whole = activation_patching(lms["rope"], **CONTRAST, part="resid_pre")
    paths = path_patching(lms["rope"], **CONTRAST, receiver="logits")
    monkeypatch.setattr(jobs, "MAX_CHUNK_TOKENS", 15)  # two runs per batch, or one for path patching
    assert_allclose(activation_patching(lms["rope"], **CONTRAST, part="resid_pre"), whole, atol=1e-5)
    assert_allclose(path_patching(lms["rope"], **CONTRAST, receiver="logits"), paths, atol=1e-5)
