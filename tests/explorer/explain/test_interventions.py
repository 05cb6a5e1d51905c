import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from explorer.analysis.direct_logit_attribution import direct_logit_attribution
from explorer.analysis.logit_lens import lens_inputs, logit_direction, token_probabilities, unembed_vectors
from explorer.architecture.residual_stream import residual_taps
from explorer.explain.captured.formulas import apply_intervention_linear_part
from explorer.interventions import parse_interventions
from explorer.tracing.capture import capture
from tests.sample_models import applicable_interventions
from tests.subtest_loops import each_style, subtest_each

PATH_TAPS = ("blocks.0.attn.out", "blocks.1.ffn.out", "logits")


def scale_and_zero_texts(config) -> list[str]:
    """Return edits of every value between a component and its logit, of the whole value and of one dimension."""
    taps = [*residual_taps(config), *PATH_TAPS]
    return [f"{tap}{part}" for tap in taps for part in ("*scale*-1.5", ".3*scale*4", "*zero")]


@each_style
def test_linear_part_matches_hooks(lms, trace, style):
    """A run with the edit is compared with the edit applied to the value before it."""
    for text in scale_and_zero_texts(trace.config):
        changed = capture(lms[style], trace.token_ids, parse_interventions(text))
        (edit,) = changed.edits
        expected = apply_intervention_linear_part(changed, edit.tap, trace[edit.tap])
        assert_allclose(changed[edit.tap], expected, atol=1e-6, err_msg=text)
        if edit.operation == "scale":
            assert np.abs(changed[edit.tap] - trace[edit.tap]).max() > 0.01, text


@each_style
def test_value_without_intervention_is_same_array(trace):
    assert apply_intervention_linear_part(trace, "final_norm", trace["final_norm"]) is trace["final_norm"]


# One edit of each kind that acts on the path to a logit, at the selected position and not at the one before.
KINDS = [
    "final_norm@9*scale*3",
    "final_norm.4@9*mean",
    "logits@9*scale*2",
    "blocks.1.resid_post@8*scale*3",
    "blocks.1.resid_mid@9*mean",
    "blocks.0.resid_post.3*mean",
    "embed@9*add*unembed.3*0.7",
    "blocks.0.attn.out@9*add*neuron.1.3*-2",
    "blocks.1.resid_pre*remove*ov.0.1.0~blocks.1.resid_pre.3*scale*-4~blocks.1.resid_pre*add*unembed.5*0.3",
    "blocks.0.attn_norm*norm*none~blocks.1.ffn_norm*norm*layernorm~blocks.0.ffn_norm*norm*rmsnorm",
    "final_norm@9*norm*none~blocks.1.ffn_norm@8*norm*layernorm~blocks.0.attn_norm@3-9*norm*rmsnorm",
    "final_norm.4*mean~final_norm@9*norm*none",
    "final_norm@8*norm*layernorm~blocks.1.attn_norm@9*norm*none~blocks.0.ffn_norm@9*norm*rmsnorm",
    "blocks.0.ffn.hidden@9*clamp*0.5~blocks.1.attn.pattern@9*mask*3~blocks.0.attn.z.1*mean",
]


@each_style
@subtest_each("text", KINDS)
@subtest_each("ids", [(17, None), (3, 17)])
def test_every_kind_of_intervention_keeps_sums_exact(lms, trace, style, ids, text):
    changed = capture(lms[style], trace.token_ids, applicable_interventions(lms[style], text))
    for position in (8, 9):
        assert direct_logit_attribution(changed, position, *ids).error <= 1e-4, text
    read = [unembed_vectors(changed, x, np.array([8, 9])) for x in lens_inputs(changed, slice(8, 10))]
    assert_allclose(read[-1], changed["logits"][8:10], atol=1e-4)
    assert_allclose(
        token_probabilities(changed, range(8, 10), 3)[-1], np.exp(log_softmax(changed["logits"][8:10]))[:, 3], atol=1e-5
    )


def log_softmax(logits):
    logits = logits.astype(np.float64)
    return logits - np.log(np.exp(logits).sum(-1, keepdims=True))


@pytest.mark.exhaustive
@each_style
def test_backward_linear_part_is_transpose_of_forward(lms, trace, style):
    """For any vectors x and y, the edits' linear map A satisfies (A x) · y = x · (Aᵀ y)."""
    edits = parse_interventions(
        "blocks.0.resid_post*remove*unembed.3~blocks.0.resid_post.3*scale*-4~blocks.0.resid_post.5@9*mean"
    )
    changed, rng = capture(lms[style], trace.token_ids, edits), np.random.default_rng(0)
    x, y = rng.normal(size=(2, trace.config.d_model))
    for position in (8, 9):
        forwards = apply_intervention_linear_part(changed, "blocks.0.resid_post", x, position) @ y
        assert forwards == pytest.approx(
            x @ apply_intervention_linear_part(changed, "blocks.0.resid_post", y, position, backwards=True)
        )
        assert forwards != pytest.approx(
            x @ apply_intervention_linear_part(changed, "blocks.0.resid_post", y, position)
        )


@each_style
def test_position_is_required_if_intervention_is_positional(lms, trace, style):
    changed = capture(lms[style], trace.token_ids, parse_interventions("final_norm@9*zero"))
    with pytest.raises(ValueError, match="holds at some positions only: say at which the vectors are"):
        apply_intervention_linear_part(changed, "final_norm", trace["final_norm"])


@each_style
@subtest_each("ids", [(17, None), (3, 17)])
def test_attribution_and_last_lens_depth_match_logits(lms, trace, style, ids):
    for text in scale_and_zero_texts(trace.config):
        changed = capture(lms[style], trace.token_ids, parse_interventions(text))
        assert direct_logit_attribution(changed, 9, *ids).error <= 1e-4, text
        assert_allclose(
            unembed_vectors(changed, lens_inputs(changed, slice(9, 10))[-1])[0], changed["logits"][9], atol=1e-4
        )


@each_style
def test_logit_direction_follows_scaled_logit(lms, trace, style):
    changed = capture(lms[style], trace.token_ids, parse_interventions("logits.17*scale*3"))
    assert_allclose(logit_direction(changed, 17, 9), 3 * logit_direction(trace, 17, 9))
    assert_array_equal(logit_direction(changed, 16, 9), logit_direction(trace, 16, 9))
