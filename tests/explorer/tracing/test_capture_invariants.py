"""Captured values agree with the formulas, in every layer of every kind of model."""

import math
from collections.abc import Callable

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

from tests import layouts
from tests.subtest_loops import each_rotating_style, each_style, subtest_each


def softmax(x: np.ndarray) -> np.ndarray:
    exps = np.exp(x - x.max(-1, keepdims=True))
    return exps / exps.sum(-1, keepdims=True)


def get_block(trace, layer: int) -> Callable[[str], np.ndarray]:
    """Return `block("attn.z")`: the layer's value."""
    return lambda name: trace[f"blocks.{layer}.{name}"]


each_layer = subtest_each("layer", [0, 1])


def rotated_heads(trace, block, name: str) -> np.ndarray:
    """Return q or k of each head, rotated if the model uses RoPE."""
    return for_each_head(trace, block(f"attn.{name}_rot" if "rope.angles" in trace else f"attn.{name}"))


def for_each_head(trace, values: np.ndarray) -> np.ndarray:
    """Repeat keys or values (G, T, d) of each group for its heads: (H, T, d)."""
    return np.repeat(values, trace.config.num_heads // len(values), axis=0)


@each_layer
@each_style
def test_pattern_rows_sum_to_one_and_are_causal(trace, layer):
    block = get_block(trace, layer)
    pattern = block("attn.pattern")
    assert_allclose(pattern.sum(-1), 1, atol=1e-5)
    assert (pattern >= 0).all()
    assert not np.triu(pattern, k=1).any()


@each_layer
@each_style
def test_scores_are_scaled_query_key_products(trace, layer):
    block = get_block(trace, layer)
    q, k = rotated_heads(trace, block, "q"), rotated_heads(trace, block, "k")
    assert_allclose(block("attn.scores"), q @ k.swapaxes(-2, -1) / trace.config.divisor, atol=1e-5)


@each_layer
@each_style
def test_scores_are_unmasked(trace, layer):
    block = get_block(trace, layer)
    assert np.isfinite(block("attn.scores")).all()


@each_style
def test_pattern_is_masked_softmax_of_scores(trace):
    for layer in range(trace.config.num_layers):
        scores = layouts.softcap(trace[f"blocks.{layer}.attn.scores"], trace.config.score_cap)
        window = trace.config.window(layer) or len(trace)
        query, key = np.indices(scores.shape[-2:])
        masked = np.where((key <= query) & (query - key < window), scores, -np.inf)
        assert_allclose(trace[f"blocks.{layer}.attn.pattern"], softmax(masked), atol=1e-6)


@each_layer
@each_style
def test_z_is_pattern_times_values(trace, layer):
    block = get_block(trace, layer)
    assert_allclose(block("attn.z"), block("attn.pattern") @ for_each_head(trace, block("attn.v")), atol=1e-5)


@each_layer
@each_style
def test_head_counts_match_config(trace, layer):
    block = get_block(trace, layer)
    heads = {name: len(block(f"attn.{name}")) for name in "qkv"}
    assert heads == {"q": trace.config.num_heads, "k": trace.config.kv_heads, "v": trace.config.kv_heads}


@subtest_each("name", ["blocks.0.attn.q", "blocks.0.attn.k", "blocks.1.attn.q", "blocks.1.attn.k"])
@each_rotating_style
def test_rotation_keeps_norms_and_position_zero(trace, name):
    before, after = trace[name], trace[f"{name}_rot"]
    scaling, num_rotary_dims = trace.config.rope_scaling, trace.config.num_rotary_dims
    if scaling and scaling.attention_factor != 1:  # the first pairs of two halves
        half = before.shape[-1] // 2
        before = before.copy()
        before[..., np.arange(2 * half) % half < num_rotary_dims // 2] *= scaling.attention_factor
        assert_allclose(after[:, 0], before[:, 0], rtol=1e-6)
        after = after.copy()
        after[:, 0] = before[:, 0]
    assert_allclose(np.linalg.norm(after, axis=-1), np.linalg.norm(before, axis=-1), rtol=1e-5)
    assert_array_equal(after[:, 0], before[:, 0])
    assert np.array_equal(after, before) is not trace.config.has_rope(int(name.split(".")[1]))


@each_style
def test_each_sublayer_adds_to_the_residual_stream(trace):
    for name, before, added, _after in layouts.residual_sums(trace.config):
        assert_allclose(trace[name], trace[before] + sum(trace[out] for out in added), atol=1e-6)


@each_layer
@each_style
def test_feed_forward_applies_its_activation(trace, layer):
    block = get_block(trace, layer)
    up = block("ffn.up")
    gated = trace.config.ffn in ("swiglu", "geglu")
    x = block("ffn.gate_pre") if gated else up
    bent = {
        "swiglu": lambda: x / (1 + np.exp(-x)),
        "relu": lambda: np.maximum(x, 0),
        "relu2": lambda: np.maximum(x, 0) ** 2,
        "gelu": lambda: x / 2 * (1 + np.vectorize(math.erf)(x / math.sqrt(2))),
        **dict.fromkeys(
            ("gelu_tanh", "geglu"), lambda: x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
        ),
    }[trace.config.ffn]()
    if gated:
        assert_allclose(block("ffn.gate"), bent, atol=1e-6)
    assert trace.has_tap("blocks.*.ffn.gate") is gated
    expected = block("ffn.gate") * up if gated else bent
    assert_allclose(block("ffn.hidden"), expected, atol=1e-6)


@each_style
def test_blocks_pass_on_residual_stream(trace):
    handed_on = "ffn_norm" if trace.config.norm_placement == "post" else "resid_post"
    assert_array_equal(trace["blocks.0.resid_pre"], trace["embed"])
    assert_array_equal(trace["blocks.1.resid_pre"], trace[f"blocks.0.{handed_on}"])


@each_style
def test_stream_starts_with_token_and_position_embeddings(lms, style, trace):
    table = lms[style].token_embedding.weight.numpy()[list(trace.token_ids)]
    scale = math.sqrt(trace.config.d_model) if trace.config.scale_embeddings else trace.config.embedding_multiplier
    added = trace.values.get("position_embed", 0)
    assert_allclose(trace["embed"], scale * table + added, atol=1e-5)
    assert ("position_embed" in trace) is (trace.config.position in ("sinusoidal", "learned"))


@each_style
def test_outputs_are_projections_of_captured_values(lms, style, trace):
    weights = {name: tensor.numpy() for name, tensor in lms[style].state_dict().items()}

    def project(x: np.ndarray, name: str) -> np.ndarray:
        return x @ weights[f"{name}.weight"].T + weights.get(f"{name}.bias", 0)

    z = trace["blocks.1.attn.z"].swapaxes(0, 1).reshape(len(trace), -1)
    assert_allclose(trace["blocks.1.attn.out"], project(z, "blocks.1.attn.o_proj"), atol=1e-5)
    hidden = trace["blocks.1.ffn.hidden"]
    assert_allclose(trace["blocks.1.ffn.out"], project(hidden, "blocks.1.ffn.down_proj"), atol=1e-5)
    logits = layouts.softcap(project(trace["final_norm"], "lm_head"), trace.config.logit_cap)
    assert_allclose(trace["logits"], logits, atol=1e-5)
