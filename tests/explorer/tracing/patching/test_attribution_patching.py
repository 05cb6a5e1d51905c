"""Estimates of attribution patching are the slopes of activation patching at a small step."""

from copy import deepcopy

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from explorer import activation_patching, attribution_patching
from explorer.tracing.patching.patching_setup import COMPONENTS
from tests.exhaustive import pairwise_params
from tests.subtest_loops import each_style, subtest_each

from .manual_patching import CLEAN, CONTRAST, CORRUPTED, measure_metric, patch_hook, values

STEP = 1e-6
LINEAR = [part for part in COMPONENTS if part not in ("attn.q", "attn.k")]


@pytest.fixture
def to_float64(monkeypatch):
    """Return a function that copies a model to float64, norms included: small steps drown in rounding otherwise."""
    monkeypatch.setattr(torch.Tensor, "float", torch.Tensor.double)
    return lambda lm: deepcopy(lm).double()


@each_style
@subtest_each(("part", "direction"), pairwise_params(LINEAR, ["denoise", "noise"]))
def test_estimate_equals_slope_of_small_step(lms, to_float64, style, part, direction):
    lm = to_float64(lms[style])
    recipient, donor = (CORRUPTED, CLEAN) if direction == "denoise" else (CLEAN, CORRUPTED)
    scale = measure_metric(lm, CLEAN) - measure_metric(lm, CORRUPTED)
    estimates = attribution_patching(lm, **CONTRAST, part=part, direction=direction)
    owns, donors = (values(lm, ids, *_taps(lm, part)) for ids in (recipient, donor))
    expected = np.empty(estimates.shape)
    for layer, index in np.ndindex(estimates.shape):
        tap = f"blocks.{layer}.{part}"
        start, donated = owns[tap], donors[tap]
        metrics = [
            measure_metric(lm, recipient, {tap: patch_hook(start + step * (donated - start), index)})
            for step in (STEP, -STEP)
        ]
        expected[layer, index] = (metrics[0] - metrics[1]) / (2 * STEP) / scale
    assert_allclose(estimates, expected, atol=1e-6, rtol=1e-5)
    assert np.ptp(estimates) > 1e-3


@each_style
@subtest_each("direction", ["denoise", "noise"])
@subtest_each("part", ["attn.q", "attn.k"])
def test_query_and_key_estimates_recompute_softmax(lms, to_float64, style, part, direction):
    """The expected value patches a small step towards the pattern that the source's queries or keys give."""
    _check_pattern_estimates(to_float64(lms[style]), CLEAN, CORRUPTED, part, direction)


@pytest.mark.parametrize("part", ["attn.q", "attn.k"])
def test_sliding_window_estimates_recompute_softmax(lms, to_float64, part):
    further = tuple(range(50, 56))
    lm = to_float64(lms["local"])
    assert min(filter(None, map(lm.config.window, range(lm.config.num_layers)))) < len(CLEAN) + len(further)
    _check_pattern_estimates(lm, (*CLEAN, *further), (*CORRUPTED[:-1], *further, CLEAN[-1]), part, "denoise")


def _check_pattern_estimates(lm, clean, corrupted, tap_name, direction):
    recipient, donor = (corrupted, clean) if direction == "denoise" else (clean, corrupted)
    scale = measure_metric(lm, clean) - measure_metric(lm, corrupted)
    contrast = CONTRAST | {"clean_ids": clean, "corrupted_ids": corrupted}
    estimates = attribution_patching(lm, **contrast, part=tap_name, direction=direction)
    owns, donors = (values(lm, ids, *_taps(lm, "attn.pattern", tap_name)) for ids in (recipient, donor))
    expected = np.empty(estimates.shape)
    for layer, index in np.ndindex(estimates.shape):
        tap, pattern = f"blocks.{layer}.{tap_name}", f"blocks.{layer}.attn.pattern"
        start = owns[pattern]
        patched = _patterns(lm, recipient, tap, patch_hook(donors[tap], index), pattern)
        metrics = [
            measure_metric(lm, recipient, {pattern: _interpolation_hook(start, patched, step)})
            for step in (STEP, -STEP)
        ]
        expected[layer, index] = (metrics[0] - metrics[1]) / (2 * STEP) / scale
    assert_allclose(estimates, expected, atol=1e-6, rtol=1e-5)


def _taps(lm, *tap_names: str) -> list[str]:
    return [f"blocks.{layer}.{part}" for layer in range(lm.config.num_layers) for part in tap_names]


def _interpolation_hook(start, end, step):
    return lambda _value: start + step * (end - start)


def _patterns(lm, token_ids, tap, change, pattern):
    hook = lm.get_submodule(tap).register_forward_hook(lambda module, inputs, output: change(output))
    try:
        return values(lm, token_ids, pattern)[pattern]
    finally:
        hook.remove()


def test_last_layer_value_estimates_are_accurate(lms):
    """After the last attention only a norm is not linear: small differences are estimated within a few percent."""
    near = CONTRAST | {"corrupted_ids": (*CLEAN[:-2], 90, CLEAN[-1])}
    exact = activation_patching(lms["rope"], **near, part="attn.v")
    estimated = attribution_patching(lms["rope"], **near, part="attn.v")
    assert np.corrcoef(exact.ravel(), estimated.ravel())[0, 1] > 0.9


def test_weights_get_no_gradients(tiny_lm):
    assert all(parameter.requires_grad for parameter in tiny_lm.parameters())
    attribution_patching(tiny_lm, **CONTRAST, part="ffn.out")
    assert all(parameter.grad is None for parameter in tiny_lm.parameters())
    assert not any(module._forward_hooks for module in tiny_lm.modules())


def test_estimates_work_in_inference_mode(lms):
    with torch.inference_mode():
        assert np.isfinite(attribution_patching(lms["rope"], **CONTRAST, part="attn.q")).all()
