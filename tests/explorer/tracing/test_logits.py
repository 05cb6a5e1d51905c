"""Logits in chunks of positions: the results equal those of all positions at once."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

import explorer.tracing.trace as trace_module
from explorer.tracing.capture import capture
from explorer.tracing.trace import Logits, Trace, logits_from_array
from tests.sample_models import applicable_interventions, models
from tests.subtest_loops import each_style, subtest_each

IDS = tuple(range(3, 15))


each_text = subtest_each("text", ["", "logits*scale*2~logits@3-5*scale*-3"])
each_chunk_size = subtest_each("positions", [1, 5, 12, 100])


def set_chunk_size(monkeypatch, style: str, positions: int):
    monkeypatch.setattr(trace_module, "CHUNK_BYTES", 4 * models()[style].config.vocab_size * positions)


def capture_stored_and_lazy(style: str, text: str) -> tuple[Trace, Trace]:
    """Return a run that stores its logits, and one that recomputes them."""
    lm = models()[style]
    edits = applicable_interventions(lm, text) if text else ()
    return capture(lm, IDS, edits), capture(lm, IDS, edits, max_bytes=0)


@each_style
@each_text
@each_chunk_size
def test_logits_and_statistics_equal_pytorch(style, text, positions, monkeypatch):
    set_chunk_size(monkeypatch, style, positions)
    runs = capture_stored_and_lazy(style, text)
    whole = torch.tensor(runs[0]["logits"]).double()
    following = torch.tensor(IDS[1:])
    for run in runs:
        logits, summary = run.logits, run.logits.summary
        assert logits.shape == tuple(whole.shape)
        assert_allclose(run["logits"], whole, atol=1e-5)
        assert_allclose(logits.log_sum_exp, whole.logsumexp(-1), atol=1e-5)
        entropy = torch.special.entr(whole.softmax(-1)).sum(-1) / np.log(2)
        assert_allclose(logits.entropy, entropy, atol=1e-5)
        top = whole.topk(3)
        assert_array_equal(summary.likeliest, top.indices)
        assert_allclose(summary.likeliest_logits, top.values, atol=1e-5)
        actual = whole[:-1].gather(1, following[:, None])
        assert_allclose(summary.next_logit, actual[:, 0], atol=1e-5)
        assert_array_equal(summary.next_rank, (whole[:-1] > actual).sum(-1) + 1)
        for position in (0, 4, 11, -1):
            assert_allclose(logits.row(position), whole[position], atol=1e-5)
            assert_array_equal(logits.top(7, position), whole[position].topk(7).indices)
            assert_allclose(logits.token_logits([5, 9], position), whole[position, [5, 9]], atol=1e-5)
        assert_allclose(logits.token_logits(IDS[1:], range(11)), actual[:, 0], atol=1e-5)


@each_style
@each_text
@each_chunk_size
def test_chunks_cover_each_position_once(style, text, positions, monkeypatch):
    set_chunk_size(monkeypatch, style, positions)
    runs = capture_stored_and_lazy(style, text)
    for run in runs:
        slices, chunks = zip(*run.logits.chunks(), strict=True)
        assert [chunk.shape[0] for chunk in chunks] == [positions.stop - positions.start for positions in slices]
        assert max(map(len, chunks)) == min(positions, 12)
        assert_array_equal(np.concatenate([np.arange(12)[positions] for positions in slices]), np.arange(12))


@each_style
@each_text
def test_slices_equal_whole_logits(style, text):
    runs = capture_stored_and_lazy(style, text)
    for part in ((3,), (-2,), (3, 7), (slice(2, 9),), (slice(2, 9), 4), (slice(None), slice(5)), ()):
        assert_allclose(runs[1].get_slice("logits", *part), runs[0]["logits"][part], atol=1e-5)
    assert_array_equal(runs[0].get_slice("embed", 3), runs[0]["embed"][3])


def test_equal_logits_rank_by_token_id():
    logits = logits_from_array((0, 1), np.array([[1, 3, 3, 2, 3], [0, 0, 0, 0, 0]], np.float32))
    assert logits.top(4, 0).tolist() == [1, 2, 4, 3]
    assert [logits.rank(token_id, 0) for token_id in range(5)] == [5, 1, 2, 4, 3]
    assert logits.summary.likeliest.tolist() == [[1, 2, 4], [0, 1, 2]]
    assert logits.summary.next_rank.tolist() == [1]


def test_entropy_and_log_sum_exp_match_closed_forms():
    """Equal logits a have log-sum-exp ln n + a and entropy log₂ n; a dominant logit a has a and 0."""
    logits = logits_from_array((0, 2, 1), np.array([[2.5] * 8, [0, 0, 1e4, 0, 0, 0, 0, 0], [-1e4] * 8], np.float32))
    assert_allclose(logits.log_sum_exp, [2.5 + np.log(8), 1e4, -1e4 + np.log(8)], rtol=1e-7)
    assert_allclose(logits.entropy, [3, 0, 3], atol=1e-6)
    assert logits.summary.next_logit.tolist() == [2.5, 0]


def test_at_most_one_chunk_is_computed_at_once(lms, monkeypatch):
    lm = lms["rope"]
    some, sizes = capture(lm, IDS, max_bytes=0), []
    monkeypatch.setattr(trace_module, "CHUNK_BYTES", 4 * lm.config.vocab_size * 5)
    handle = lm.lm_head.register_forward_hook(lambda module, inputs, output: sizes.append(output.shape[1]))
    try:
        some.logits.summary, some.logits.row(3), some.logits.row(3), some.logits.summary
    finally:
        handle.remove()
    assert sizes == [5, 5, 2, 1]


@each_style
@each_text
def test_position_out_of_range_is_refused(style, text):
    runs = capture_stored_and_lazy(style, text)
    for run in runs:
        for position in (12, -13):
            with pytest.raises(IndexError, match=f"no position {position} among 12"):
                run.logits.row(position)


def test_single_token_has_no_next_rank(lms):
    summary = capture(lms["rope"], (4,), max_bytes=0).logits.summary
    assert summary.next_rank.shape == summary.next_logit.shape == (0,) and summary.likeliest.shape == (1, 3)


def test_vocabulary_of_two_has_two_likeliest():
    logits = Logits((0,), 2, lambda start, stop: np.array([[1, 2]], np.float32), lambda i: np.array([1, 2], np.float32))
    assert logits.summary.likeliest.tolist() == [[1, 0]]
