import numpy as np
import pytest

from explorer.analysis.logit_lens import LogitSummaries, token_ranks_in_blocks


def test_readings_of_known_distributions():
    logits = np.log(np.array([[0.5, 0.125, 0.25, 0.125], [0.25, 0.25, 0.25, 0.25]])) + [[100], [-100]]
    summaries = LogitSummaries.from_logits(logits)
    assert summaries.top.tolist() == [[0, 2, 1], [0, 1, 2]]
    np.testing.assert_allclose(summaries.probabilities, [[0.5, 0.25, 0.125], [0.25] * 3])
    np.testing.assert_allclose(summaries.entropy, [1.75, 2])
    np.testing.assert_allclose(summaries.log_total, [100, -100])


def test_a_vocabulary_of_two_has_two_tokens_at_the_top():
    assert LogitSummaries.from_logits(np.array([[1.0, 2.0]])).top.tolist() == [[1, 0]]


def test_certainty_has_no_entropy():
    assert LogitSummaries.from_logits(np.array([0.0, 1e4, 0.0])).entropy == 0


@pytest.mark.parametrize("width", [1, 2, 7, 50])
def test_tokens_in_parts_read_as_all_at_once(width):
    """Cases: logits that rise, that fall, that are all equal, and whose exponentials overflow or underflow."""
    logits = np.random.default_rng(0).normal(size=(6, 50)) * 5
    logits[1], logits[2], logits[3] = np.arange(50) * 40, -np.arange(50) * 40, 1.5
    logits[4, [3, 30, 44]] = 99
    blocks = [
        (slice(rows, rows + 3), slice(start, min(50, start + width)), logits[rows : rows + 3, start : start + width])
        for start in range(0, 50, width)
        for rows in (0, 3)
    ]
    summaries = LogitSummaries.from_blocks(blocks, 6, 50)
    order = np.argsort(-logits, axis=-1, kind="stable")
    np.testing.assert_array_equal(summaries.top, order[:, :3])
    shares = np.exp(logits - logits.max(-1, keepdims=True))
    plain = shares / shares.sum(-1, keepdims=True)
    np.testing.assert_allclose(summaries.probabilities, np.take_along_axis(plain, order[:, :3], -1), rtol=1e-12)
    np.testing.assert_allclose(summaries.entropy, -(plain * np.log2(np.maximum(plain, 1e-300))).sum(-1), atol=1e-12)
    np.testing.assert_allclose(summaries.log_total, np.log(shares.sum(-1)) + logits.max(-1), rtol=1e-12)
    target_logits = np.take_along_axis(logits, np.array([[7]] * 6), -1)[:, 0]
    np.testing.assert_array_equal(
        token_ranks_in_blocks(blocks, target_logits[None])[0], (logits > target_logits[:, None]).sum(-1) + 1
    )


def test_what_is_no_number_makes_none():
    logits = np.zeros((2, 8))
    logits[1, 5] = np.nan
    blocks = [(slice(0, 2), slice(start, start + 4), logits[:, start : start + 4]) for start in (0, 4)]
    summaries = LogitSummaries.from_blocks(blocks, 2, 8)
    np.testing.assert_allclose(summaries.entropy, [3, np.nan])
    assert np.isnan(summaries.probabilities[1]).all() and np.isfinite(summaries.probabilities[0]).all()
