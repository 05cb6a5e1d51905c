import numpy as np
import pytest

from explorer.analysis.next_token import top_indices

rng = np.random.default_rng(0)
VALUES = {
    "different": rng.normal(size=50),
    "often equal": rng.integers(0, 4, 50).astype(np.float32),
    "all alike": np.zeros(50),
    "infinite": np.where(rng.random(50) < 0.5, -np.inf, rng.normal(size=50)),
    "hardly a number": np.where(rng.random(50) < 0.9, np.nan, rng.normal(size=50)),
}


@pytest.mark.parametrize("values", VALUES.values(), ids=VALUES)
def test_the_largest_are_those_that_sorting_puts_first(values):
    for most in (0, 1, 3, 10, 49, 50, 60):
        np.testing.assert_array_equal(top_indices(values, most), np.argsort(-values, kind="stable")[:most])
