"""The stream's way through a model is the one that its values were computed along."""

import numpy as np

from explorer.architecture.stream import (
    added_at,
    all_norms,
    all_sums,
    before_value,
    depth_taps,
    norms_among,
    read_by,
    stream_taps,
    taps_from,
    way_of,
)
from tests import layouts


def test_the_stream_goes_through_captured_values_in_their_order(trace):
    order, taps = list(trace.values), stream_taps(trace.config)
    assert taps == sorted(taps, key=order.index) and len(taps) == len(set(taps))
    left_out = {name for name in order if name.endswith(("resid_pre", "resid_mid", "resid_post"))} - set(taps)
    assert not left_out and taps[0] == "embed" and taps[-1] == "final_norm"


def test_a_value_on_the_way_that_has_a_weight_is_a_norm_of_the_one_before(lms, style, trace):
    taps = stream_taps(trace.config)
    found = {norm: before for before, norm in zip(taps, taps[1:], strict=False) if f"{norm}.weight" in trace.weights}
    assert norms_among(trace.config, taps) == found
    assert len(found) == (4 if trace.config.norm_placement == "post" else 1)


def test_from_a_value_on_only_what_comes_after_it_counts(trace):
    assert taps_from(trace.config, "blocks.1.resid_post")[0] == "blocks.1.resid_post"
    post = trace.config.norm_placement == "post"
    last = "blocks.1.ffn_norm" if post else "final_norm"
    found = norms_among(trace.config, taps_from(trace.config, "blocks.1.resid_post"))
    assert found == {last: "blocks.1.resid_post"}


def test_what_a_sublayer_gives_out_goes_through_its_norm_and_then_along_the_stream(trace):
    for sublayer in ("attn", "ffn"):
        norm, out = layouts.output_norm(trace.config, sublayer), f"blocks.0.{sublayer}.out"
        joins = [out] if norm is None else [out, f"blocks.0.{norm}"]
        (joined,) = (name for name, _before, added, _after in layouts.sums(trace.config) if joins[-1] in added)
        assert way_of(trace.config, 0, sublayer) == [*joins, *taps_from(trace.config, joined)]
        assert norms_among(trace.config, joins) == ({} if norm is None else {f"blocks.0.{norm}": out})


def test_every_sum_is_what_stands_before_it_and_what_is_added(trace):
    sums = layouts.sums(trace.config)
    assert all_sums(trace.config) == [name for name, *_rest in sums]
    for name, before, added, _after in sums:
        assert (before_value(trace.config, name), added_at(trace.config, name)) == (before, added)
        total = trace[before].astype(float) + sum(trace[out] for out in added)
        np.testing.assert_allclose(trace[name], total, atol=1e-5)


def test_sublayers_read_what_their_linear_maps_multiply(trace):
    """By the weights themselves: nothing else gives what was captured."""
    for layer in range(trace.config.num_layers):
        block, reads = f"blocks.{layer}", layouts.READS[trace.config.norm_placement]
        for sublayer, read, (out, weight) in zip(
            ("attn", "ffn"), reads, (("attn.v", "attn.v_proj"), ("ffn.up", "ffn.up_proj")), strict=True
        ):
            assert read_by(trace.config, layer, sublayer) == f"{block}.{read}"
            made = trace[f"{block}.{read}"] @ trace.weights[f"{block}.{weight}.weight"].T
            made = made + trace.weights.get(f"{block}.{weight}.bias", 0)
            found = trace[f"{block}.{out}"]
            found = np.concatenate(list(found), axis=-1) if found.ndim == 3 else found
            np.testing.assert_allclose(found, made, atol=1e-4)


def test_norms_are_in_the_order_of_the_data_s_way(trace):
    norms, order = all_norms(trace.config), list(trace.values)
    assert norms == sorted(norms, key=order.index)
    assert {norm for norm in norms if norm != "final_norm"} == set(layouts.norms(trace.config))


def test_depths_are_what_is_handed_on_after_each_sum(trace):
    assert depth_taps(trace.config)[1:] == [after for *_sum, after in layouts.sums(trace.config)]
