from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

from explorer.analysis.direct_logit_attribution import direct_logit_attribution
from explorer.analysis.feed_forward import NORMAL_SHARE, layer_neurons, neuron_logit_effects, recompute_neuron, sparsity
from explorer.analysis.residual import apply_linearised_output_norm
from explorer.architecture.residual_stream import norm_inputs, path_to_unembedding
from explorer.explain.captured.formulas import ACTIVATIONS
from model.layers.feed_forward import KERNELS
from tests import layouts
from tests.subtest_loops import each_style, subtest_each

GATES = [("swiglu", "silu"), ("geglu", "gelu_tanh")]


def test_activations_match_model():
    x = np.linspace(-60, 60, 481).reshape(13, 37)
    for kind, kernel in (*GATES, *((k, k) for k in ("relu", "relu2", "gelu", "gelu_tanh"))):
        _, activation = ACTIVATIONS[kind]
        assert_allclose(activation(x), KERNELS[kernel](torch.tensor(x)).numpy(), atol=1e-12, err_msg=kind)


@each_style
def test_layer_neurons_are_captured_values(trace):
    ours = layer_neurons(trace, 1, 7)
    _, activation = ACTIVATIONS[trace.config.ffn]
    assert_array_equal(ours.hidden, trace["blocks.1.ffn.hidden"][7])
    assert_allclose(ours.active, activation(ours.pre.astype(np.float64)), atol=1e-6)
    assert (ours.up is None) is (not trace.config.is_gated)
    assert_allclose(ours.active * (1 if ours.up is None else ours.up), ours.hidden, rtol=1e-6)


@each_style
def test_neuron_outputs_sum_to_layer_output(trace):
    ours = layer_neurons(trace, 0, 5)
    down = trace.weights["blocks.0.ffn.down_proj.weight"]
    vectors = ours.hidden[:, None] * down.T  # (F, D)
    assert_allclose(
        ours.output_norms,
        np.linalg.norm(layouts.residual_contributions(trace, 0, "ffn", vectors, 5), axis=-1),
        rtol=1e-5,
    )
    bias = trace.weights.get("blocks.0.ffn.down_proj.bias", 0.0)
    assert_allclose(vectors.sum(0) + bias, trace["blocks.0.ffn.out"][5], atol=1e-5)


@each_style
def test_top_neurons_have_largest_output_norms(trace):
    ours = layer_neurons(trace, 1, 3)
    top = ours.top(6)
    assert len(set(top)) == 6
    assert (np.diff(ours.output_norms[top]) <= 0).all()
    assert ours.output_norms[top].min() >= np.delete(ours.output_norms, top).max()


def test_equal_neurons_are_ordered_by_number(capture_trace):
    still = replace(layer_neurons(capture_trace("gpt"), 0, 0), output_norms=np.zeros(5))
    assert_array_equal(still.top(3), [0, 1, 2])


@each_style
def test_recomputed_neuron_matches_captured_one(trace):
    points = [(*point, n) for point in ((0, 0), (0, 11), (1, 6)) for n in range(trace.config.d_ff)]
    for layer, query, number in points:
        captured = layer_neurons(trace, layer, query)
        ours = recompute_neuron(trace, layer, number, query)
        assert ours.error < 1e-5
        assert ours.hidden == pytest.approx(captured.hidden[number], abs=1e-5)
        assert ours.pre == pytest.approx(captured.pre[number], abs=1e-5)
        assert ours.active == pytest.approx(captured.active[number], abs=1e-5)
        assert ours.up is None or ours.up == pytest.approx(captured.up[number], abs=1e-5)


def test_error_is_difference_from_captured_value(rope_trace):
    wrong = rope_trace["blocks.0.ffn.hidden"] + 1
    ours = recompute_neuron(replace(rope_trace, values={**rope_trace.values, "blocks.0.ffn.hidden": wrong}), 0, 3, 2)
    assert ours.error == pytest.approx(1, abs=1e-5)


def with_hidden(trace, hidden: list[list[float]]):
    """Return the run with the first layer's hidden values set, and the second layer's set to 1."""
    hidden = np.array(hidden, np.float32)
    values = {"blocks.0.ffn.hidden": hidden, "blocks.1.ffn.hidden": np.ones_like(hidden)}
    return replace(trace, values={**trace.values, **values})


def test_inactive_relu_neurons_are_never_positive(capture_trace):
    # Four neurons over three tokens: active always, once, never, and barely.
    built = with_hidden(capture_trace("gpt"), [[3, 0, 0, 1e-6], [2, 5, 0, 1e-6], [1, 0, 0, 1e-6]])
    ours = sparsity(built)
    assert_allclose(ours.near_zero, [5 / 12, 0])
    assert_allclose(ours.inactive, [1 / 4, 0])


def test_near_zero_threshold_is_tenth_of_rms(capture_trace):
    built = with_hidden(capture_trace("rope"), [[14.1, 0.49, -0.4, 0.6], [-0.49, 0.3, 0.6, 0.0]])
    assert np.sqrt(np.mean(built["blocks.0.ffn.hidden"] ** 2)) == pytest.approx(5, abs=0.01)
    ours = sparsity(built)
    assert_allclose(ours.near_zero, [5 / 8, 0])
    assert_allclose(ours.inactive, [1 / 4, 0])


def test_normal_distribution_has_known_near_zero_share(capture_trace):
    values = np.random.default_rng(0).normal(scale=7, size=(100, 2000))
    assert sparsity(with_hidden(capture_trace("rope"), values)).near_zero[0] == pytest.approx(NORMAL_SHARE, abs=0.002)


@each_style
@subtest_each(("layer", "number", "query"), [(0, 0, 0), (0, 39, 11), (1, 17, 6)])
def test_neuron_logit_effects_match_slope_through_norms(lms, trace, style, layer, number, query):
    """Brute force: the change of the logits when the neuron's vector is added, with the scales of norms held fixed."""
    lm = lms[style]
    vector = lm.blocks[layer].ffn.down_proj.weight[:, number].double()
    for name, normalised in norm_inputs(trace.config, path_to_unembedding(trace.config, layer, "ffn")).items():
        norm = lm.get_submodule(name)
        x = torch.tensor(trace[normalised][query]).double()
        centre = (lambda v: v - v.mean()) if trace.config.norm == "layernorm" else (lambda v: v)
        vector = centre(vector) / (centre(x).square().mean() + norm.eps).sqrt() * norm.weight
    logits = lm.lm_head.weight.double() @ vector
    logits = logits * torch.tensor(layouts.softcap_factors(trace, query))
    ours = neuron_logit_effects(trace, layer, number, query)
    assert_allclose(ours, logits.numpy(), rtol=1e-4, atol=1e-6)
    assert_array_equal(np.argsort(-ours)[:5], torch.topk(logits, 5).indices)


@each_style
@subtest_each(("layer", "query"), [(0, 11), (1, 6)])
def test_neuron_effects_sum_to_layer_attribution(trace, layer, query):
    token_id = int(trace["logits"][query].argmax())
    hidden = layer_neurons(trace, layer, query).hidden
    total = sum(hidden[n] * neuron_logit_effects(trace, layer, n, query)[token_id] for n in range(trace.config.d_ff))
    share = direct_logit_attribution(trace, query, token_id).feed_forward[layer]
    bias = trace.weights.get(f"blocks.{layer}.ffn.down_proj.bias")
    if bias is not None:  # belongs to no neuron: as if one more neuron with activation 1 wrote it
        down = f"blocks.{layer}.ffn.down_proj.weight"
        columns = trace.weights[down].copy()
        columns[:, 0] = bias
        share -= neuron_logit_effects(replace(trace, weights={**trace.weights, down: columns}), layer, 0, query)[
            token_id
        ]
    assert total == pytest.approx(share, abs=1e-4)


@each_style
def test_neurons_and_heads_sum_to_sublayer_update(trace):
    """Contributions pass through a post-norm where there is one; the biases belong to no component."""
    block, position = "blocks.1", 5
    hidden = trace[f"{block}.ffn.hidden"][position].astype(float)
    z = trace[f"{block}.attn.z"][:, position].astype(float)
    output = trace.weights[f"{block}.attn.o_proj.weight"].reshape(trace.config.d_model, *z.shape)
    contributions = {
        "ffn": (hidden[:, None] * trace.weights[f"{block}.ffn.down_proj.weight"].T, "down_proj"),
        "attn": (np.einsum("hd,khd->hk", z, output), "o_proj"),
    }
    for sublayer, (vectors, last) in contributions.items():
        bias = trace.weights.get(f"{block}.{sublayer}.{last}.bias", np.zeros(trace.config.d_model))
        norm = layouts.output_norm(trace.config, sublayer)
        shift = trace.weights.get(f"{block}.{norm}.bias", 0)
        tap = f"{block}.{norm}" if norm else f"{block}.{sublayer}.out"
        total = apply_linearised_output_norm(trace, 1, sublayer, np.stack([*vectors, bias]), position).sum(0) + shift
        assert_allclose(total, trace[tap][position], atol=1e-5)
