import math

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch.distributions import Categorical
from torch.distributions import kl_divergence as nats

from explorer.analysis.next_token import align_to_vocabulary, jensen_shannon_distance, kl_divergence


def random_distributions(seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.ones(7)), rng.dirichlet(np.full(7, 0.3))


def reference(p: np.ndarray, q: np.ndarray) -> float:
    """Return a divergence of two distributions in bits, by PyTorch."""
    return float(
        nats(*(Categorical(probs=torch.tensor(distribution, dtype=torch.float64)) for distribution in (p, q)))
    ) / math.log(2)


@pytest.mark.parametrize("seed", range(4))
def test_the_divergence_is_pytorchs(seed):
    p, q = random_distributions(seed)
    assert kl_divergence(p, q) == pytest.approx(reference(p, q), rel=1e-9)
    assert kl_divergence(q, p) == pytest.approx(reference(q, p), rel=1e-9)


def test_ends_of_the_divergence():
    p = np.array([0.5, 0.5, 0.0])
    assert kl_divergence(p, p) == 0
    assert kl_divergence(p, np.array([1.0, 0.0, 0.0])) == math.inf
    assert kl_divergence(np.array([1.0, 0.0, 0.0]), p) == 1  # a bit for a fair coin
    assert math.isnan(kl_divergence(p, np.array([0.5, np.nan, 0.5])))


@pytest.mark.parametrize("seed", range(4))
def test_the_distance_is_the_root_of_both_divergences_from_the_middle(seed):
    p, q = random_distributions(seed)
    middle = (p + q) / 2
    expected = math.sqrt((reference(p, middle) + reference(q, middle)) / 2)
    assert jensen_shannon_distance(p, q) == pytest.approx(expected, rel=1e-9)
    assert_allclose(jensen_shannon_distance(np.stack([p, q]), np.stack([q, q])), [expected, 0], atol=1e-9)


def test_ends_of_the_distance():
    assert jensen_shannon_distance(np.array([1.0, 0.0]), np.array([0.0, 1.0])) == 1
    assert np.isnan(jensen_shannon_distance(np.array([1.0, 0.0]), np.array([np.nan, 1.0])))


def test_tokens_are_the_same_by_their_texts():
    values = np.array([0.1, 0.2, 0.7])
    assert align_to_vocabulary(values, ("a", "b", "c"), ("a", "b", "c")) is values
    assert_allclose(align_to_vocabulary(values, ("a", "b", "c"), ("c", "x", "a", "b")), [0.7, np.nan, 0.1, 0.2])
