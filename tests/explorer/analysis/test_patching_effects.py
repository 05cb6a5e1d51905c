"""Effects of patching, with metrics that one pass measures for all maps."""

from functools import cache, partial

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from explorer import activation_patching, attribution_patching, path_patching
from explorer.analysis.patching_effects import (
    EffectMove,
    compare_estimate,
    component_effects,
    layers_of_largest_effect,
    layers_of_move,
    logit_metrics,
    neuron_effects,
    patching_effects,
    strongest_neuron_indices,
)
from explorer.interventions import parse_intervention
from explorer.tracing.capture import capture
from explorer.tracing.patching.experiment import PatchingExperiment
from explorer.tracing.patching.patching_setup import BY_HEAD, BY_POSITION, DIRECTIONS, METRICS
from tests.explorer.tracing.patching.manual_patching import CLEAN, CONTRAST, CORRUPTED, measure_metric, values
from tests.sample_models import models
from tests.subtest_loops import each_style, subtest_each


@cache
def make_patching_experiment(style: str) -> PatchingExperiment:
    identity = capture(models()[style], CLEAN).model
    return PatchingExperiment(identity, tuple(CLEAN), tuple(CORRUPTED), CONTRAST["answer"], CONTRAST["wrong"])


@each_style
def test_component_effects_match_activation_patching(lms, style):
    patching_experiment = make_patching_experiment(style)
    for part, direction, metric in [
        *((part, direction, "logit_difference") for part in BY_POSITION + BY_HEAD for direction in DIRECTIONS),
        *(("attn.z", direction, metric) for direction in DIRECTIONS for metric in METRICS),
    ]:
        expected = activation_patching(lms[style], **CONTRAST, part=part, direction=direction, metric=metric)
        assert_allclose(component_effects(patching_experiment, part, metric, direction), expected, atol=2e-4)


@each_style
@subtest_each("receiver", ["logits", (1, 0, "q"), (1, 1, "v")])
def test_path_effects_match_path_patching(lms, style, receiver):
    patching_experiment = make_patching_experiment(style)
    for direction in DIRECTIONS:
        expected = path_patching(lms[style], **CONTRAST, receiver=receiver, direction=direction)
        path_effects = patching_effects(
            patching_experiment, patching_experiment.path_metrics(direction, receiver), "logit_difference", direction
        )
        last = 2 if receiver == "logits" else 1
        assert_allclose(path_effects[:last], expected[:last], atol=1e-9)
        assert np.isnan(path_effects[last:]).all()


@each_style
def test_estimates_match_attribution_patching(lms, style):
    patching_experiment = make_patching_experiment(style)
    expected = attribution_patching(lms[style], **CONTRAST, part="attn.z", direction="noise")
    assert_allclose(patching_experiment.estimate("noise", "attn.z", "logit_difference"), expected)


@each_style
def test_neuron_effects_match_patching_one_neuron(lms, style):
    patching_experiment = make_patching_experiment(style)
    lm, neuron_effect = lms[style], neuron_effects(patching_experiment, 1, "logit_difference")
    clean, corrupted = measure_metric(lm, CLEAN), measure_metric(lm, CORRUPTED)
    assert neuron_effect.shape == (2, lm.config.d_ff)
    tap, runs = "blocks.1.ffn.hidden", ((CORRUPTED, CLEAN, corrupted), (CLEAN, CORRUPTED, clean))
    for row, (recipient, donor, base) in zip(neuron_effect, runs, strict=True):
        for neuron in (0, 7, 39):
            patch_values = values(lm, donor, tap)[tap][0, :, neuron]

            def patch_neuron(module, inputs, output, neuron=neuron, patch_values=patch_values):
                output = output.clone()
                output[0, :, neuron] = patch_values
                return output

            handle = lm.taps[tap].register_forward_hook(patch_neuron)
            try:
                after = measure_metric(lm, recipient)
            finally:
                handle.remove()
            assert row[neuron] == pytest.approx((after - base) / (clean - corrupted), abs=2e-4)
    order = strongest_neuron_indices(neuron_effect, 5)
    assert np.abs(neuron_effect).max(0)[order].tolist() == sorted(np.abs(neuron_effect).max(0), reverse=True)[:5]


@each_style
def test_rerun_with_patch_matches_component_metrics(style):
    """Patching through the intervention hooks, one run at a time, has the same effects."""
    patching_experiment = make_patching_experiment(style)
    for part, cell, text in (
        ("resid_pre", (1, 3), "blocks.1.resid_pre@3*patch"),
        ("attn.k", (0, 1), "blocks.0.attn.k.1*patch"),
        ("attn.pattern", (1, 2), "blocks.1.attn.pattern.2*patch"),
    ):
        for row, direction in enumerate(DIRECTIONS):
            cell_metrics = patching_experiment.component_metrics(part)[(row, slice(None), *cell)]
            assert_allclose(
                patching_experiment.rerun_with_patch(direction, parse_intervention(text)), cell_metrics, atol=2e-5
            )


@each_style
def test_metrics_are_computed_from_logits(style, lms):
    patching_experiment = make_patching_experiment(style)
    logits = capture(lms[style], CLEAN)["logits"][-1]
    metrics = logit_metrics(logits, patching_experiment.answer, patching_experiment.wrong)
    assert_allclose(metrics, patching_experiment.unpatched_metrics[0], atol=1e-5)
    ln = torch.tensor(logits).double().log_softmax(-1)
    assert_allclose(metrics[1:], [ln[patching_experiment.answer], ln[patching_experiment.answer].exp()], atol=1e-6)


def test_identical_prompts_have_undefined_effects(lms):
    identity = capture(lms["rope"], CLEAN).model
    patching_experiment = PatchingExperiment(identity, tuple(CLEAN), tuple(CLEAN), 1, 2)
    assert np.isnan(component_effects(patching_experiment, "attn.z", "logit_difference", "denoise")).all()


def test_estimate_is_compared_with_exact_effects():
    exact = np.array([[0.0, 1.0], [0.5, -0.2]])
    fit = compare_estimate(exact, exact * 0.5, 2)
    assert fit.correlation == pytest.approx(1) and fit.worst == ((0, 1), (1, 0)) and fit.errors == (-0.5, -0.25)
    assert np.isnan(compare_estimate(exact, np.zeros((2, 2))).correlation)
    assert compare_estimate(exact, exact[:, ::-1]).correlation == pytest.approx(
        np.corrcoef(exact.ravel(), exact[:, ::-1].ravel())[0, 1]
    )


LONG_CLEAN = (40, 41, 77, 42, 43, 44, 45, 46)  # the clean prompt has no partner for 77
PARTNERS = {"denoise": (0, 1, 3, 4, 5, 6, 7), "noise": (0, 1, None, 2, 3, 4, 5, 6)}


@cache
def make_unequal_experiment(style: str) -> PatchingExperiment:
    identity = capture(models()[style], CLEAN).model
    both = tuple(PARTNERS[direction] for direction in DIRECTIONS)
    return PatchingExperiment(identity, LONG_CLEAN, tuple(CORRUPTED), CONTRAST["answer"], CONTRAST["wrong"], both)


def patch_by_hand(lm, direction: str, tap: str, head: int, position: int | None) -> float:
    """Return the metric with the source's aligned values patched into one head or one position."""
    recipient, donor = (CORRUPTED, LONG_CLEAN) if direction == "denoise" else (LONG_CLEAN, CORRUPTED)
    patch_values, heads = values(lm, donor, tap)[tap], "attn" in tap and not tap.endswith("out")

    def patch_value(value):
        value = value.clone()
        for i, partner in enumerate(PARTNERS[direction]):
            if partner is None:
                continue
            if heads:
                value[0, head, i] = patch_values[0, head, partner]
            elif position == (partner if direction == "denoise" else i):
                value[0, i] = patch_values[0, partner]
        return value

    return measure_metric(lm, recipient, {tap: patch_value})


@each_style
def test_unequal_prompts_patch_between_aligned_positions(lms, style):
    unequal_experiment = make_unequal_experiment(style)
    lm = lms[style]
    clean, corrupted = measure_metric(lm, LONG_CLEAN), measure_metric(lm, CORRUPTED)
    for direction, base in (("denoise", corrupted), ("noise", clean)):
        for part in BY_POSITION:
            effect = component_effects(unequal_experiment, part, "logit_difference", direction)
            assert effect.shape == (2, len(LONG_CLEAN)) and np.isnan(effect[:, 2]).all()
            for position in (0, 3, 7):
                expected = (patch_by_hand(lm, direction, f"blocks.1.{part}", 0, position) - base) / (clean - corrupted)
                assert effect[1, position] == pytest.approx(expected, abs=2e-4)
        for part in ("attn.z", "attn.q", "attn.k", "attn.v"):
            effect = component_effects(unequal_experiment, part, "logit_difference", direction)
            expected = (patch_by_hand(lm, direction, f"blocks.0.{part}", 1, None) - base) / (clean - corrupted)
            assert effect[0, 1] == pytest.approx(expected, abs=2e-4)
        assert np.isnan(component_effects(unequal_experiment, "attn.pattern", "logit_difference", direction)).all()
    assert unequal_experiment.target_positions("noise") == (0, 1, None, 3, 4, 5, 6, 7)
    assert unequal_experiment.target_positions("denoise") == (0, 1, None, 2, 3, 4, 5, 6)


@each_style
def test_unequal_prompts_rerun_with_patch_matches(style):
    unequal_experiment = make_unequal_experiment(style)
    for row, direction in enumerate(DIRECTIONS):
        for part, cell, text in (
            ("resid_pre", (1, 4), f"blocks.1.resid_pre@{unequal_experiment.target_positions(direction)[4]}*patch"),
            ("attn.k", (0, 1), "blocks.0.attn.k.1*patch"),
        ):
            cell_metrics = unequal_experiment.component_metrics(part)[(row, slice(None), *cell)]
            assert_allclose(
                unequal_experiment.rerun_with_patch(direction, parse_intervention(text)), cell_metrics, atol=2e-5
            )
        cell_metrics = unequal_experiment.neuron_metrics(1)[row][:, 7]
        assert_allclose(
            unequal_experiment.rerun_with_patch(direction, parse_intervention("blocks.1.ffn.hidden.7*patch")),
            cell_metrics,
            atol=2e-5,
        )


@each_style
def test_unequal_prompts_estimates_are_slopes(lms, style):
    """A small step towards the source's value, by hand, changes the metric by that share of the estimate."""
    unequal_experiment = make_unequal_experiment(style)
    lm, share = lms[style], 0.01
    clean, corrupted = measure_metric(lm, LONG_CLEAN), measure_metric(lm, CORRUPTED)
    for direction, base in (("denoise", corrupted), ("noise", clean)):
        recipient, donor = (CORRUPTED, LONG_CLEAN) if direction == "denoise" else (LONG_CLEAN, CORRUPTED)
        tap = "blocks.0.attn.z"
        patch_values = values(lm, donor, tap)[tap]

        def step_towards(value, patch_values=patch_values, direction=direction):
            value = value.clone()
            for i, partner in enumerate(PARTNERS[direction]):
                if partner is not None:
                    value[0, 1, i] += share * (patch_values[0, 1, partner] - value[0, 1, i])
            return value

        slope = (measure_metric(lm, recipient, {tap: step_towards}) - base) / share / (clean - corrupted)
        assert unequal_experiment.estimate(direction, "attn.z", "logit_difference")[0, 1] == pytest.approx(
            slope, rel=0.05, abs=0.02
        )
        estimates = unequal_experiment.estimate(direction, "resid_pre", "logit_difference")
        assert np.isnan(estimates[:, 2]).all() and np.isfinite(np.delete(estimates, 2, axis=1)).all()


@each_style
@subtest_each("part", ["attn.q", "attn.k"])
def test_query_and_key_estimates_use_recipient_positions(lms, style, part):
    """The expected slope is that of a small step towards the pattern from the patched queries or keys."""
    unequal_experiment = make_unequal_experiment(style)
    lm, share, pattern = lms[style], 0.01, "blocks.0.attn.pattern"
    clean, corrupted = measure_metric(lm, LONG_CLEAN), measure_metric(lm, CORRUPTED)
    group = lm.config.num_heads // lm.config.kv_heads if part == "attn.k" else 1
    for direction in ("denoise", "noise"):
        recipient, donor = (CORRUPTED, LONG_CLEAN) if direction == "denoise" else (LONG_CLEAN, CORRUPTED)
        patch_values, patterns = values(lm, donor, f"blocks.0.{part}")[f"blocks.0.{part}"], []

        def patch_head(value, patch_values=patch_values, direction=direction):
            value = value.clone()
            for i, partner in enumerate(PARTNERS[direction]):
                if partner is not None:
                    value[0, 1, i] = patch_values[0, 1, partner]
            return value

        measure_metric(lm, recipient, {f"blocks.0.{part}": patch_head, pattern: patterns.append})

        def step_towards(value, share, patterns=patterns):
            value = value.clone()
            heads = slice(group, 2 * group)
            value[:, heads] += share * (patterns[0][:, heads] - value[:, heads])
            return value

        forwards, backwards = (
            measure_metric(lm, recipient, {pattern: partial(step_towards, share=s)}) for s in (share, -share)
        )
        slope = (forwards - backwards) / (2 * share) / (clean - corrupted)
        estimate = unequal_experiment.estimate(direction, part, "logit_difference")[0, 1]
        assert estimate == pytest.approx(slope, rel=0.05, abs=0.02)


def test_comparison_ignores_undefined_effects():
    exact = np.array([[0.0, 1.0, np.nan], [0.5, -0.2, np.nan]])
    fit = compare_estimate(exact, np.where(np.isnan(exact), np.nan, exact * 0.5), 6)
    assert fit.correlation == pytest.approx(1) and fit.worst[:2] == ((0, 1), (1, 0))
    assert fit.worst[-2:] == ((0, 2), (1, 2))


def test_layers_near_largest_effect_tie_at_its_position():
    effects = np.array([[0.0, 0.99, 0.0], [0.0, 1.0, np.nan], [0.99, 0.985, 0.0], [0.0, 0.9, 0.2], [0.0, 0.99, 0.5]])
    assert layers_of_largest_effect(effects) == (range(3), 1)
    assert layers_of_largest_effect(-effects) == (range(3), 1)
    assert layers_of_largest_effect(effects * [[1.0], [1.5], [1.0], [1.0], [1.0]]) == (range(1, 2), 1)


def test_move_of_an_effect_is_told_only_if_two_tokens_have_it():
    effects = np.array([[1.0, 0.0, 0.0], [0.8, 0.2, 0.1], [0.3, 0.3, 0.4], [0.1, np.nan, 0.9]])
    assert layers_of_move(effects) == EffectMove(position=0, last_layer=1, first_layer_at_end=3)
    assert layers_of_move(effects[:, ::-1]) is None  # it stands at the end, and leaves it
    assert layers_of_move(effects[:3]) is None  # it does not arrive
    assert layers_of_move(effects * [[0.5], [1], [1], [1]]) is None  # several tokens begin it
    assert layers_of_move(effects + [[0], [0], [0.3], [0]]) is None  # another token in between
    assert layers_of_move(effects + [[0, 0, 0], [0, 0, 0.5], [0, 0, 0.5], [0, 0, 0]]) is None  # both in layer 1
