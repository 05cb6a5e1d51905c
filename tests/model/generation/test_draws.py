"""Tests of drawing: frequencies match probabilities, and the reported u draws the token."""

import numpy as np
import pytest

from model.generation.sampling import draw_token, sampling_distribution, sampling_stages, uniform_draw
from tests.subtest_loops import subtest_each


def chi_square(counts: np.ndarray, probabilities: np.ndarray) -> float:
    expected = probabilities * counts.sum()
    return float(((counts - expected) ** 2 / expected).sum())


def test_draw_frequencies_match_probabilities():
    """χ² test, 19 degrees of freedom: 43.8 is exceeded once in a thousand times."""
    logits = np.random.default_rng(3).normal(size=20)
    probabilities = sampling_distribution(logits, 0.9)
    counts = np.bincount([draw_token(probabilities, u) for u in np.random.default_rng(4).random(20_000)], minlength=20)
    assert chi_square(counts, probabilities) < 43.8
    assert chi_square(counts, sampling_distribution(logits, 1.0)) > 43.8  # the test distinguishes 0.9 from 1.0


@pytest.mark.exhaustive
def test_draw_frequencies_match_probabilities_with_all_settings():
    """χ² test with six possible tokens, 5 degrees of freedom: 20.5 is exceeded once in a thousand."""
    logits = np.random.default_rng(3).normal(size=20)
    settings = {"top_p": 0.97, "min_p": 0.02, "repetition_penalty": 1.4, "previous": [2, 5]}
    probabilities = sampling_distribution(logits, 0.9, 15, **settings)
    possible = probabilities > 0
    assert possible.sum() == 6
    counts = np.bincount([draw_token(probabilities, u) for u in np.random.default_rng(4).random(20_000)], minlength=20)
    assert counts[~possible].sum() == 0
    assert chi_square(counts[possible], probabilities[possible]) < 20.5


def test_uniform_draws_are_stable_across_versions():
    """A shared URL has only the seed."""
    numbers = [uniform_draw(*seed_and_position) for seed_and_position in [(0, 0), (1, 11), (11, 1), (2**32 - 1, 5)]]
    assert numbers == [0.5749973043636947, 0.09847631441670546, 0.8760866957006749, 0.5138987179620798]


def test_tokens_own_intervals_by_probability_then_id():
    """The likeliest token has the first interval; of equal ones the lower id."""
    probabilities = np.array([0.0, 0.25, 0.0, 0.5, 0.25, 0.0])
    below = np.nextafter
    expected = {0.0: 3, below(0.5, 0): 3, 0.5: 1, below(0.75, 0): 1, 0.75: 4, below(1.0, 0): 4}
    assert {u: draw_token(probabilities, u) for u in expected} == expected


@pytest.mark.parametrize("settings", [{}, {"top_k": 9}, {"temperature": 0.2}, {"temperature": 0}], ids=str)
def test_draw_matches_cumulative_probabilities(settings):
    random = np.random.default_rng(7)
    for _ in range(100):
        stages = sampling_stages(random.integers(-20, 20, size=80) / 10, **settings)
        ends = stages.cumulative[stages.order]
        for u in random.random(5):
            assert draw_token(stages.probabilities, u) == stages.order[np.searchsorted(ends, u, side="right")]


@pytest.mark.parametrize(
    "settings", [{}, {"top_k": 9}, {"top_p": 0.8}, {"top_k": 30, "min_p": 0.1}, {"temperature": 0}], ids=str
)
def test_draw_among_kept_tokens_matches_draw_among_all(settings):
    random = np.random.default_rng(7)
    for _ in range(100):
        stages = sampling_stages(random.integers(-20, 20, size=80) / 10, **settings)
        for u in (0.0, *random.random(5), np.nextafter(1.0, 0)):
            token_id, probability = stages.draw(u)
            assert token_id == draw_token(stages.probabilities, u)
            assert probability == stages.probabilities[token_id]


@pytest.mark.parametrize("size", [1, 3, 7, 300, 4096])
def test_equally_likely_tokens_have_equal_intervals(size):
    probabilities = sampling_distribution(np.zeros(size))
    for u in (0.0, 0.3137, 0.6171, 0.9981):
        assert draw_token(probabilities, u) == int(u * size)


@subtest_each("probabilities", [[1 / 3] * 3, [0.1] * 10, [0.7, 0.1, 0.1, 0.1], [1.0]], ids=str)
@subtest_each("u", [0.0, 1 - 2**-53])
def test_interval_ends_belong_to_first_and_last_token(probabilities, u):
    assert draw_token(np.array(probabilities), u) == (0 if u == 0 else len(probabilities) - 1)


def test_largest_u_never_draws_impossible_token():
    """The rounding of the cumulative sum must not matter."""
    random = np.random.default_rng(5)
    for _ in range(200):
        probabilities = sampling_distribution(random.normal(size=50), top_k=int(random.integers(1, 50)))
        assert probabilities[draw_token(probabilities, np.nextafter(1.0, 0))] > 0


def test_uniform_draws_are_uniform():
    """Kolmogorov-Smirnov test, over positions and over seeds; 1.63 / √n is exceeded once in a hundred times."""
    n = 2000
    for draws in ([uniform_draw(0, i) for i in range(n)], [uniform_draw(i, 5) for i in range(n)]):
        assert np.abs(np.sort(draws) - np.arange(n) / n).max() < 1.63 / np.sqrt(n)


def test_url_seed_gives_same_draws_in_all_versions():
    """A saved URL has the seed, not the random numbers, which must stay the same in all versions."""
    numbers = [uniform_draw(seed, position) for seed, position in ((0, 0), (0, 1), (3, 12), (2**32 - 1, 511))]
    assert numbers == [0.5749973043636947, 0.3623603780488538, 0.3375584033091479, 0.0033230476509112927]
