"""What patched runs say, by metrics that are measured once for all maps."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from explorer import activation_patching, attribution_patching, path_patching
from explorer.analysis.patching import agreement, effects, metric_of, neuron_effects, part_effects, strongest
from explorer.state.interventions import parse_edit
from explorer.tracing.capture import capture
from explorer.tracing.patching import contrast as contrasts
from explorer.tracing.patching_question import BY_HEAD, BY_POSITION, DIRECTIONS, METRICS, PatchingQuestion
from tests.explorer.tracing.patching.by_hand import CLEAN, CONTRAST, CORRUPTED, measured, values


@pytest.fixture
def question(lms, style) -> PatchingQuestion:
    identity = capture(lms[style], CLEAN).model
    return PatchingQuestion(identity, tuple(CLEAN), tuple(CORRUPTED), CONTRAST["answer"], CONTRAST["wrong"])


def test_all_maps_are_those_of_activation_patching(lms, style, question):
    for part, direction, metric in [
        *((part, direction, "logit_difference") for part in BY_POSITION + BY_HEAD for direction in DIRECTIONS),
        *(("attn.z", direction, metric) for direction in DIRECTIONS for metric in METRICS),
    ]:
        expected = activation_patching(lms[style], **CONTRAST, part=part, direction=direction, metric=metric)
        assert_allclose(part_effects(question, part, metric, direction), expected, atol=2e-4)


@pytest.mark.parametrize("receiver", ["logits", (1, 0, "q"), (1, 1, "v")])
def test_paths_are_those_of_path_patching(lms, style, question, receiver):
    for direction in DIRECTIONS:
        expected = path_patching(lms[style], **CONTRAST, receiver=receiver, direction=direction)
        found = effects(question, question.paths(direction, receiver), "logit_difference", direction)
        last = 2 if receiver == "logits" else 1
        assert_allclose(found[:last], expected[:last], atol=1e-9)
        assert np.isnan(found[last:]).all()


def test_estimates_are_those_of_attribution_patching(lms, style, question):
    expected = attribution_patching(lms[style], **CONTRAST, part="attn.z", direction="noise")
    assert_allclose(question.estimate("noise", "attn.z", "logit_difference"), expected)


def test_each_neuron_is_put_in_alone(lms, style, question):
    lm, found = lms[style], neuron_effects(question, 1, "logit_difference")
    clean, corrupted = measured(lm, CLEAN), measured(lm, CORRUPTED)
    assert found.shape == (2, lm.config.d_ff)
    tap, runs = "blocks.1.ffn.hidden", ((CORRUPTED, CLEAN, corrupted), (CLEAN, CORRUPTED, clean))
    for row, (recipient, donor, base) in zip(found, runs, strict=True):
        for neuron in (0, 7, 39):
            given = values(lm, donor, tap)[tap][0, :, neuron]

            def put(module, inputs, output, neuron=neuron, given=given):
                output = output.clone()
                output[0, :, neuron] = given
                return output

            handle = lm.taps[tap].register_forward_hook(put)
            try:
                after = measured(lm, recipient)
            finally:
                handle.remove()
            assert row[neuron] == pytest.approx((after - base) / (clean - corrupted), abs=2e-4)
    order = strongest(found, 5)
    assert np.abs(found).max(0)[order].tolist() == sorted(np.abs(found).max(0), reverse=True)[:5]


def test_an_ordinary_changed_run_measures_the_same(question):
    """By the hooks of interventions, and one run at a time."""
    for part, cell, text in (
        ("resid_pre", (1, 3), "blocks.1.resid_pre@3*patch"),
        ("attn.k", (0, 1), "blocks.0.attn.k.1*patch"),
        ("attn.pattern", (1, 2), "blocks.1.attn.pattern.2*patch"),
    ):
        for place, direction in enumerate(DIRECTIONS):
            found = question.parts()[part][(place, slice(None), *cell)]
            assert_allclose(question.changed(direction, parse_edit(text)), found, atol=2e-5)


def test_metrics_are_worked_out_of_logits(question, lms, style):
    logits = capture(lms[style], CLEAN)["logits"][-1]
    found = metric_of(logits, question.answer, question.wrong)
    assert_allclose(found, question.unpatched[0], atol=1e-5)
    ln = torch.tensor(logits).double().log_softmax(-1)
    assert_allclose(found[1:], [ln[question.answer], ln[question.answer].exp()], atol=1e-6)
    assert tuple(contrasts.METRICS) == METRICS


def test_two_runs_alike_have_no_effects(lms):
    identity = capture(lms["rope"], CLEAN).model
    question = PatchingQuestion(identity, tuple(CLEAN), tuple(CLEAN), 1, 2)
    assert np.isnan(part_effects(question, "attn.z", "logit_difference", "denoise")).all()


def test_an_estimate_is_held_against_what_it_estimates():
    exact = np.array([[0.0, 1.0], [0.5, -0.2]])
    held = agreement(exact, exact * 0.5, 2)
    assert held.correlation == pytest.approx(1) and held.worst == ((0, 1), (1, 0)) and held.errors == (-0.5, -0.25)
    assert np.isnan(agreement(exact, np.zeros((2, 2))).correlation)
    assert agreement(exact, exact[:, ::-1]).correlation == pytest.approx(
        np.corrcoef(exact.ravel(), exact[:, ::-1].ravel())[0, 1]
    )
