"""The residual stream's path through a model, compared with captured values."""

import numpy as np

from explorer.architecture.residual_stream import (
    added_taps,
    all_norms,
    lens_taps,
    norm_inputs,
    path_to_unembedding,
    previous_residual_tap,
    residual_sum_taps,
    residual_taps,
    residual_taps_onward,
    sublayer_input_tap,
)
from tests import layouts
from tests.subtest_loops import each_style


@each_style
def test_residual_taps_are_in_order_of_computation(trace):
    order, taps = list(trace.values), residual_taps(trace.config)
    assert taps == sorted(taps, key=order.index) and len(taps) == len(set(taps))
    left_out = {name for name in order if name.endswith(("resid_pre", "resid_mid", "resid_post"))} - set(taps)
    assert not left_out and taps[0] == "embed" and taps[-1] == "final_norm"


@each_style
def test_norm_inputs_are_preceding_taps(lms, style, trace):
    taps = residual_taps(trace.config)
    inputs_by_norm = {
        norm: before for before, norm in zip(taps, taps[1:], strict=False) if f"{norm}.weight" in trace.weights
    }
    assert norm_inputs(trace.config, taps) == inputs_by_norm
    assert len(inputs_by_norm) == (4 if trace.config.norm_placement == "post" else 1)


@each_style
def test_residual_taps_onward_begin_at_tap(trace):
    assert residual_taps_onward(trace.config, "blocks.1.resid_post")[0] == "blocks.1.resid_post"
    post = trace.config.norm_placement == "post"
    last = "blocks.1.ffn_norm" if post else "final_norm"
    inputs_by_norm = norm_inputs(trace.config, residual_taps_onward(trace.config, "blocks.1.resid_post"))
    assert inputs_by_norm == {last: "blocks.1.resid_post"}


@each_style
def test_sublayer_output_passes_its_norm_to_stream(trace):
    for sublayer in ("attn", "ffn"):
        norm, out = layouts.output_norm(trace.config, sublayer), f"blocks.0.{sublayer}.out"
        output_path = [out] if norm is None else [out, f"blocks.0.{norm}"]
        (first_sum,) = (
            name for name, _before, added, _after in layouts.residual_sums(trace.config) if output_path[-1] in added
        )
        assert path_to_unembedding(trace.config, 0, sublayer) == [
            *output_path,
            *residual_taps_onward(trace.config, first_sum),
        ]
        assert norm_inputs(trace.config, output_path) == ({} if norm is None else {f"blocks.0.{norm}": out})


@each_style
def test_residual_sums_add_outputs_to_previous_tap(trace):
    sums = layouts.residual_sums(trace.config)
    assert residual_sum_taps(trace.config) == [name for name, *_rest in sums]
    for name, before, added, _after in sums:
        assert (previous_residual_tap(trace.config, name), added_taps(trace.config, name)) == (before, added)
        total = trace[before].astype(float) + sum(trace[out] for out in added)
        np.testing.assert_allclose(trace[name], total, atol=1e-5)


@each_style
def test_sublayers_read_their_input_tap(trace):
    """Only the right input, multiplied by the weights, gives the captured values."""
    for layer in range(trace.config.num_layers):
        block, reads = f"blocks.{layer}", layouts.READS[trace.config.norm_placement]
        for sublayer, read, (out, weight) in zip(
            ("attn", "ffn"), reads, (("attn.v", "attn.v_proj"), ("ffn.up", "ffn.up_proj")), strict=True
        ):
            assert sublayer_input_tap(trace.config, layer, sublayer) == f"{block}.{read}"
            computed = trace[f"{block}.{read}"] @ trace.weights[f"{block}.{weight}.weight"].T
            computed = computed + trace.weights.get(f"{block}.{weight}.bias", 0)
            captured = trace[f"{block}.{out}"]
            captured = np.concatenate(list(captured), axis=-1) if captured.ndim == 3 else captured
            np.testing.assert_allclose(captured, computed, atol=1e-4)


@each_style
def test_norms_are_in_order_of_computation(trace):
    norms, order = all_norms(trace.config), list(trace.values)
    assert norms == sorted(norms, key=order.index)
    assert {norm for norm in norms if norm != "final_norm"} == set(layouts.block_norms(trace.config))


@each_style
def test_lens_taps_follow_each_residual_sum(trace):
    assert lens_taps(trace.config)[1:] == [after for *_sum, after in layouts.residual_sums(trace.config)]
