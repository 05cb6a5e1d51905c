"""The residual stream, its norms and updates, and norms that read it."""

import math
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from explorer.analysis.logit_lens import LogitSummaries, unembed_vectors
from explorer.analysis.residual import (
    apply_norm,
    compute_norm_divisor,
    find_outlier_dimensions,
    norm_statistics,
    norm_statistics_in_layer,
    residual_norms,
    residual_norms_by_stage,
    residual_stages,
    residual_stream,
    stage_similarities,
    sublayer_updates,
)
from tests import layouts
from tests.subtest_loops import each_style, subtest_each

UPDATES = ["0 attention", "0 feed-forward", "1 attention", "1 feed-forward"]


def update_taps(trace) -> list[str]:
    """Return the taps of the sublayers' updates to the residual stream, in order."""
    norms = {"attn": "attn.out", "ffn": "ffn.out"} | {
        sublayer: norm for sublayer in ("attn", "ffn") if (norm := layouts.output_norm(trace.config, sublayer))
    }
    return [f"blocks.{layer}.{norms[sublayer]}" for layer in (0, 1) for sublayer in ("attn", "ffn")]


def is_post_norm(trace) -> bool:
    return trace.config.norm_placement == "post"


@each_style
def test_stages_are_residual_sums_and_post_norms(trace):
    taps, config = [stage.tap for stage in residual_stages(trace)][1:], trace.config
    sums = [name for name, *_rest in layouts.residual_sums(config)]
    if is_post_norm(trace):
        assert [stage.name for stage in residual_stages(trace)][:4] == [
            "embedding",
            "0 attention",
            "0 attention norm",
            "0 feed-forward",
        ]
        assert taps[::2] == sums and taps[1::2] == list(layouts.block_norms(config))
    else:
        assert [stage.name for stage in residual_stages(trace)] == layouts.stage_names(config)
        assert taps == sums
    assert [stage.tap for stage in residual_stages(trace, normed=False)][1:] == sums
    assert [stage.layer for stage in residual_stages(trace, normed=False)] == [
        0,
        *(int(name.split(".")[1]) for name in sums),
    ]
    assert_array_equal(residual_stream(trace)[0], trace["embed"])
    assert_array_equal(residual_stream(trace)[-1], trace[taps[-1]])


@each_style
def test_norms_at_each_stage(trace):
    expected = [[math.hypot(*vector) for vector in trace[stage.tap]] for stage in residual_stages(trace)]
    assert_allclose(residual_norms_by_stage(trace), expected, rtol=1e-5)
    unnormed = [
        row
        for row, stage in zip(expected, residual_stages(trace), strict=True)
        if stage in residual_stages(trace, normed=False)
    ]
    assert_allclose(residual_norms(trace).median, [sum(sorted(row)[5:7]) / 2 for row in unnormed], rtol=1e-5)


@each_style
def test_norms_along_residual_stream(trace):
    norms, written = residual_norms(trace), update_taps(trace)
    sums = layouts.residual_sums(trace.config)
    assert norms.stages == tuple(layouts.stage_names(trace.config)) and norms.names == tuple(UPDATES)
    assert [sums[stage - 1][2].count(added) for stage, added in zip(norms.stage_indices, written, strict=True)] == [
        1
    ] * 4
    for lengths, names in ((norms.stream, ["embed", *(name for name, *_rest in sums)]), (norms.updates, written)):
        expected = [[math.sqrt(sum(float(x) ** 2 for x in row)) for row in trace[name]] for name in names]
        assert_allclose(lengths, expected, rtol=1e-5)


@each_style
@subtest_each("query", [0, 11])
def test_updates_sum_to_stream(trace, query):
    ours = sublayer_updates(trace, query)
    assert ours.names == tuple(UPDATES)
    assert ours.error < 1e-5
    if not is_post_norm(trace):
        total = trace["embed"][query] + sum(trace[name][query] for name in update_taps(trace))
        assert_allclose(total, trace["blocks.1.resid_post"][query], atol=1e-5)


@each_style
def test_error_reveals_altered_update(trace):
    name, *_rest = layouts.residual_sums(trace.config)[-1]
    built = replace(trace, values={**trace.values, name: trace[name] + 0.5})
    assert sublayer_updates(built, 4).error == pytest.approx(0.5, abs=1e-5)


@each_style
@subtest_each("query", [0, 7])
def test_update_norms_and_cosines_in_closed_form(trace, query):
    ours = sublayer_updates(trace, query)
    before = {out: old for _name, old, added, _after in layouts.residual_sums(trace.config) for out in added}
    for i, (new, old) in enumerate(before.items()):
        stream, added = trace[old][query].astype(float), trace[new][query].astype(float)
        assert ours.norms[i] == pytest.approx(math.sqrt(sum(added**2)))
        assert ours.before[i] == pytest.approx(math.sqrt(sum(stream**2)))
        assert ours.cosines[i] == pytest.approx(sum(stream * added) / math.sqrt(sum(stream**2) * sum(added**2)))


def test_cosine_sign_of_aligned_opposed_and_orthogonal_updates(rope_trace):
    stream = np.zeros((12, 24), np.float32)
    stream[:, 0] = 2
    along, against, across = np.float32([3, 0]), np.float32([-1, 0]), np.float32([0, 5])
    values = {**rope_trace.values, "blocks.0.resid_pre": stream}
    for name, after, (x, y) in (
        ("blocks.0.attn.out", "blocks.0.resid_mid", along),
        ("blocks.0.ffn.out", "blocks.0.resid_post", against),
        ("blocks.1.attn.out", "blocks.1.resid_mid", across),
        ("blocks.1.ffn.out", "blocks.1.resid_post", np.float32([0, 0])),
    ):
        added = np.zeros_like(stream)
        added[:, 0], added[:, 1] = x, y
        stream = stream + added
        values |= {name: added, after: stream} | (
            {"blocks.1.resid_pre": stream} if after == "blocks.0.resid_post" else {}
        )
    ours = sublayer_updates(replace(rope_trace, values=values), 0)
    assert_allclose(ours.cosines, [1, -1, 0, 0])
    assert_allclose(ours.norms, [3, 1, 5, 0])
    assert_allclose(ours.before, [2, 5, 4, math.sqrt(41)])


@each_style
@subtest_each("query", [0, 11])
def test_stage_similarities_in_closed_form(trace, query):
    ours = stage_similarities(trace, query)
    vectors = [trace[stage.tap][query].astype(float) for stage in residual_stages(trace)]
    expected = [[a @ b / math.sqrt((a @ a) * (b @ b)) for b in vectors] for a in vectors]
    assert_allclose(ours, expected, atol=1e-12)
    assert_allclose(np.diag(ours), 1)


def test_outlier_dimensions_are_largest(rope_trace):
    built = np.ones((12, 24), np.float32)
    built[:, 5], built[:6, 9] = -30, 100  # of either sign; the second at half of the tokens
    values = {**rope_trace.values, "blocks.1.resid_mid": built}
    ours = find_outlier_dimensions(replace(rope_trace, values=values), max_count=2)
    assert_array_equal(ours.dimensions, [9, 5])
    assert_allclose(ours.sizes[3], [50.5, 30])
    assert_allclose(ours.ratios[3], [50.5, 30])


@each_style
def test_outlier_dimensions_match_brute_force(trace):
    ours = find_outlier_dimensions(trace, max_count=24)
    sizes = np.abs(residual_stream(trace)).mean(1)
    assert_allclose(ours.sizes, sizes[:, ours.dimensions], rtol=1e-5)
    assert_allclose(ours.ratios, (sizes / np.median(sizes, axis=1, keepdims=True))[:, ours.dimensions], rtol=1e-5)
    assert (np.diff(ours.ratios.max(0)) <= 0).all()
    other_ratios = np.delete(sizes / np.median(sizes, axis=1, keepdims=True), ours.dimensions, axis=1)
    assert len(set(ours.dimensions)) == 24
    assert other_ratios.max(initial=0) <= ours.ratios.max(0).min() + 1e-6


@each_style
@subtest_each("layer", [0, 1])
def test_norm_statistics_match_recomputation(trace, layer):
    readings = norm_statistics_in_layer(trace, layer)
    wanted = {
        name: input_tap
        for name, input_tap in layouts.block_norms(trace.config).items()
        if name.startswith(f"blocks.{layer}.")
    }
    assert {reading.name: reading.before for reading in readings} == wanted
    for ours in readings:
        assert ours.error < 1e-5
        x = trace[ours.before].astype(float)
        spread = x.var(-1) if trace.config.norm == "layernorm" else (x**2).mean(-1)
        assert_allclose(ours.scales, np.sqrt(spread + trace.config.norm_eps), rtol=1e-6)
        centred = trace.config.norm == "layernorm"
        assert_allclose(ours.means, x.mean(-1) if centred else np.full(len(x), np.nan), atol=1e-7)


@each_style
def test_error_reveals_altered_norm(trace):
    name = list(layouts.block_norms(trace.config))[-1]
    built = replace(trace, values={**trace.values, name: trace[name] + 0.25})
    assert norm_statistics(built, name).error == pytest.approx(0.25, abs=1e-5)


def test_summaries_of_known_distributions():
    logits = np.log(np.array([[0.5, 0.125, 0.25, 0.125], [0.25, 0.25, 0.25, 0.25]])) + [[100], [-100]]
    summaries = LogitSummaries.from_logits(logits)
    assert summaries.top.tolist() == [[0, 2, 1], [0, 1, 2]]
    np.testing.assert_allclose(summaries.probabilities, [[0.5, 0.25, 0.125], [0.25] * 3])
    np.testing.assert_allclose(summaries.entropy, [1.75, 2])
    np.testing.assert_allclose(summaries.log_total, [100, -100])


def test_vocabulary_of_two_has_two_top_tokens():
    assert LogitSummaries.from_logits(np.array([[1.0, 2.0]])).top.tolist() == [[1, 0]]


def test_certain_token_has_entropy_0():
    assert LogitSummaries.from_logits(np.array([[0.0, 1e4, 0.0]])).entropy == 0


def test_summaries_match_sorted_logits():
    """Cases: logits that rise, that fall, that are all equal, and whose exponentials overflow or underflow."""
    logits = np.random.default_rng(0).normal(size=(6, 50)) * 5
    logits[1], logits[2], logits[3] = np.arange(50) * 40, -np.arange(50) * 40, 1.5
    logits[4, [3, 30, 44]] = 99
    summaries = LogitSummaries.from_logits(logits)
    order = np.argsort(-logits, axis=-1, kind="stable")
    np.testing.assert_array_equal(summaries.top, order[:, :3])
    shares = np.exp(logits - logits.max(-1, keepdims=True))
    plain = shares / shares.sum(-1, keepdims=True)
    np.testing.assert_allclose(summaries.probabilities, np.take_along_axis(plain, order[:, :3], -1), rtol=1e-12)
    np.testing.assert_allclose(summaries.entropy, -(plain * np.log2(np.maximum(plain, 1e-300))).sum(-1), atol=1e-12)
    np.testing.assert_allclose(summaries.log_total, np.log(shares.sum(-1)) + logits.max(-1), rtol=1e-12)


def test_nan_logit_makes_summary_nan():
    logits = np.zeros((2, 8))
    logits[1, 5] = np.nan
    summaries = LogitSummaries.from_logits(logits)
    np.testing.assert_allclose(summaries.entropy, [3, np.nan])
    assert np.isnan(summaries.probabilities[1]).all() and np.isfinite(summaries.probabilities[0]).all()


@each_style
def test_apply_norm_matches_model(trace):
    for name, read in layouts.block_norms(trace.config).items():
        np.testing.assert_allclose(apply_norm(trace, name, trace[read]), trace[name], atol=1e-5)


@each_style
def test_unembedded_last_stream_gives_logits(trace):
    *_sum, last = layouts.residual_sums(trace.config)[-1]
    normalised = apply_norm(trace, "final_norm", trace[last])
    np.testing.assert_allclose(normalised, trace["final_norm"], atol=1e-5)
    np.testing.assert_allclose(unembed_vectors(trace, normalised), trace["logits"], atol=1e-4)


@each_style
def test_norm_with_fixed_scale_is_additive(trace):
    name = "blocks.1.attn_norm"
    parts = np.random.default_rng(0).normal(size=(3, 5, trace.config.d_model))
    whole = parts.sum(0)
    scale = compute_norm_divisor(trace, whole, name)
    shift = trace.weights.get(f"{name}.bias", 0.0)
    summed = sum(apply_norm(trace, name, part, scale) - shift for part in parts) + shift
    np.testing.assert_allclose(summed, apply_norm(trace, name, whole), atol=1e-10)
