import numpy as np
import pytest

from explorer.analysis.norms import apply_norm, norm_scale, unembed


@pytest.mark.parametrize(
    ("name", "pre", "post"), [("attn_norm", "resid_pre", "resid_mid"), ("ffn_norm", "resid_mid", "resid_post")]
)
def test_norms_are_those_the_model_computed(trace, name, pre, post):
    for layer in range(trace.config.num_layers):
        read = trace[f"blocks.{layer}.{pre if trace.config.norm_placement == 'pre' else post}"]
        ours = apply_norm(trace, f"blocks.{layer}.{name}", read)
        np.testing.assert_allclose(ours, trace[f"blocks.{layer}.{name}"], atol=1e-5)


def test_the_last_stream_normalised_and_unembedded_gives_the_logits(trace):
    last = trace.config.num_layers - 1
    stream = trace[f"blocks.{last}.resid_post" if trace.config.norm_placement == "pre" else f"blocks.{last}.ffn_norm"]
    normalised = apply_norm(trace, "final_norm", stream)
    np.testing.assert_allclose(normalised, trace["final_norm"], atol=1e-5)
    np.testing.assert_allclose(unembed(trace, normalised), trace["logits"], atol=1e-4)


def test_with_the_scale_held_parts_add_up(trace):
    name = "blocks.1.attn_norm"
    parts = np.random.default_rng(0).normal(size=(3, 5, trace.config.d_model))
    whole = parts.sum(0)
    scale = norm_scale(trace, whole)
    shift = trace.weights.get(f"{name}.bias", 0.0)
    summed = sum(apply_norm(trace, name, part, scale) - shift for part in parts) + shift
    np.testing.assert_allclose(summed, apply_norm(trace, name, whole), atol=1e-10)
