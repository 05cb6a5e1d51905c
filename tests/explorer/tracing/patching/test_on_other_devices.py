"""Patching on other devices gives the CPU's results."""

from collections.abc import Generator
from copy import deepcopy
from itertools import product

import pytest
from numpy.testing import assert_allclose

from explorer import activation_patching, attribution_patching, path_patching
from explorer.tracing.jobs import run_to_completion
from explorer.tracing.patching.experiment import COMPONENTS, PatchingExperiment
from explorer.tracing.patching.patching_methods import PATCHING_FUNCTIONS
from tests.devices import on_each_device
from tests.exhaustive import first_in_core
from tests.sample_models import CORE

from .manual_patching import ANSWER, CLEAN, CONTRAST, CORRUPTED, WRONG

CASES = [pytest.param(*case) for case in product(CORE, ["denoise", "noise"])]


@on_each_device
@pytest.mark.parametrize(("style", "direction"), first_in_core(CASES))
def test_patching_maps_agree_with_cpu(lms, style, direction, device):
    device_lm = deepcopy(lms[style]).to(device)
    for find in (activation_patching, attribution_patching):
        for part in COMPONENTS:
            actual, expected = (find(lm, **CONTRAST, part=part, direction=direction) for lm in (device_lm, lms[style]))
            assert_allclose(actual, expected, rtol=1e-2, atol=1e-2, err_msg=f"{find.__name__} of {part}")
    for receiver in ("logits", (1, 1, "q"), (1, 2, "k"), (1, 0, "v")):
        options = {"receiver": receiver, "direction": direction, "through_ffn": direction == "noise"}
        actual, expected = (path_patching(lm, **CONTRAST, **options) for lm in (device_lm, lms[style]))
        assert_allclose(actual, expected, rtol=1e-2, atol=1e-2, err_msg=str(receiver))


@on_each_device
@pytest.mark.parametrize("style", first_in_core(CORE))
def test_patching_functions_agree_with_cpu(lms, style, device):
    device_lm, on_cpu = deepcopy(lms[style]).to(device), lms[style]
    question = PatchingExperiment(None, CLEAN, CORRUPTED, ANSWER, WRONG)
    calls = [
        ("unpatched", ()),
        *(("component", (component,)) for component in COMPONENTS),
        ("neurons", (1,)),
        ("paths", ("denoise", (1, 1, "q"))),
        ("path", ("noise", "logits", 0, 1)),
        ("estimate", ("denoise", "resid_pre", "probability")),
        ("summed", ("denoise", "resid_pre", "probability", 1, 2)),
    ]
    assert {name for name, _args in calls} == PATCHING_FUNCTIONS.keys()
    for name, args in calls:
        actual, expected = (PATCHING_FUNCTIONS[name](lm, question, *args) for lm in (device_lm, on_cpu))
        if isinstance(expected, Generator):
            actual, expected = run_to_completion(actual), run_to_completion(expected)
        assert_allclose(actual, expected, rtol=1e-2, atol=1e-2, err_msg=f"{name} {args}")
