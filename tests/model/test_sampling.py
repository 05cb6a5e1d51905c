import numpy as np
import pytest
import torch

from model.sampling import draw, largest, sampling_distribution


@pytest.fixture
def logits() -> np.ndarray:
    """(200,), no two equal."""
    return np.random.default_rng(0).normal(scale=3, size=200).astype(np.float32)


@pytest.mark.parametrize("temperature", [0.05, 0.8, 1.0, 3.0])
@pytest.mark.parametrize("top_k", [None, 1, 7, 199, 200, 1000])
def test_agrees_with_the_warpers_of_transformers(logits, temperature, top_k):
    transformers = pytest.importorskip("transformers")
    scores = transformers.TemperatureLogitsWarper(temperature)(None, torch.from_numpy(logits)[None].double())
    if top_k is not None:
        scores = transformers.TopKLogitsWarper(top_k)(None, scores)
    expected = torch.softmax(scores[0], dim=-1).numpy()
    np.testing.assert_allclose(sampling_distribution(logits, temperature, top_k), expected, rtol=1e-9, atol=1e-12)


def test_top_k_of_zero_keeps_all(logits):
    assert (sampling_distribution(logits, 0.7, 0) == sampling_distribution(logits, 0.7, None)).all()


@pytest.mark.parametrize("top_k", [1, 2, 3, 4, 5, 6])
def test_exactly_k_survive_a_tie_and_they_are_the_first(top_k):
    logits = np.array([1.0, 2.0, 2.0, 0.0, 2.0, 2.0, 5.0])
    in_order = [6, 1, 2, 4, 5, 0, 3]
    probabilities = sampling_distribution(logits, 1.0, top_k)
    assert set(np.flatnonzero(probabilities)) == set(in_order[:top_k])
    assert probabilities.sum() == pytest.approx(1)


def test_largest_are_in_order_of_index():
    assert largest(np.array([3.0, 9.0, 3.0, 7.0, 3.0]), 4).tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("top_k", [None, 1, 50])
def test_temperature_zero_is_argmax(logits, top_k):
    probabilities = sampling_distribution(logits, 0, top_k)
    assert probabilities[logits.argmax()] == 1
    assert np.count_nonzero(probabilities) == 1


def test_temperature_zero_takes_the_first_of_equal_logits():
    assert sampling_distribution(np.array([0.0, 4.0, 4.0]), 0).tolist() == [0, 1, 0]


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_extreme_logits_and_temperatures_stay_finite(logits, scale):
    for probabilities in (sampling_distribution(logits, scale), sampling_distribution(logits.astype(float) * scale)):
        assert np.isfinite(probabilities).all()
        assert probabilities.sum() == pytest.approx(1)


def test_the_logits_are_left_as_they_were(logits):
    before = logits.copy()
    sampling_distribution(logits, 0.5, 10)
    assert (logits == before).all()


@pytest.mark.parametrize("temperature", [-0.1, float("inf"), float("-inf"), float("nan")])
def test_a_temperature_out_of_range_is_refused(logits, temperature):
    with pytest.raises(ValueError, match="temperature must be 0 or more, got"):
        sampling_distribution(logits, temperature)


def test_a_negative_top_k_is_refused(logits):
    with pytest.raises(ValueError, match=r"top_k must be 0 \(keep all\) or more, got -1"):
        sampling_distribution(logits, 1.0, -1)


def chi_square(counts: np.ndarray, probabilities: np.ndarray) -> float:
    expected = probabilities * counts.sum()
    return float(((counts - expected) ** 2 / expected).sum())


def test_draws_come_as_often_as_their_probabilities():
    """Chi-square test, 19 degrees of freedom: the statistic passes 43.8 once in a thousand times by chance."""
    logits = np.random.default_rng(3).normal(size=20)
    probabilities = sampling_distribution(logits, 0.9)
    counts = np.bincount([draw(probabilities, u) for u in np.random.default_rng(4).random(20_000)], minlength=20)
    assert chi_square(counts, probabilities) < 43.8
    assert chi_square(counts, sampling_distribution(logits, 1.0)) > 43.8  # fine enough to tell 0.9 from 1.0


def test_each_token_owns_its_stretch_of_the_unit_interval():
    probabilities = np.array([0.0, 0.25, 0.0, 0.5, 0.25, 0.0])
    below = np.nextafter
    drawn = {0.0: 1, below(0.25, 0): 1, 0.25: 3, below(0.75, 0): 3, 0.75: 4, below(1.0, 0): 4}
    assert {u: draw(probabilities, u) for u in drawn} == drawn


def test_the_largest_u_never_draws_an_impossible_token():
    """However the cumulative sum is rounded."""
    random = np.random.default_rng(5)
    for _ in range(200):
        probabilities = sampling_distribution(random.normal(size=50), top_k=int(random.integers(1, 50)))
        assert probabilities[draw(probabilities, np.nextafter(1.0, 0))] > 0
