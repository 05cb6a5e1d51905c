"""Patching on other devices gives the CPU's results."""

from copy import deepcopy
from itertools import product

import pytest
from numpy.testing import assert_allclose

from explorer import activation_patching, attribution_patching, path_patching
from explorer.interventions import parse_intervention
from explorer.tracing.model_registry import register_model_facts
from explorer.tracing.patching.experiment import PatchingExperiment
from explorer.tracing.patching.patching_setup import COMPONENTS
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
def test_experiments_agree_with_cpu(lms, style, device):
    device_lm, on_cpu = deepcopy(lms[style]).to(device), lms[style]
    experiments = [
        PatchingExperiment(register_model_facts(lm), tuple(CLEAN), tuple(CORRUPTED), ANSWER, WRONG)
        for lm in (device_lm, on_cpu)
    ]
    for ask in (
        lambda experiment: experiment.unpatched_metrics,
        *(lambda experiment, part=part: experiment.component_metrics(part) for part in COMPONENTS),
        lambda experiment: experiment.neuron_metrics(1),
        lambda experiment: experiment.path_metrics("denoise", (1, 1, "q")),
        lambda experiment: experiment.path("noise", "logits", 0, 1),
        lambda experiment: experiment.estimate("denoise", "resid_pre", "probability"),
        lambda experiment: experiment.estimate_terms("denoise", "resid_pre", "probability", 1, 2),
        lambda experiment: experiment.rerun_with_patch("denoise", parse_intervention("blocks.1.attn.k.0*patch")),
    ):
        actual, expected = map(ask, experiments)
        assert_allclose(actual, expected, rtol=1e-2, atol=1e-2)
