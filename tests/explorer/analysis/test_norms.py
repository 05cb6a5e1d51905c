import numpy as np

from explorer.analysis.norms import apply_norm, compute_norm_divisor
from explorer.analysis.unembedding import unembed_vectors
from tests import layouts


def test_norms_are_those_the_model_computed(trace):
    for name, read in layouts.block_norms(trace.config).items():
        np.testing.assert_allclose(apply_norm(trace, name, trace[read]), trace[name], atol=1e-5)


def test_the_last_stream_normalised_and_unembedded_gives_the_logits(trace):
    *_sum, last = layouts.residual_sums(trace.config)[-1]
    normalised = apply_norm(trace, "final_norm", trace[last])
    np.testing.assert_allclose(normalised, trace["final_norm"], atol=1e-5)
    np.testing.assert_allclose(unembed_vectors(trace, normalised), trace["logits"], atol=1e-4)


def test_with_the_scale_held_parts_add_up(trace):
    name = "blocks.1.attn_norm"
    parts = np.random.default_rng(0).normal(size=(3, 5, trace.config.d_model))
    whole = parts.sum(0)
    scale = compute_norm_divisor(trace, whole, name)
    shift = trace.weights.get(f"{name}.bias", 0.0)
    summed = sum(apply_norm(trace, name, part, scale) - shift for part in parts) + shift
    np.testing.assert_allclose(summed, apply_norm(trace, name, whole), atol=1e-10)
