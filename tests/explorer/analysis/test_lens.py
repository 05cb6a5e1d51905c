from dataclasses import replace

import numpy as np
import pytest
import torch

from explorer.analysis import lens, unembedding
from explorer.analysis.lens import READINGS, depths, ranks, ranks_of, readings, tracked
from explorer.analysis.next_token import next_token
from explorer.state.interventions import parse_edits
from explorer.tracing import matrices
from explorer.tracing.capture import capture
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


def test_a_run_is_read_once_and_forgotten_with_it(rope_trace):
    trace = replace(rope_trace)
    assert readings(trace, range(3)) is readings(trace, range(3))
    assert readings(trace, range(3)) is not readings(trace, range(2))
    kept = len(READINGS)
    del trace
    assert len(READINGS) == kept - 1


def test_the_last_few_readings_of_a_run_are_kept(rope_trace, monkeypatch):
    monkeypatch.setattr(lens, "MOST_READINGS", 4)
    trace = replace(rope_trace)
    first, *_ = found = [readings(trace, range(end)) for end in range(1, 7)]
    assert list(READINGS[trace]) == [range(end) for end in range(3, 7)]
    assert readings(trace, range(6)) is found[-1]
    np.testing.assert_array_equal(readings(trace, range(1)).log_total, first.log_total)


def test_positions_among_those_of_a_page_are_not_read_again(rope_trace, monkeypatch):
    trace = replace(rope_trace)
    page, alone = readings(trace, range(4, 10)), readings(replace(rope_trace), range(5, 8))
    monkeypatch.setattr(lens, "logits_of", None)
    part = readings(trace, range(5, 8))
    np.testing.assert_array_equal(part.top, page.top[:, 1:4])
    np.testing.assert_array_equal(part.top, alone.top)
    for field in ("probabilities", "log_total", "entropy"):
        np.testing.assert_allclose(getattr(part, field), getattr(alone, field), rtol=1e-5)
    with pytest.raises(TypeError):
        readings(trace, range(3, 8))


@pytest.mark.parametrize(
    ("style", "text"), [("rope", ""), ("local", ""), ("rope", "logits.7*scale*2"), ("rope", "logits@6*scale*2")]
)
def test_a_vocabulary_is_read_in_parts_and_is_the_same(lms, monkeypatch, style, text):
    whole = capture(lms[style], list(range(3, 15)), parse_edits(text))
    parts = replace(whole)
    shown, ids = range(2, 9), (0, 7, 150, 299)
    expected, its_ranks = readings(whole, shown), ranks_of(whole, shown, ids)
    monkeypatch.setattr(matrices, "MOST_BYTES", 8 * 64 * whole.config.d_model)  # 64 tokens
    monkeypatch.setattr(unembedding, "CHUNK_BYTES", 4 * 64 * 5)  # of 5 vectors
    assert len(list(lens.logits_of(parts, shown))) > 20
    np.testing.assert_array_equal(readings(parts, shown).top, expected.top)
    np.testing.assert_array_equal(ranks_of(parts, shown, ids), its_ranks)
    np.testing.assert_array_equal(ranks(parts, shown, 150), its_ranks[2])
    for field in ("probabilities", "log_total", "entropy"):
        np.testing.assert_allclose(getattr(readings(parts, shown), field), getattr(expected, field), rtol=1e-5)


@pytest.mark.parametrize("text", ["logits.7*scale*2", "logits@6*scale*2"])
def test_a_token_is_tracked_with_the_runs_edits(lms, text):
    trace, shown = capture(lms["rope"], list(range(3, 15)), parse_edits(text)), range(2, 9)
    plain = [next_token(trace, position).plain[7] for position in shown]
    np.testing.assert_allclose(tracked(trace, shown, 7)[-1], plain, rtol=1e-4)
