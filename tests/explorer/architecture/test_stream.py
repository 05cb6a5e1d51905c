"""The stream's way through a model is the one that its values were computed along."""

from explorer.architecture.stream import norms_from, stream_taps, taps_from


def test_the_stream_goes_through_captured_values_in_their_order(trace):
    order, taps = list(trace.values), stream_taps(trace.config)
    assert taps == sorted(taps, key=order.index) and len(taps) == len(set(taps))
    left_out = {name for name in order if name.endswith(("resid_pre", "resid_mid", "resid_post"))} - set(taps)
    assert not left_out and taps[0] == "embed" and taps[-1] == "final_norm"


def test_a_value_on_the_way_that_has_a_weight_is_a_norm_of_the_one_before(lms, style, trace):
    taps = stream_taps(trace.config)
    found = [(norm, before) for before, norm in zip(taps, taps[1:], strict=False) if f"{norm}.weight" in trace.weights]
    assert norms_from(trace.config, "embed") == found
    assert len(found) == (4 if trace.config.norm_placement == "post" else 1)


def test_from_a_value_on_only_what_comes_after_it_counts(trace):
    assert taps_from(trace.config, "blocks.1.resid_post")[0] == "blocks.1.resid_post"
    post = trace.config.norm_placement == "post"
    last = ("blocks.1.ffn_norm", "blocks.1.resid_post") if post else ("final_norm", "blocks.1.resid_post")
    assert norms_from(trace.config, "blocks.1.resid_post") == [last]
