"""Next-token distributions, their divergences and measures, and a text's loss."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from numpy.testing import assert_allclose
from torch.distributions import Categorical
from torch.distributions import kl_divergence as nats

from explorer.analysis.next_token import (
    actual_token_ranks,
    align_to_vocabulary,
    entropy,
    jensen_shannon_distance,
    kl_divergence,
    mean_text_loss,
    next_token_distribution,
    surprisal,
    top_indices,
)
from explorer.tracing.trace import Trace
from model.generation.autoregressive import generate
from model.generation.sampling import sampling_stages, uniform_draw
from tests.sample_models import capture_style, models
from tests.subtest_loops import each_style, subtest_each


@pytest.fixture
def with_logits(tiny_config):
    """Return `with_logits(*logits)`: a run with these logits at the last position."""

    def with_logits(*logits: float) -> Trace:
        values = {"logits": np.array([logits], np.float32)}
        return Trace(tiny_config, (0,), tuple(map(str, range(len(logits)))), values)

    return with_logits


@each_style
@subtest_each("position", [0, 5, 11])
def test_plain_distribution_is_softmax_of_logits(trace, position):
    prediction = next_token_distribution(trace, position, temperature=0.3, top_k=2)
    expected = torch.tensor(trace["logits"][position]).double().softmax(-1)
    np.testing.assert_allclose(prediction.plain, expected, atol=1e-12)


@each_style
def test_sampled_distribution_follows_settings(trace):
    prediction = next_token_distribution(trace, 4, temperature=0.5, top_k=3)
    top = torch.tensor(trace["logits"][4]).double().topk(3)
    np.testing.assert_allclose(prediction.sampled[top.indices], (top.values / 0.5).softmax(-1), atol=1e-12)
    assert (prediction.sampled > 0).sum() == 3


@each_style
def test_invalid_setting_is_refused(trace):
    with pytest.raises(ValueError, match="temperature"):
        next_token_distribution(trace, 0, temperature=-1)


@each_style
def test_stages_follow_settings_and_previous_tokens(trace):
    settings = {"top_p": 0.8, "min_p": 0.01, "repetition_penalty": 1.7}
    prediction = next_token_distribution(trace, 6, 0.7, 30, **settings)
    expected = sampling_stages(trace["logits"][6], 0.7, 30, previous=trace.token_ids[:7], **settings)
    for name in ("penalised", "scaled_logits", "in_top_k", "in_top_p", "in_min_p", "probabilities", "cumulative"):
        np.testing.assert_array_equal(getattr(prediction.stages, name), getattr(expected, name))
    assert prediction.sampled is prediction.stages.probabilities
    later = next_token_distribution(trace, 6, repetition_penalty=1.7).stages
    changed = np.flatnonzero(later.penalised != later.logits)
    assert set(changed) == {i for i in trace.token_ids[:7] if later.logits[i]}


@each_style
@subtest_each("settings", [{}, {"top_k": 20, "top_p": 0.8}, {"min_p": 0.1, "repetition_penalty": 1.5}], ids=str)
def test_drawn_token_is_generated_token(lms, style, trace, settings):
    for position in (0, 5, 11):
        prompt = trace.token_ids[: position + 1]
        (step,) = generate(lms[style], prompt, max_new_tokens=1, temperature=0.9, seed=3, **settings)
        prediction = next_token_distribution(trace, position, 0.9, seed=3, **settings)
        assert (prediction.sampled_token_id, prediction.u) == (step.token_id, step.u)
        assert prediction.sampled[prediction.sampled_token_id] == pytest.approx(step.probability, abs=1e-5)


@each_style
def test_draw_depends_on_seed_and_absolute_position(trace):
    assert next_token_distribution(trace, 4).u is None
    assert next_token_distribution(trace, 4).sampled_token_id is None
    assert next_token_distribution(trace, 4, seed=2).u == uniform_draw(2, position=5)
    assert next_token_distribution(trace, 4, seed=2, start=100).u == uniform_draw(2, position=105)


@each_style
def test_actual_is_next_token(trace):
    assert next_token_distribution(trace, 0).actual == trace.token_ids[1]
    assert next_token_distribution(trace, 10).actual == trace.token_ids[11]
    assert next_token_distribution(trace, 11).actual is None


def test_top_orders_by_probability_then_id(with_logits):
    prediction = next_token_distribution(with_logits(1, 3, 2, 3, 1), 0)
    assert prediction.top(4).tolist() == [1, 3, 2, 0]
    assert prediction.top(99).tolist() == [1, 3, 2, 0, 4]


def test_rank_counts_likelier_tokens(with_logits):
    prediction = next_token_distribution(with_logits(1, 3, 2, 3, 1), 0)
    assert [prediction.rank(i) for i in range(5)] == [4, 1, 3, 1, 4]


@pytest.mark.parametrize("k", [1, 2, 3, 8])
def test_entropy_of_k_equal_tokens_is_log2_k(with_logits, k):
    assert next_token_distribution(with_logits(*[7.0] * 8), 0, top_k=k).entropy == pytest.approx(math.log2(k))


def test_entropy_of_biased_coin(with_logits):
    p = 0.11
    entropy = next_token_distribution(with_logits(math.log(p), math.log(1 - p)), 0).entropy
    assert entropy == pytest.approx(-p * math.log2(p) - (1 - p) * math.log2(1 - p), rel=1e-6)


def test_entropy_of_certain_token_is_0(with_logits):
    assert str(next_token_distribution(with_logits(1, 2, 3), 0, temperature=0).entropy) == "0.0"
    assert next_token_distribution(with_logits(-1000, 1000, 0), 0).entropy == 0


@each_style
def test_surprisal_is_cross_entropy_in_bits(trace):
    loss = F.cross_entropy(
        torch.tensor(trace["logits"][:-1]).double(), torch.tensor(trace.token_ids[1:]), reduction="none"
    )
    bits = surprisal(trace)
    assert bits.shape == (len(trace),)
    assert math.isnan(bits[0])
    np.testing.assert_allclose(bits[1:], loss / math.log(2), rtol=1e-5)


@each_style
def test_surprisal_agrees_with_distribution(trace):
    prediction = next_token_distribution(trace, 6)
    assert surprisal(trace)[7] == pytest.approx(-math.log2(prediction.plain[prediction.actual]), rel=1e-5)


def test_surprisal_of_huge_logits_is_finite(tiny_config):
    values = {"logits": np.array([[1e4, -1e4], [0, 0]], np.float32)}
    assert surprisal(Trace(tiny_config, (0, 1), ("a", "b"), values))[1] == pytest.approx(2e4 / math.log(2))


@each_style
def test_single_token_has_no_surprisal(capture_trace, style):
    np.testing.assert_array_equal(surprisal(capture_trace(style, 1)), [np.nan])


@each_style
def test_entropy_and_rank_agree_with_distribution(trace):
    bits, places = entropy(trace), actual_token_ranks(trace)
    assert bits.shape == places.shape == (len(trace),)
    assert math.isnan(bits[0]) and math.isnan(places[0])
    for position in range(1, len(trace)):
        prediction = next_token_distribution(trace, position - 1)
        assert bits[position] == pytest.approx(prediction.entropy, abs=1e-5)
        assert places[position] == prediction.rank(prediction.actual)


@each_style
def test_entropy_matches_pytorch(trace):
    p = torch.tensor(trace["logits"][:-1]).double().softmax(-1)
    np.testing.assert_allclose(entropy(trace)[1:], torch.special.entr(p).sum(-1) / math.log(2), atol=1e-5)


def test_entropy_of_huge_logits_is_0(tiny_config):
    values = {"logits": np.array([[1e4, -1e4], [0, 0]], np.float32)}
    trace = Trace(tiny_config, (0, 1), ("a", "b"), values)
    assert entropy(trace)[1] == 0
    assert actual_token_ranks(trace)[1] == 2


def random_distributions(seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.ones(7)), rng.dirichlet(np.full(7, 0.3))


def reference_divergence(p: np.ndarray, q: np.ndarray) -> float:
    """Return a divergence of two distributions in bits, by PyTorch."""
    return float(
        nats(*(Categorical(probs=torch.tensor(distribution, dtype=torch.float64)) for distribution in (p, q)))
    ) / math.log(2)


@pytest.mark.parametrize("seed", range(4))
def test_kl_divergence_matches_pytorch(seed):
    p, q = random_distributions(seed)
    assert kl_divergence(p, q) == pytest.approx(reference_divergence(p, q), rel=1e-9)
    assert kl_divergence(q, p) == pytest.approx(reference_divergence(q, p), rel=1e-9)


def test_kl_divergence_edge_cases():
    p = np.array([0.5, 0.5, 0.0])
    assert kl_divergence(p, p) == 0
    assert kl_divergence(p, np.array([1.0, 0.0, 0.0])) == math.inf
    assert kl_divergence(np.array([1.0, 0.0, 0.0]), p) == 1  # a bit for a fair coin
    assert math.isnan(kl_divergence(p, np.array([0.5, np.nan, 0.5])))


@pytest.mark.parametrize("seed", range(4))
def test_jensen_shannon_distance_matches_formula(seed):
    p, q = random_distributions(seed)
    middle = (p + q) / 2
    expected = math.sqrt((reference_divergence(p, middle) + reference_divergence(q, middle)) / 2)
    assert jensen_shannon_distance(p, q) == pytest.approx(expected, rel=1e-9)
    assert_allclose(jensen_shannon_distance(np.stack([p, q]), np.stack([q, q])), [expected, 0], atol=1e-9)


def test_jensen_shannon_distance_edge_cases():
    assert jensen_shannon_distance(np.array([1.0, 0.0]), np.array([0.0, 1.0])) == 1
    assert np.isnan(jensen_shannon_distance(np.array([1.0, 0.0]), np.array([np.nan, 1.0])))


def test_vocabularies_are_aligned_by_token_text():
    values = np.array([0.1, 0.2, 0.7])
    assert align_to_vocabulary(values, ("a", "b", "c"), ("a", "b", "c")) is values
    assert_allclose(align_to_vocabulary(values, ("a", "b", "c"), ("c", "x", "a", "b")), [0.7, np.nan, 0.1, 0.2])


rng = np.random.default_rng(0)
VALUES = {
    "different": rng.normal(size=50),
    "often equal": rng.integers(0, 4, 50).astype(np.float32),
    "all alike": np.zeros(50),
    "infinite": np.where(rng.random(50) < 0.5, -np.inf, rng.normal(size=50)),
    "hardly a number": np.where(rng.random(50) < 0.9, np.nan, rng.normal(size=50)),
}


@pytest.mark.parametrize("values", VALUES.values(), ids=VALUES)
def test_top_indices_match_stable_sort(values):
    for most in (0, 1, 3, 10, 49, 50, 60):
        np.testing.assert_array_equal(top_indices(values, most), np.argsort(-values, kind="stable")[:most])


@each_style
def test_mean_text_loss_is_cross_entropy(style):
    trace = capture_style(style)
    ids = torch.tensor([trace.token_ids])
    with torch.no_grad():
        logits = models()[style](ids)
    expected = torch.nn.functional.cross_entropy(logits[0, :-1].double(), ids[0, 1:])
    np.testing.assert_allclose(mean_text_loss(trace), expected, rtol=1e-5)


def test_single_token_has_no_loss():
    assert math.isnan(mean_text_loss(capture_style("rope", 1)))
