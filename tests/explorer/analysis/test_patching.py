"""What patched runs say, by metrics that are measured once for all maps."""

from functools import partial

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


LONGER = (40, 41, 77, 42, 43, 44, 45, 46)  # the clean prompt has no partner for 77
PARTNERS = {"denoise": (0, 1, 3, 4, 5, 6, 7), "noise": (0, 1, None, 2, 3, 4, 5, 6)}


@pytest.fixture
def unequal(lms, style) -> PatchingQuestion:
    identity = capture(lms[style], CLEAN).model
    both = tuple(PARTNERS[direction] for direction in DIRECTIONS)
    return PatchingQuestion(identity, LONGER, tuple(CORRUPTED), CONTRAST["answer"], CONTRAST["wrong"], both)


def by_hand(lm, direction: str, tap: str, place: int, at: int | None) -> float:
    """The metric with the donor's values at partners in one head at all positions, or at one of the clean prompt."""
    recipient, donor = (CORRUPTED, LONGER) if direction == "denoise" else (LONGER, CORRUPTED)
    given, heads = values(lm, donor, tap)[tap], "attn" in tap and not tap.endswith("out")

    def change(value):
        value = value.clone()
        for i, partner in enumerate(PARTNERS[direction]):
            if partner is None:
                continue
            if heads:
                value[0, place, i] = given[0, place, partner]
            elif at == (partner if direction == "denoise" else i):
                value[0, i] = given[0, partner]
        return value

    return measured(lm, recipient, {tap: change})


def test_of_unequal_prompts_values_go_over_between_partners(lms, style, unequal):
    lm = lms[style]
    clean, corrupted = measured(lm, LONGER), measured(lm, CORRUPTED)
    for direction, base in (("denoise", corrupted), ("noise", clean)):
        for part in BY_POSITION:
            found = part_effects(unequal, part, "logit_difference", direction)
            assert found.shape == (2, len(LONGER)) and np.isnan(found[:, 2]).all()
            for at in (0, 3, 7):
                expected = (by_hand(lm, direction, f"blocks.1.{part}", 0, at) - base) / (clean - corrupted)
                assert found[1, at] == pytest.approx(expected, abs=2e-4)
        for part in ("attn.z", "attn.q", "attn.k", "attn.v"):
            found = part_effects(unequal, part, "logit_difference", direction)
            expected = (by_hand(lm, direction, f"blocks.0.{part}", 1, None) - base) / (clean - corrupted)
            assert found[0, 1] == pytest.approx(expected, abs=2e-4)
        assert np.isnan(part_effects(unequal, "attn.pattern", "logit_difference", direction)).all()
    assert unequal.put_at("noise") == (0, 1, None, 3, 4, 5, 6, 7)
    assert unequal.put_at("denoise") == (0, 1, None, 2, 3, 4, 5, 6)


def test_of_unequal_prompts_a_changed_run_measures_the_same(unequal):
    for place, direction in enumerate(DIRECTIONS):
        for part, cell, text in (
            ("resid_pre", (1, 4), f"blocks.1.resid_pre@{unequal.put_at(direction)[4]}*patch"),
            ("attn.k", (0, 1), "blocks.0.attn.k.1*patch"),
        ):
            found = unequal.parts()[part][(place, slice(None), *cell)]
            assert_allclose(unequal.changed(direction, parse_edit(text)), found, atol=2e-5)
        found = unequal.neurons(1)[place][:, 7]
        assert_allclose(unequal.changed(direction, parse_edit("blocks.1.ffn.hidden.7*patch")), found, atol=2e-5)


def test_of_unequal_prompts_estimates_are_slopes(lms, style, unequal):
    """A small share of the way there by hand changes the metric by that share of the estimate."""
    lm, share = lms[style], 0.01
    clean, corrupted = measured(lm, LONGER), measured(lm, CORRUPTED)
    for direction, base in (("denoise", corrupted), ("noise", clean)):
        recipient, donor = (CORRUPTED, LONGER) if direction == "denoise" else (LONGER, CORRUPTED)
        tap = "blocks.0.attn.z"
        given = values(lm, donor, tap)[tap]

        def change(value, given=given, direction=direction):
            value = value.clone()
            for i, partner in enumerate(PARTNERS[direction]):
                if partner is not None:
                    value[0, 1, i] += share * (given[0, 1, partner] - value[0, 1, i])
            return value

        slope = (measured(lm, recipient, {tap: change}) - base) / share / (clean - corrupted)
        assert unequal.estimate(direction, "attn.z", "logit_difference")[0, 1] == pytest.approx(
            slope, rel=0.05, abs=0.02
        )
        found = unequal.estimate(direction, "resid_pre", "logit_difference")
        assert np.isnan(found[:, 2]).all() and np.isfinite(np.delete(found, 2, axis=1)).all()


@pytest.mark.parametrize("part", ["attn.q", "attn.k"])
def test_queries_and_keys_are_estimated_where_they_come_to_stand(lms, unequal, style, part):
    """The pattern that they give at the recipient's positions, by hand; then a small share of the way to it."""
    lm, share, pattern = lms[style], 0.01, "blocks.0.attn.pattern"
    clean, corrupted = measured(lm, LONGER), measured(lm, CORRUPTED)
    group = lm.config.num_heads // lm.config.kv_heads if part == "attn.k" else 1
    for direction in ("denoise", "noise"):
        recipient, donor = (CORRUPTED, LONGER) if direction == "denoise" else (LONGER, CORRUPTED)
        given, seen = values(lm, donor, f"blocks.0.{part}")[f"blocks.0.{part}"], []

        def put(value, given=given, direction=direction):
            value = value.clone()
            for i, partner in enumerate(PARTNERS[direction]):
                if partner is not None:
                    value[0, 1, i] = given[0, 1, partner]
            return value

        measured(lm, recipient, {f"blocks.0.{part}": put, pattern: seen.append})

        def towards(value, share, seen=seen):
            value = value.clone()
            heads = slice(group, 2 * group)
            value[:, heads] += share * (seen[0][:, heads] - value[:, heads])
            return value

        ahead, back = (measured(lm, recipient, {pattern: partial(towards, share=s)}) for s in (share, -share))
        slope = (ahead - back) / (2 * share) / (clean - corrupted)
        found = unequal.estimate(direction, part, "logit_difference")[0, 1]
        assert found == pytest.approx(slope, rel=0.05, abs=0.02)


def test_an_estimate_is_held_against_what_is_defined_alone():
    exact = np.array([[0.0, 1.0, np.nan], [0.5, -0.2, np.nan]])
    held = agreement(exact, np.where(np.isnan(exact), np.nan, exact * 0.5), 6)
    assert held.correlation == pytest.approx(1) and held.worst[:2] == ((0, 1), (1, 0))
    assert held.worst[-2:] == ((0, 2), (1, 2))
