"""Every effect is that of a run patched by hand."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from explorer import activation_patching, path_patching
from explorer.tracing import work
from explorer.tracing.patching.parts import PARTS
from tests.exhaustive import in_turn

from .by_hand import CLEAN, CONTRAST, CORRUPTED, measured, put, values

IDS = {"denoise": (CORRUPTED, CLEAN), "noise": (CLEAN, CORRUPTED)}


def places(config, part: str) -> int:
    if part in ("resid_pre", "attn.out", "ffn.out"):
        return len(CLEAN)
    return config.kv_heads if part in ("attn.k", "attn.v") else config.num_heads


@pytest.mark.parametrize(("part", "direction"), in_turn(list(PARTS), list(IDS)))
def test_each_node_alone_is_put_into_its_run(lms, style, part, direction):
    lm, (recipient, donor) = lms[style], IDS[direction]
    clean, corrupted = measured(lm, CLEAN), measured(lm, CORRUPTED)
    expected = np.empty((lm.config.num_layers, places(lm.config, part)))
    for layer, place in np.ndindex(expected.shape):
        tap = f"blocks.{layer}.{part}"
        after = measured(lm, recipient, {tap: put(values(lm, donor, tap)[tap], place)})
        expected[layer, place] = (after - (corrupted if direction == "denoise" else clean)) / (clean - corrupted)
    found = activation_patching(lm, **CONTRAST, part=part, direction=direction)
    assert found.shape == expected.shape
    assert_allclose(found, expected, atol=2e-4)
    assert np.ptp(found) > 1e-3


@pytest.mark.parametrize("metric", ["log_probability", "probability"])
def test_other_metrics(lms, style, metric):
    lm = lms[style]
    clean, corrupted = (measured(lm, ids, metric=metric) for ids in (CLEAN, CORRUPTED))
    tap = "blocks.1.attn.z"
    after = measured(lm, CORRUPTED, {tap: put(values(lm, CLEAN, tap)[tap], 2)}, metric)
    found = activation_patching(lm, **CONTRAST, part="attn.z", metric=metric)
    assert found[1, 2] == pytest.approx((after - corrupted) / (clean - corrupted), abs=2e-4)


@pytest.mark.parametrize("direction", IDS)
def test_the_stream_where_the_prompts_part_carries_what_the_run_needs(lms, style, direction):
    """At the very beginning the two runs differ at two positions alone, and after all else at the last alone."""
    found = activation_patching(lms[style], **CONTRAST, part="resid_pre", direction=direction)
    parts = [i for i, pair in enumerate(zip(CLEAN, CORRUPTED, strict=True)) if pair[0] != pair[1]]
    assert_allclose(np.delete(found[0], parts), 0, atol=1e-4)


def test_one_token_gives_all_of_it(lms, style):
    """Of prompts that differ in one token its stream at the beginning is the whole difference."""
    corrupted = (*CLEAN[:3], 77, *CLEAN[4:])
    contrast = CONTRAST | {"corrupted_ids": corrupted}
    assert activation_patching(lms[style], **contrast, part="resid_pre")[0, 3] == pytest.approx(1, abs=1e-4)
    noised = activation_patching(lms[style], **contrast, part="resid_pre", direction="noise")
    assert noised[0, 3] == pytest.approx(-1, abs=1e-4)


def test_batches_are_told_apart(lms, monkeypatch):
    whole = activation_patching(lms["rope"], **CONTRAST, part="resid_pre")
    paths = path_patching(lms["rope"], **CONTRAST, receiver="logits")
    monkeypatch.setattr(work, "MOST_TOKENS_AT_ONCE", 15)  # two runs at a time, and one of two passes
    assert_allclose(activation_patching(lms["rope"], **CONTRAST, part="resid_pre"), whole, atol=1e-5)
    assert_allclose(path_patching(lms["rope"], **CONTRAST, receiver="logits"), paths, atol=1e-5)
