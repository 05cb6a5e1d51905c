"""Direct paths by brute force: one sender at a time, with z of the other heads frozen, in two hooked passes."""

from copy import deepcopy

import numpy as np
import pytest
from numpy.testing import assert_allclose

from explorer import path_patching
from explorer.errors import UserError
from tests.exhaustive import pairwise_params
from tests.subtest_loops import each_style, subtest_each

from .manual_patching import CLEAN, CONTRAST, CORRUPTED, measure_metric, patch_hook, values


def brute_force(lm, sender, receiver, direction, through_ffn) -> float:
    recipient, donor = (CORRUPTED, CLEAN) if direction == "denoise" else (CLEAN, CORRUPTED)
    layers = range(lm.config.num_layers)
    heads, ffns = ([f"blocks.{layer}.{name}" for layer in layers] for name in ("attn.z", "ffn.out"))
    target_values = values(lm, recipient, *heads, *ffns)
    freeze = {
        name: lambda _value, name=name: target_values[name] for name in (heads if through_ffn else [*heads, *ffns])
    }
    z = heads[sender[0]]
    sent = target_values[z].clone()
    sent[0, sender[1]] = values(lm, donor, z)[z][0, sender[1]]
    freeze[z] = lambda _value: sent
    clean, corrupted = measure_metric(lm, CLEAN), measure_metric(lm, CORRUPTED)
    if receiver == "logits":
        after = measure_metric(lm, recipient, freeze)
    else:
        layer, head, name = receiver
        tap = f"blocks.{layer}.attn.{name}"
        captured = []
        measure_metric(lm, recipient, freeze | {tap: lambda value: captured.append(value) or value})
        after = measure_metric(lm, recipient, {tap: patch_hook(captured[0], head)})
    return (after - (corrupted if direction == "denoise" else clean)) / (clean - corrupted)


RECEIVERS = ["logits", (1, 1, "q"), (1, 2, "k"), (1, 0, "v"), (0, 1, "q")]


@each_style
@subtest_each(("receiver", "how"), pairwise_params(RECEIVERS, [("denoise", False), ("noise", True)]), ids=str)
def test_effects_equal_two_manual_passes(lms, style, receiver, how):
    lm, (direction, through_ffn) = deepcopy(lms[style]).double(), how
    how = {"receiver": receiver, "direction": direction, "through_ffn": through_ffn}
    effects = path_patching(lm, **CONTRAST, **how)
    expected = np.empty((lm.config.num_layers, lm.config.num_heads))
    for sender in np.ndindex(expected.shape):
        expected[sender] = brute_force(lm, sender, receiver, direction, through_ffn)
    effect = path_patching(lm, **CONTRAST, **how, sender=(0, 2))
    assert_allclose(effects, expected, atol=1e-5)
    assert isinstance(effect, float) and effect == pytest.approx(expected[0, 2], abs=1e-5)
    assert np.ptp(effects) > (0 if receiver == (0, 1, "q") else 1e-4) or not effects.any()


@each_style
def test_senders_after_receiver_have_no_effect(lms, style):
    effects = path_patching(lms[style], **CONTRAST, receiver=(1, 0, "q"))
    assert effects[0].any() and not effects[1].any()
    assert path_patching(lms[style], **CONTRAST, receiver=(0, 0, "q"), sender=(1, 1)) == 0


@subtest_each("receiver", ["logit", (1, 0), (1, 0, "z"), (2, 0, "q"), (1, 3, "q"), (-1, 0, "q"), (0, -1, "k")], ids=str)
def test_unknown_receiver_is_refused(lms, receiver):
    with pytest.raises(UserError):
        path_patching(lms["rope"], **CONTRAST, receiver=receiver)


@pytest.mark.parametrize("sender", [(2, 0), (0, 3), (-1, 0)])
def test_unknown_sender_is_refused(lms, sender):
    with pytest.raises(UserError, match="the model has no layer"):
        path_patching(lms["rope"], **CONTRAST, receiver="logits", sender=sender)


def test_grouped_key_and_value_heads_can_receive(lms):
    with pytest.raises(UserError):
        path_patching(lms["grouped"], **CONTRAST, receiver=(1, 3, "k"))
    path_patching(lms["grouped"], **CONTRAST, receiver=(1, 5, "q"))
    lm = deepcopy(lms["grouped"]).double()
    for name, shared in (("k", 2), ("v", 1)):
        receiver = (1, shared, name)
        for head in (1, 4):
            expected = brute_force(lm, (0, head), receiver, "denoise", False)
            assert path_patching(lm, **CONTRAST, receiver=receiver, sender=(0, head)) == pytest.approx(
                expected, abs=1e-5
            )


@each_style
def test_model_is_left_unchanged(lms, style):
    path_patching(lms[style], **CONTRAST, receiver=(1, 0, "v"))
    assert not any(module._forward_hooks for module in lms[style].modules())
