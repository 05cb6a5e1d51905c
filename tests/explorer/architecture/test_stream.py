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


def test_the_stream_goes_through_captured_values_in_their_order(trace):
    order, taps = list(trace.values), residual_taps(trace.config)
    assert taps == sorted(taps, key=order.index) and len(taps) == len(set(taps))
    left_out = {name for name in order if name.endswith(("resid_pre", "resid_mid", "resid_post"))} - set(taps)
    assert not left_out and taps[0] == "embed" and taps[-1] == "final_norm"


def test_a_value_on_the_way_that_has_a_weight_is_a_norm_of_the_one_before(lms, style, trace):
    taps = residual_taps(trace.config)
    inputs_by_norm = {
        norm: before for before, norm in zip(taps, taps[1:], strict=False) if f"{norm}.weight" in trace.weights
    }
    assert norm_inputs(trace.config, taps) == inputs_by_norm
    assert len(inputs_by_norm) == (4 if trace.config.norm_placement == "post" else 1)


def test_from_a_value_on_only_what_comes_after_it_counts(trace):
    assert residual_taps_onward(trace.config, "blocks.1.resid_post")[0] == "blocks.1.resid_post"
    post = trace.config.norm_placement == "post"
    last = "blocks.1.ffn_norm" if post else "final_norm"
    inputs_by_norm = norm_inputs(trace.config, residual_taps_onward(trace.config, "blocks.1.resid_post"))
    assert inputs_by_norm == {last: "blocks.1.resid_post"}


def test_what_a_sublayer_gives_out_goes_through_its_norm_and_then_along_the_stream(trace):
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


def test_every_sum_is_what_stands_before_it_and_what_is_added(trace):
    sums = layouts.residual_sums(trace.config)
    assert residual_sum_taps(trace.config) == [name for name, *_rest in sums]
    for name, before, added, _after in sums:
        assert (previous_residual_tap(trace.config, name), added_taps(trace.config, name)) == (before, added)
        total = trace[before].astype(float) + sum(trace[out] for out in added)
        np.testing.assert_allclose(trace[name], total, atol=1e-5)


def test_sublayers_read_what_their_linear_maps_multiply(trace):
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


def test_norms_are_in_the_order_of_the_data_s_way(trace):
    norms, order = all_norms(trace.config), list(trace.values)
    assert norms == sorted(norms, key=order.index)
    assert {norm for norm in norms if norm != "final_norm"} == set(layouts.block_norms(trace.config))


def test_depths_are_what_is_handed_on_after_each_sum(trace):
    assert lens_taps(trace.config)[1:] == [after for *_sum, after in layouts.residual_sums(trace.config)]
