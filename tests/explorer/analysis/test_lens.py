from dataclasses import replace

import numpy as np
import pytest
import torch

from explorer.analysis.lens import READINGS, Readings, depths, ranks, readings, tracked
from explorer.analysis.next_token import next_token
from model.layers.softcap import softcap
from tests import layouts


@pytest.fixture
def everywhere(trace) -> range:
    return range(len(trace))


def test_the_last_depth_is_the_models_own_distribution(trace, everywhere):
    read = readings(trace, everywhere)
    for position in everywhere:
        own = next_token(trace, position)
        np.testing.assert_array_equal(read.top[-1, position], own.top(3))
        np.testing.assert_allclose(read.probabilities[-1, position], own.plain[own.top(3)], atol=1e-5)
        np.testing.assert_allclose(read.entropy[-1, position], own.entropy, atol=1e-4)
    for token_id in (0, 7, 299):
        plain = [next_token(trace, position).plain[token_id] for position in everywhere]
        np.testing.assert_allclose(tracked(trace, everywhere, token_id)[-1], plain, atol=1e-6)
        last = [next_token(trace, position).rank(token_id) for position in everywhere]
        np.testing.assert_array_equal(ranks(trace, everywhere, token_id)[-1], last)


def test_every_depth_is_what_the_model_says_without_what_comes_after(trace, lms, style, everywhere):
    """Run the model's own modules, but no sublayer after the depth."""
    lm = lms[style]
    names = ["embed", *(after for *_sum, after in layouts.sums(trace.config))]
    for i, name in enumerate(names):
        logits = lm.lm_head(lm.final_norm(torch.tensor(trace[name]))).double()  # (T, V)
        expected = torch.softmax(softcap(logits, lm.config.logit_cap), -1).numpy()
        for token_id in (0, 7, 299):
            np.testing.assert_allclose(tracked(trace, everywhere, token_id)[i], expected[:, token_id], atol=1e-6)
        np.testing.assert_allclose(readings(trace, everywhere).probabilities[i, :, 0], expected.max(-1), atol=1e-6)


def test_there_is_a_depth_before_the_blocks_and_after_each_sublayer(trace):
    assert depths(trace) == tuple(layouts.stages(trace.config))
    assert readings(trace, range(3, 5)).top.shape == (len(layouts.stages(trace.config)), 2, 3)


def test_part_of_the_positions_reads_the_same_as_all(trace, everywhere):
    part, whole = readings(trace, range(4, 9)), readings(trace, everywhere)
    np.testing.assert_array_equal(part.top, whole.top[:, 4:9])
    np.testing.assert_allclose(tracked(trace, range(4, 9), 5), tracked(trace, everywhere, 5)[:, 4:9], rtol=1e-5)
    np.testing.assert_array_equal(ranks(trace, range(4, 9), 5), ranks(trace, everywhere, 5)[:, 4:9])


def test_readings_of_known_distributions():
    logits = np.log(np.array([[0.5, 0.125, 0.25, 0.125], [0.25, 0.25, 0.25, 0.25]])) + [[100], [-100]]
    read = Readings.of(logits)
    assert read.top[0, :2].tolist() == [0, 2]
    np.testing.assert_allclose(read.probabilities, [[0.5, 0.25, 0.125], [0.25] * 3])
    np.testing.assert_allclose(read.entropy, [1.75, 2])
    np.testing.assert_allclose(read.log_total, [100, -100])


def test_a_vocabulary_of_two_has_two_tokens_at_the_top():
    assert Readings.of(np.array([[1.0, 2.0]])).top.tolist() == [[1, 0]]


def test_certainty_has_no_entropy():
    assert Readings.of(np.array([0.0, 1e4, 0.0])).entropy == 0


def test_a_run_is_read_once_and_forgotten_with_it(rope_trace):
    trace = replace(rope_trace)
    assert readings(trace, range(3)) is readings(trace, range(3))
    assert readings(trace, range(3)) is not readings(trace, range(2))
    kept = len(READINGS)
    del trace
    assert len(READINGS) == kept - 1


def test_the_last_few_readings_of_a_run_are_kept(rope_trace):
    trace = replace(rope_trace)
    first, *_ = found = [readings(trace, range(end)) for end in range(1, 7)]
    assert list(READINGS[trace]) == [range(end) for end in range(3, 7)]
    assert readings(trace, range(6)) is found[-1]
    np.testing.assert_array_equal(readings(trace, range(1)).log_total, first.log_total)
