"""Metrics of two prompts, and errors for prompts that cannot be patched."""

import numpy as np
import pytest

from explorer import activation_patching, attribution_patching, path_patching
from explorer.errors import UserError
from explorer.tracing.patching.patching_setup import PatchingSetup
from tests.subtest_loops import each_style, subtest_each

from .manual_patching import ANSWER, CLEAN, CONTRAST, CORRUPTED, WRONG, measure_metric

PATCHING_METHODS = [
    lambda *args, **kwargs: activation_patching(*args, part="attn.z", **kwargs),
    lambda *args, **kwargs: attribution_patching(*args, part="attn.z", **kwargs),
    lambda *args, **kwargs: path_patching(*args, receiver="logits", **kwargs),
]


@each_style
@subtest_each("metric", ["logit_difference", "log_probability", "probability"])
def test_metric_equals_plain_runs(lms, style, metric):
    contrast = PatchingSetup(lms[style], CLEAN, CORRUPTED, ANSWER, WRONG, metric=metric)
    expected = [measure_metric(lms[style], ids, metric=metric) for ids in (CLEAN, CORRUPTED)]
    assert contrast.unpatched_metrics == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(("direction", "ends"), [("denoise", (1, 0)), ("noise", (0, -1))])
def test_effects_are_normalised_to_two_runs(lms, direction, ends):
    contrast = PatchingSetup(lms["rope"], CLEAN, CORRUPTED, ANSWER, WRONG, direction)
    assert contrast.normalised_effects(np.array(contrast.unpatched_metrics)).tolist() == list(ends)


@pytest.mark.parametrize("patch", PATCHING_METHODS)
def test_equal_prompts_have_nan_effects(lms, patch):
    assert np.isnan(patch(lms["rope"], CLEAN, CLEAN, ANSWER, WRONG)).all()


@subtest_each("patch", PATCHING_METHODS)
@subtest_each(
    ("change", "told"),
    [
        ({"corrupted_ids": CORRUPTED[:-1]}, "both must have as many tokens, got 7 and 6"),
        ({"clean_ids": (), "corrupted_ids": ()}, "a run has 1 to 32 tokens, got 0"),
        ({"answer": 300}, "token ids run from 0 to 299"),
        ({"wrong": -1}, "token ids run from 0 to 299"),
        ({"direction": "sideways"}, "wanted one of denoise, noise, got 'sideways'"),
        ({"metric": "loss"}, "wanted one of logit_difference, log_probability, probability, got 'loss'"),
    ],
)
def test_invalid_setup_is_refused(lms, patch, change, told):
    with pytest.raises(UserError, match=told):
        patch(lms["rope"], **CONTRAST | change)


@pytest.mark.parametrize("patch", [activation_patching, attribution_patching])
def test_unknown_component_is_refused(lms, patch):
    with pytest.raises(UserError, match="got 'attn.scores'"):
        patch(lms["rope"], **CONTRAST, part="attn.scores")


@pytest.mark.parametrize("patch", PATCHING_METHODS)
def test_progress_callback_can_cancel(lms, patch):
    shares = []
    patch(lms["rope"], **CONTRAST, progress=shares.append)
    assert shares == sorted(shares) and shares[-1] == 1

    def cancel(share: float):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        patch(lms["rope"], **CONTRAST, progress=cancel)
    assert not any(module._forward_hooks for module in lms["rope"].modules())
