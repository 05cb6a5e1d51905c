from dataclasses import replace

import numpy as np
import pytest
import torch

from explorer.analysis import logit_lens
from explorer.analysis.logit_lens import (
    SUMMARIES,
    depth_names,
    lens_summaries,
    single_token_ranks,
    token_probabilities,
    token_ranks,
)
from explorer.analysis.next_token import next_token_distribution
from explorer.interventions import parse_interventions
from explorer.tracing import weight_matrices
from explorer.tracing.capture import capture
from model.layers.attention import softcap
from tests import layouts
from tests.subtest_loops import each_style


@each_style
def test_last_depth_is_model_distribution(trace):
    all_positions = range(len(trace))
    summaries = lens_summaries(trace, all_positions)
    for position in all_positions:
        prediction = next_token_distribution(trace, position)
        np.testing.assert_array_equal(summaries.top[-1, position], prediction.top(3))
        np.testing.assert_allclose(
            summaries.probabilities[-1, position], prediction.plain[prediction.top(3)], atol=1e-5
        )
        np.testing.assert_allclose(summaries.entropy[-1, position], prediction.entropy, atol=1e-4)
    for token_id in (0, 7, 299):
        plain = [next_token_distribution(trace, position).plain[token_id] for position in all_positions]
        np.testing.assert_allclose(token_probabilities(trace, all_positions, token_id)[-1], plain, atol=1e-6)
        last = [next_token_distribution(trace, position).rank(token_id) for position in all_positions]
        np.testing.assert_array_equal(single_token_ranks(trace, all_positions, token_id)[-1], last)


@each_style
def test_each_depth_skips_later_sublayers(trace, lms, style):
    """Run the model's own modules, but skip the sublayers after the depth."""
    all_positions = range(len(trace))
    lm = lms[style]
    names = ["embed", *(after for *_sum, after in layouts.residual_sums(trace.config))]
    for i, name in enumerate(names):
        logits = lm.lm_head(lm.final_norm(torch.tensor(trace[name]))).double()  # (T, V)
        expected = torch.softmax(softcap(logits, lm.config.logit_cap), -1).numpy()
        for token_id in (0, 7, 299):
            np.testing.assert_allclose(
                token_probabilities(trace, all_positions, token_id)[i], expected[:, token_id], atol=1e-6
            )
        np.testing.assert_allclose(
            lens_summaries(trace, all_positions).probabilities[i, :, 0], expected.max(-1), atol=1e-6
        )


@each_style
def test_depths_are_embedding_and_sublayer_outputs(trace):
    assert depth_names(trace) == tuple(layouts.stage_names(trace.config))
    assert lens_summaries(trace, range(3, 5)).top.shape == (len(layouts.stage_names(trace.config)), 2, 3)


@each_style
def test_positions_subset_matches_all_positions(trace):
    all_positions = range(len(trace))
    page, whole = lens_summaries(trace, range(4, 9)), lens_summaries(trace, all_positions)
    np.testing.assert_array_equal(page.top, whole.top[:, 4:9])
    np.testing.assert_allclose(
        token_probabilities(trace, range(4, 9), 5), token_probabilities(trace, all_positions, 5)[:, 4:9], rtol=1e-5
    )
    np.testing.assert_array_equal(
        single_token_ranks(trace, range(4, 9), 5), single_token_ranks(trace, all_positions, 5)[:, 4:9]
    )


def test_summaries_are_cached_while_run_exists(rope_trace):
    trace = replace(rope_trace)
    assert lens_summaries(trace, range(3)) is lens_summaries(trace, range(3))
    assert lens_summaries(trace, range(3)) is not lens_summaries(trace, range(2))
    num_cached = len(SUMMARIES)
    del trace
    assert len(SUMMARIES) == num_cached - 1


def test_cache_keeps_most_recent_summaries(rope_trace, monkeypatch):
    monkeypatch.setattr(logit_lens, "MAX_SUMMARIES", 4)
    trace = replace(rope_trace)
    first, *_ = summaries = [lens_summaries(trace, range(end)) for end in range(1, 7)]
    assert list(SUMMARIES[trace]) == [range(end) for end in range(3, 7)]
    assert lens_summaries(trace, range(6)) is summaries[-1]
    np.testing.assert_array_equal(lens_summaries(trace, range(1)).log_total, first.log_total)


def test_summaries_are_sliced_from_cached_page(rope_trace, monkeypatch):
    trace = replace(rope_trace)
    page, expected = lens_summaries(trace, range(4, 10)), lens_summaries(replace(rope_trace), range(5, 8))
    monkeypatch.setattr(logit_lens, "iter_lens_logits", None)
    cached = lens_summaries(trace, range(5, 8))
    np.testing.assert_array_equal(cached.top, page.top[:, 1:4])
    np.testing.assert_array_equal(cached.top, expected.top)
    for field in ("probabilities", "log_total", "entropy"):
        np.testing.assert_allclose(getattr(cached, field), getattr(expected, field), rtol=1e-5)
    with pytest.raises(TypeError):
        lens_summaries(trace, range(3, 8))


@pytest.mark.parametrize(
    ("style", "text"), [("rope", ""), ("local", ""), ("rope", "logits.7*scale*2"), ("rope", "logits@6*scale*2")]
)
def test_chunks_give_same_summaries(lms, monkeypatch, style, text):
    whole = capture(lms[style], list(range(3, 15)), parse_interventions(text))
    chunked = replace(whole)
    positions, ids = range(2, 9), (0, 7, 150, 299)
    expected, its_ranks = lens_summaries(whole, positions), token_ranks(whole, positions, ids)
    monkeypatch.setattr(weight_matrices, "MAX_CHUNK_BYTES", 8 * 64 * whole.config.d_model)  # 64 tokens
    monkeypatch.setattr(logit_lens, "LENS_CHUNK_BYTES", 4 * 300 * 5)  # 5 vectors
    assert len(list(logit_lens.iter_lens_logits(chunked, positions))) > 4
    np.testing.assert_array_equal(lens_summaries(chunked, positions).top, expected.top)
    np.testing.assert_array_equal(token_ranks(chunked, positions, ids), its_ranks)
    np.testing.assert_array_equal(single_token_ranks(chunked, positions, 150), its_ranks[2])
    for field in ("probabilities", "log_total", "entropy"):
        np.testing.assert_allclose(
            getattr(lens_summaries(chunked, positions), field), getattr(expected, field), rtol=1e-5
        )


@pytest.mark.parametrize("text", ["logits.7*scale*2", "logits@6*scale*2"])
def test_token_probabilities_include_logit_interventions(lms, text):
    trace, positions = capture(lms["rope"], list(range(3, 15)), parse_interventions(text)), range(2, 9)
    plain = [next_token_distribution(trace, position).plain[7] for position in positions]
    np.testing.assert_allclose(token_probabilities(trace, positions, 7)[-1], plain, rtol=1e-4)
