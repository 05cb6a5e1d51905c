"""Estimates are slopes: what activation patching comes to at a small step."""

from copy import deepcopy

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from explorer import activation_patching, attribution_patching
from explorer.tracing.patching.parts import PARTS
from tests.exhaustive import in_turn

from .by_hand import CLEAN, CONTRAST, CORRUPTED, measured, put, values

STEP = 1e-6
LINEAR = [part for part in PARTS if part not in ("attn.q", "attn.k")]


@pytest.fixture
def exactly(monkeypatch):
    """Makes of a model one that computes in float64, its norms too: in less, small steps drown."""
    monkeypatch.setattr(torch.Tensor, "float", torch.Tensor.double)
    return lambda lm: deepcopy(lm).double()


@pytest.mark.parametrize(("part", "direction"), in_turn(LINEAR, ["denoise", "noise"]))
def test_an_estimate_is_the_slope_of_a_small_step(lms, exactly, style, part, direction):
    lm = exactly(lms[style])
    recipient, donor = (CORRUPTED, CLEAN) if direction == "denoise" else (CLEAN, CORRUPTED)
    scale = measured(lm, CLEAN) - measured(lm, CORRUPTED)
    found = attribution_patching(lm, **CONTRAST, part=part, direction=direction)
    owns, donors = (values(lm, ids, *_taps(lm, part)) for ids in (recipient, donor))
    expected = np.empty(found.shape)
    for layer, place in np.ndindex(found.shape):
        tap = f"blocks.{layer}.{part}"
        own, donated = owns[tap], donors[tap]
        ends = [measured(lm, recipient, {tap: put(own + step * (donated - own), place)}) for step in (STEP, -STEP)]
        expected[layer, place] = (ends[0] - ends[1]) / (2 * STEP) / scale
    assert_allclose(found, expected, atol=1e-6, rtol=1e-5)
    assert np.ptp(found) > 1e-3


@pytest.mark.parametrize("direction", ["denoise", "noise"])
@pytest.mark.parametrize("part", ["attn.q", "attn.k"])
def test_of_queries_and_keys_the_softmax_is_computed_again(lms, exactly, style, part, direction):
    """The pattern that the donor's queries or keys give, put a small step of the way."""
    _check_of_patterns(exactly(lms[style]), CLEAN, CORRUPTED, part, direction)


@pytest.mark.parametrize("part", ["attn.q", "attn.k"])
def test_so_it_is_in_a_layer_that_sees_but_a_window(lms, exactly, part):
    further = tuple(range(50, 56))
    lm = exactly(lms["local"])
    assert min(filter(None, map(lm.config.window, range(lm.config.num_layers)))) < len(CLEAN) + len(further)
    _check_of_patterns(lm, (*CLEAN, *further), (*CORRUPTED[:-1], *further, CLEAN[-1]), part, "denoise")


def _check_of_patterns(lm, clean, corrupted, part, direction):
    recipient, donor = (corrupted, clean) if direction == "denoise" else (clean, corrupted)
    scale = measured(lm, clean) - measured(lm, corrupted)
    contrast = CONTRAST | {"clean_ids": clean, "corrupted_ids": corrupted}
    found = attribution_patching(lm, **contrast, part=part, direction=direction)
    owns, donors = (values(lm, ids, *_taps(lm, "attn.pattern", part)) for ids in (recipient, donor))
    expected = np.empty(found.shape)
    for layer, place in np.ndindex(found.shape):
        tap, pattern = f"blocks.{layer}.{part}", f"blocks.{layer}.attn.pattern"
        own = owns[pattern]
        patched = _patterns(lm, recipient, tap, put(donors[tap], place), pattern)
        ends = [measured(lm, recipient, {pattern: _moved(own, patched, step)}) for step in (STEP, -STEP)]
        expected[layer, place] = (ends[0] - ends[1]) / (2 * STEP) / scale
    assert_allclose(found, expected, atol=1e-6, rtol=1e-5)


def _taps(lm, *parts: str) -> list[str]:
    return [f"blocks.{layer}.{part}" for layer in range(lm.config.num_layers) for part in parts]


def _moved(own, other, step):
    return lambda _value: own + step * (other - own)


def _patterns(lm, token_ids, tap, change, pattern):
    hook = lm.get_submodule(tap).register_forward_hook(lambda module, inputs, output: change(output))
    try:
        return values(lm, token_ids, pattern)[pattern]
    finally:
        hook.remove()


def test_the_last_layers_values_are_estimated_well(lms):
    """After the last attention only a norm is not linear: small differences are estimated to a few percent."""
    near = CONTRAST | {"corrupted_ids": (*CLEAN[:-2], 90, CLEAN[-1])}
    exact = activation_patching(lms["rope"], **near, part="attn.v")
    estimated = attribution_patching(lms["rope"], **near, part="attn.v")
    assert np.corrcoef(exact.ravel(), estimated.ravel())[0, 1] > 0.9


def test_the_weights_get_no_gradients(tiny_lm):
    assert all(parameter.requires_grad for parameter in tiny_lm.parameters())
    attribution_patching(tiny_lm, **CONTRAST, part="ffn.out")
    assert all(parameter.grad is None for parameter in tiny_lm.parameters())
    assert not any(module._forward_hooks for module in tiny_lm.modules())


def test_it_works_where_gradients_are_off(lms):
    with torch.inference_mode():
        assert np.isfinite(attribution_patching(lms["rope"], **CONTRAST, part="attn.q")).all()
