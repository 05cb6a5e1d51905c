"""Runs with interventions equal runs of models with changed weights, and leave the model unchanged."""

from copy import deepcopy

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from explorer.interventions import make_intervention, parse_interventions
from explorer.tracing.capture import capture
from tests.subtest_loops import each_style

from .intervention_runs import IDS, assert_clean, run


@each_style
def test_head_ablation_equals_zero_output_weights(lms, style):
    without = deepcopy(lms[style])
    d = without.config.d_head
    without.blocks[0].attn.o_proj.weight[:, d : 2 * d] = 0
    ablated, expected = run(lms[style], "blocks.0.attn.z.1*zero"), run(without)
    assert not ablated["blocks.0.attn.z"][1].any()
    names = list(expected.values)
    for name in names[names.index("blocks.0.attn.out") :]:
        assert_allclose(ablated[name], expected[name], atol=1e-5, err_msg=name)


@each_style
def test_neuron_ablation_equals_zero_output_weights(lms, style):
    without = deepcopy(lms[style])
    without.blocks[1].ffn.down_proj.weight[:, 7] = 0
    assert_allclose(run(lms[style], "blocks.1.ffn.hidden.7*zero")["logits"], run(without)["logits"], atol=1e-5)


def test_sublayer_scale_equals_scaled_weights(lms):
    louder = deepcopy(lms["rope"])
    louder.blocks[0].ffn.down_proj.weight *= -2.5
    assert_allclose(run(lms["rope"], "blocks.0.ffn.out*scale*-2.5")["logits"], run(louder)["logits"], atol=1e-5)


@each_style
def test_values_before_intervention_are_unchanged(lms, style):
    plain, changed = run(lms[style]), run(lms[style], "blocks.1.attn.pattern.2*scale*0.5")
    names = list(plain.values)
    tap_index = names.index("blocks.1.attn.pattern")
    for name in names[:tap_index]:
        assert_array_equal(changed[name], plain[name], err_msg=name)
    assert_array_equal(changed[names[tap_index]][2], plain[names[tap_index]][2] * np.float32(0.5))
    assert_array_equal(changed[names[tap_index]][:2], plain[names[tap_index]][:2])


@each_style
def test_every_tap_accepts_interventions(lms, style):
    plain = run(lms[style])
    for tap in plain.values:
        changed = run(lms[style], f"{tap}.0*zero")
        part = changed[tap][0] if changed[tap].ndim == 3 else changed[tap][:, 0]
        assert not part.any(), tap
        assert tap == "logits" or not np.array_equal(changed["logits"], plain["logits"]), tap


@each_style
def test_trace_lists_its_interventions(lms, style):
    before = run(lms[style])
    changed = run(lms[style], "embed*scale*2", "blocks.0.attn.z.0*zero")
    assert changed.edits == (
        make_intervention("embed", "scale", 2),
        make_intervention("blocks.0.attn.z", "zero", index=0),
    )
    after = run(lms[style])
    assert after.edits == () and after.baseline is None
    for name, value in before.values.items():
        assert_array_equal(after[name], value, err_msg=name)
    assert_clean(lms[style])


@pytest.mark.parametrize(
    ("text", "message"),
    [("position_embed*zero", "no value position_embed"), ("blocks.0.attn.z.3*zero", "attn.z has heads 0 to 2, got 3")],
)
def test_missing_tap_is_refused_before_run(tiny_lm, text, message):
    with pytest.raises(ValueError, match=message):
        run(tiny_lm, "embed*scale*2", text)
    assert_clean(tiny_lm)


def test_interventions_are_removed_after_an_error(tiny_lm):
    def fail(module, inputs):
        raise RuntimeError("in the middle")

    handle = tiny_lm.blocks[1].ffn.register_forward_pre_hook(fail)
    with pytest.raises(RuntimeError, match="in the middle"):
        run(tiny_lm, "embed*scale*2")
    handle.remove()
    assert_clean(tiny_lm)


@each_style
def test_mean_covers_only_prompt(lms, style):
    """Without a prompt, the mean is over the whole first pass."""
    lm, name = lms[style], "blocks.1.attn.z"
    (mean,) = parse_interventions(f"{name}.1*mean")
    plain, changed = capture(lm, IDS), capture(lm, IDS, [mean.for_prompt(IDS[:4])])
    z = plain[name].copy()
    z[1, :4] = z[1, :4].mean(0)
    assert_allclose(changed[name], z, atol=1e-6)
    assert_allclose(
        capture(lm, IDS, [mean])[name][1], np.broadcast_to(plain[name][1].mean(0), plain[name][1].shape), atol=1e-6
    )
    with pytest.raises(ValueError, match="over the prompt’s 13 tokens, and the model sees only 12"):
        capture(lm, IDS, [mean.for_prompt(range(13))])
    assert_clean(lm)
