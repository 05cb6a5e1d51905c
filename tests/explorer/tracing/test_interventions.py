"""Each kind of intervention equals PyTorch hooks by hand, and changes nothing else."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

from explorer.explain.captured import check_captured_value
from explorer.interventions import KINDS, parse_interventions
from explorer.tracing.capture import capture
from model.transformer_lm import TransformerLM
from tests import sample_models
from tests.subtest_loops import each_style, subtest_each

from .manual_interventions import IDS, MANUAL_HOOKS, assignment_hook, hooked_logits, run


@each_style
@subtest_each("text", MANUAL_HOOKS)
def test_intervention_equals_manual_hooks(lms, style, text):
    lm = lms[style]
    changed = run(lm, text)
    assert np.abs(changed["logits"] - run(lm)["logits"]).max() > 1e-4
    assert_allclose(changed["logits"], hooked_logits(lm, MANUAL_HOOKS[text](lm)), atol=2e-5)


@each_style
def test_gate_can_be_clamped(lms, style):
    lm, text = lms[style], "blocks.1.ffn.gate.7@3-*clamp*1.5"
    if not lm.config.is_gated:
        with pytest.raises(ValueError, match=r"no value blocks\.1\.ffn\.gate that could be changed"):
            run(lm, text)
        return
    expected = hooked_logits(lm, {"blocks.1.ffn.gate": assignment_hook((slice(3, None), 7), lambda x: 1.5)})
    assert_allclose(run(lm, text)["logits"], expected, atol=1e-5)


@each_style
@subtest_each("kind", ["rmsnorm", "layernorm", "none"])
@subtest_each("positions", ["", "@3-5.9-"])
@subtest_each("place", ["blocks.0.attn_norm", "blocks.1.ffn_norm", "final_norm"])
def test_norm_can_be_replaced(lms, style, place, positions, kind):
    lm, text = lms[style], f"{place}{positions}*norm*{kind}"
    if lm.config.norm_placement == "post" and place == "final_norm":
        with pytest.raises(ValueError, match="no norm at final_norm: its last layer ends with one"):
            run(lm, text)
        return
    if lm.config.norm_placement == "shared" and place == "blocks.1.ffn_norm":
        with pytest.raises(ValueError, match=r"no value blocks\.1\.ffn_norm that could be changed"):
            run(lm, text)
        return
    module, left = lm.taps[place], [0, 1, 2, 6, 7, 8] if positions else []

    def by_formula(module, inputs, output):
        x = inputs[0].double()
        if kind == "none":
            x = x * module.weight
        else:
            x = x - x.mean(-1, keepdim=True) if kind == "layernorm" else x
            x = x / (x.square().mean(-1, keepdim=True) + lm.config.norm_eps).sqrt() * module.weight
            x = x + getattr(module, "bias", 0.0)
        x[:, left] = output[:, left].double()
        return x.float()

    with torch.inference_mode():
        handle = module.register_forward_hook(by_formula)
        expected = lm(torch.tensor([IDS]))[0]
        handle.remove()
    changed = run(lm, text)
    assert_allclose(changed["logits"], expected, atol=3e-5)
    assert (np.abs(changed["logits"] - run(lm)["logits"]).max() < 1e-4) == (kind == lm.config.norm)


@each_style
def test_last_norm_replacement_wins(lms, style):
    lm, tap = lms[style], "blocks.0.attn_norm"
    kinds = ("none", "rmsnorm" if lm.config.norm == "layernorm" else "layernorm")
    single = [run(lm, f"{tap}*norm*{kind}")[tap] for kind in kinds]
    both = run(lm, f"{tap}@2-8*norm*{kinds[0]}~{tap}@6-*norm*{kinds[1]}")
    assert_array_equal(both[tap][:2], run(lm)[tap][:2])
    assert_array_equal(both[tap][2:6], single[0][2:6])
    assert_array_equal(both[tap][6:], single[1][6:])
    assert check_captured_value(both, tap).is_within_tolerance


@each_style
def test_other_indices_are_unchanged(lms, style):
    """Only the chosen head, position or edge changes at the edited tap."""
    lm = lms[style]
    plain = run(lm)
    for text, chosen in {
        "blocks.0.attn.z.1@3-5*mean": (1, slice(3, 6)),
        "blocks.0.attn.pattern.1@5*mask*2": (1, 5),
        "blocks.0.attn.pattern.1@5*drop*2": (1, 5, 2),
        "blocks.0.ffn.hidden.7@4*clamp*9": (4, 7),
        "blocks.*.attn.pattern@5*drop*2": (slice(None), 5, 2),
        "blocks.0.attn_norm@4-6*norm*none": (slice(4, 7),),
        "blocks.0.resid_post@4*add*unembed.3*1": (4,),
        "blocks.0.resid_post@4.6*remove*unembed.3": ([4, 6],),
    }.items():
        (edit,) = parse_interventions(text)
        tap = edit.tap.replace("*", "0")
        changed, unchanged = run(lm, text)[tap].copy(), plain[tap].copy()
        assert np.abs(changed[chosen] - unchanged[chosen]).max() > 1e-4, text
        changed[chosen] = unchanged[chosen] = 0
        assert_array_equal(changed, unchanged, err_msg=text)


@each_style
def test_mask_renormalises_weights_and_drop_does_not(lms, style):
    lm = lms[style]
    plain = run(lm)["blocks.1.attn.pattern"][2, 9]
    masked, dropped = (
        run(lm, f"blocks.1.attn.pattern.2@9*{kind}*3")["blocks.1.attn.pattern"][2, 9] for kind in ("mask", "drop")
    )
    others = np.arange(10) != 3
    assert masked[3] == dropped[3] == 0 and not masked[10:].any()
    assert masked.sum() == pytest.approx(1, abs=1e-6)
    assert_allclose(masked[:10][others], plain[:10][others] / (1 - plain[3]), rtol=1e-5)
    assert_array_equal(dropped[:10][others], plain[:10][others])


@each_style
def test_masks_do_not_change_captured_scores(lms, style):
    name = "blocks.1.attn.scores"
    assert_array_equal(run(lms[style], "blocks.1.attn.pattern@5-*mask*2")[name], run(lms[style])[name])


def test_masks_apply_after_score_interventions(lms):
    """Holds also if the edit of the scores is listed after the mask."""
    changed = run(lms["rope"], "blocks.1.attn.pattern.2@9*mask*3~blocks.1.attn.scores.2*scale*3")
    scores = 3 * run(lms["rope"])["blocks.1.attn.scores"][2, 9, :10].astype(np.float64)
    exps = np.exp(scores - scores.max()) * (np.arange(10) != 3)
    assert_allclose(changed["blocks.1.attn.pattern"][2, 9, :10], exps / exps.sum(), atol=1e-6)


def test_masking_all_keys_of_query_is_refused(lms):
    masks = "~".join(f"blocks.1.attn.pattern.2@2*mask*{key}" for key in range(3))
    with pytest.raises(ValueError, match="query 2 would have no key left to attend to"):
        run(lms["rope"], masks)
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in lms["rope"].modules())


@each_style
def test_all_layers_edge_equals_one_edge_per_layer(lms, style):
    lm = lms[style]
    for kind in ("drop", "mask"):
        everywhere = run(lm, f"blocks.*.attn.pattern@9*{kind}*4")
        per_layer = run(
            lm, "~".join(f"blocks.{layer}.attn.pattern@9*{kind}*4" for layer in range(lm.config.num_layers))
        )
        assert [str(edit) for edit in everywhere.edits] == [f"blocks.*.attn.pattern@9*{kind}*4"]
        for name, value in per_layer.values.items():
            assert_array_equal(everywhere[name], value, err_msg=name)
        assert not everywhere.stack("blocks.*.attn.pattern")[:, :, 9, 4].any()


def test_operations_at_one_tap_have_a_fixed_order(lms):
    """Order: mean, then scale, then removed and added directions."""
    texts = (
        "blocks.0.resid_post*add*unembed.4*0.5",
        "blocks.0.resid_post*remove*unembed.3",
        "blocks.0.resid_post*scale*2",
        "blocks.0.resid_post*mean",
    )
    x = run(lms["rope"])["blocks.0.resid_post"].astype(np.float64)
    x = 2 * np.broadcast_to(x.mean(0), x.shape)
    rows = lms["rope"].state_dict()["lm_head.weight"].double().numpy()
    out, towards = (rows[i] / np.linalg.norm(rows[i]) for i in (3, 4))
    x = x - np.outer(x @ out, out)
    x = x + 0.5 * np.linalg.norm(x, axis=-1, keepdims=True) * towards
    for order in (texts, texts[::-1]):
        changed = run(lms["rope"], "~".join(order))
        assert_allclose(changed["blocks.0.resid_post"], x, atol=1e-5)
        assert check_captured_value(changed, "blocks.0.resid_post").is_within_tolerance


CHANGED_TAPS = {  # an intervention of each kind -> the tap that it changes
    "blocks.1.attn.z.1*mean": "blocks.1.attn.z",
    "blocks.1.attn.pattern.2@9*drop*3": "blocks.1.attn.pattern",
    "blocks.1.attn.pattern.2@9*mask*3": "blocks.1.attn.pattern",
    "blocks.*.attn.pattern@9*drop*4": "blocks.1.attn.pattern",
    "blocks.*.attn.pattern@9*mask*4": "blocks.1.attn.pattern",
    "blocks.1.ffn.hidden.7*clamp*2": "blocks.1.ffn.hidden",
    "blocks.1.attn_norm*norm*none": "blocks.1.attn_norm",
    "blocks.0.attn_norm@3-5*norm*none": "blocks.0.attn_norm",
    "blocks.0.resid_post*add*unembed.17*0.5": "blocks.0.resid_post",
    "blocks.0.resid_post*remove*unembed.17": "blocks.0.resid_post",
    "blocks.0.resid_post@4*scale*2": "blocks.0.resid_post",
    "blocks.0.resid_post@4*zero": "blocks.0.resid_post",
}


@each_style
@subtest_each("text", CHANGED_TAPS)
def test_wrong_values_fail_verification(lms, style, text):
    """Detected: a value off by 1 %, the unedited value, and an edited value in a run without that edit."""
    name, plain, changed = CHANGED_TAPS[text], run(lms[style]), run(lms[style], text)
    assert all(check_captured_value(changed, value).is_within_tolerance for value in changed.values)
    for value in (changed[name] * np.float32(1.01), plain[name]):
        assert not check_captured_value(
            replace(changed, values=changed.values | {name: value}), name
        ).is_within_tolerance
    assert not check_captured_value(replace(changed, edits=()), name).is_within_tolerance


def test_every_operation_has_manual_hooks():
    tested = {edit.operation for text in MANUAL_HOOKS for edit in parse_interventions(text)} | {"norm"}
    elsewhere = {"shift", "base", "patch", "patch_mean"}  # in test_position_interventions.py, test_cross_run_patches.py
    assert tested | elsewhere == set(KINDS)
    assert {edit.operation for text in CHANGED_TAPS for edit in parse_interventions(text)} | elsewhere == set(KINDS)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_values_pass_verification(dtype):
    lm = TransformerLM(sample_models.config()).eval().requires_grad_(False).to(dtype)
    edits = sample_models.applicable_interventions(lm, sample_models.ALL_KINDS_INTERVENTIONS.format(other="layernorm"))
    changed = capture(lm, IDS, edits)
    assert changed.dtype == str(dtype).removeprefix("torch.")
    for name in changed.values:
        assert check_captured_value(changed, name).is_within_tolerance, (name, check_captured_value(changed, name))
