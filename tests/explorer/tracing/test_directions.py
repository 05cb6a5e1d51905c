"""Directions equal their definition on the weights, checked against closed forms."""

from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose

from explorer.errors import UserError
from explorer.interventions import DirectionSpec, parse_interventions
from explorer.tracing.capture import capture
from explorer.tracing.forward_hooks import mean_stream
from explorer.tracing.weight_matrices import direction_unit_vector
from tests.explorer.tracing.manual_interventions import neuron_output, residual_update
from tests.subtest_loops import each_style, subtest_each


def unit_direction(lm, text: str, **weights) -> np.ndarray:
    names = lm.state_dict()
    read_weight = lambda name: weights.get(name.replace(".", "_"), names[name].double().numpy())  # noqa: E731
    return direction_unit_vector(lm.config, read_weight, DirectionSpec.parse(text), partial(mean_stream, lm))


def unit(x):
    return x / np.linalg.norm(x)


@each_style
def test_directions_are_rows_or_columns_of_weights(lms, style):
    lm = lms[style]
    table = lm.lm_head.weight.double().numpy()
    assert_allclose(unit_direction(lm, "unembed.17"), unit(table[17]))
    assert_allclose(unit_direction(lm, "unembed.17-20"), unit(table[17] - table[20]))
    assert_allclose(unit_direction(lm, "neuron.1.7"), unit(neuron_output(lm, 1, 7).numpy()), atol=1e-6)
    for text in ("unembed.17", "unembed.17-20", "neuron.1.7", "ov.1.2.0", "ov.0.0.3"):
        vector = unit_direction(lm, text)
        assert vector.shape == (lm.config.d_model,) and np.linalg.norm(vector) == pytest.approx(1)


@pytest.mark.parametrize("style", ["rope", "grouped", "post", "output"])
def test_head_directions_are_left_singular_vectors_of_ov(lms, style):
    """Directions of one head with its group's value matrix: OV OVᵀ u = σ² u, orthogonal, largest σ first."""
    lm = lms[style]
    d, shared = lm.config.d_head, lm.config.num_heads // lm.config.kv_heads
    for layer, head in ((0, 0), (1, 2), (1, lm.config.num_heads - 1)):
        names = lm.state_dict()
        output = names[f"blocks.{layer}.attn.o_proj.weight"].double()[:, head * d : (head + 1) * d]
        output = residual_update(lm, layer, "attn", output).numpy()
        values = names[f"blocks.{layer}.attn.v_proj.weight"].double().numpy()
        values = np.repeat(values.reshape(-1, d, lm.config.d_model), shared, axis=0)[head]
        ov = output @ values
        sizes = np.linalg.svd(ov, compute_uv=False)
        vectors = np.stack([unit_direction(lm, f"ov.{layer}.{head}.{rank}") for rank in range(d)])
        assert_allclose(vectors @ vectors.T, np.eye(d), atol=1e-10)
        for vector, size in zip(vectors, sizes, strict=False):
            assert_allclose(ov @ ov.T @ vector, size**2 * vector, atol=1e-10)
            assert vector[np.abs(vector).argmax()] > 0


def test_rank_one_head_has_its_output_direction(lms):
    lm = lms["rope"]
    d, rng = lm.config.d_head, np.random.default_rng(0)
    out, read = rng.normal(size=lm.config.d_model), rng.normal(size=lm.config.d_model)
    output, values = np.zeros((lm.config.d_model,) * 2), np.zeros((lm.config.d_model,) * 2)
    output[:, d], values[d] = out, read  # the first dimension of head 1
    vector = unit_direction(lm, "ov.0.1.0", blocks_0_attn_o_proj_weight=output, blocks_0_attn_v_proj_weight=values)
    assert abs(vector @ unit(out)) == pytest.approx(1)


@subtest_each(
    ("text", "message"),
    [
        ("unembed.300", "token ids run from 0 to 299, got 300"),
        ("unembed.3-300", "token ids run from 0 to 299, got 300"),
        ("neuron.2.0", "layers run from 0 to 1, got 2"),
        ("neuron.0.40", "neurons run from 0 to 39, got 40"),
        ("ov.0.3.0", "heads run from 0 to 2, got 3"),
        ("ov.0.0.8", "directions of a head run from 0 to 7, got 8"),
        ("unembed.5-5", "the unembedding of token 5 less that of token 5 is 0 and points nowhere"),
        (
            "up",
            "a direction is unembed.ID, unembed.ID-ID, neuron.LAYER.NUMBER, ov.LAYER.HEAD.NUMBER, or "
            "means.LAYER.IDS-IDS, got 'up'",
        ),
        ("unembed.1.2", "a direction is unembed.ID"),
    ],
)
def test_invalid_direction_is_refused(lms, text, message):
    with pytest.raises(ValueError, match=message):
        unit_direction(lms["rope"], text)


@each_style
def test_means_direction_is_difference_of_mean_streams(lms, style):
    """Means over a prompt's tokens, then over a list's prompts, are of the unmodified model, also in an edited run."""
    lm = lms[style]

    def mean(*prompts: list[int]) -> np.ndarray:
        return np.mean([capture(lm, ids)["blocks.1.resid_post"].astype(float).mean(0) for ids in prompts], axis=0)

    expected = unit(mean([5, 9, 60], [17]) - mean([33, 40]))
    text = "means.1.5.9.60_17-33.40"
    assert_allclose(unit_direction(lm, text), expected, atol=1e-6)
    changed = capture(
        lm, [7, 8, 9], parse_interventions(f"blocks.0.attn.out*scale*3~blocks.0.resid_post*add*{text}*0.5")
    )
    before = capture(lm, [7, 8, 9], parse_interventions("blocks.0.attn.out*scale*3"))["blocks.0.resid_post"].astype(
        float
    )
    expected_stream = before + 0.5 * np.linalg.norm(before, axis=-1, keepdims=True) * expected
    assert_allclose(changed["blocks.0.resid_post"], expected_stream, atol=1e-4)


def test_equal_lists_give_no_direction(tiny_lm):
    with pytest.raises(UserError, match="is 0 and points nowhere"):
        unit_direction(tiny_lm, "means.0.5.6-5.6")
