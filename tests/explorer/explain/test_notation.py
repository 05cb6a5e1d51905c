"""Notation of sums."""

import numpy as np

from explorer.explain.notation import MAX_TERMS, format_dot_product, format_sum


def test_a_sum_is_written_largest_first():
    a, b = np.array([0.1, -2.0, 0.0, 3.0, 0.5]), np.array([1.0, 1.0, 1.0, -1.0, 1.0])
    assert MAX_TERMS == 3
    assert format_dot_product(a, b) == "(3.00·(−1.00) + (−2.00)·1.00 + 0.500·1.00 + 2 more terms)"
    assert format_sum(a[:4]) == "(3.00 + (−2.00) + 0.100 + 1 more term)"
    assert format_sum(a[:1]) == "(0.100)"
