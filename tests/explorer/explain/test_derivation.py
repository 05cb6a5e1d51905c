"""Notes on the inputs of a computation in its explanation, and notation of sums."""

import numpy as np

from explorer.explain.derivation import Input, read_input
from explorer.explain.notation import MAX_TERMS, format_dot_product, format_sum


def test_input_is_written_as_python_index():
    assert str(Input("x", (1, slice(None, 8)), (8,))) == "x[1, :8], 8 numbers"
    assert str(Input("x", (slice(2, 4),), (2, 5))) == "x[2:4], 2 × 5 numbers"
    assert str(Input("x", (1, slice(None)), (8,))) == "x[1], 8 numbers"
    assert str(Input("x", (slice(None), 2), (8,))) == "x[:, 2], 8 numbers"
    assert str(Input("x", (1, 2), ())) == "x[1, 2], 1 number"


def test_input_copy_does_not_change_trace(rope_trace):
    before = rope_trace["logits"].copy()
    value, used_input = read_input(rope_trace, "logits", 3)
    value *= 2
    assert value.dtype == np.float64 and used_input.shape == value.shape
    np.testing.assert_array_equal(rope_trace["logits"], before)


def test_sum_lists_largest_terms_first():
    a, b = np.array([0.1, -2.0, 0.0, 3.0, 0.5]), np.array([1.0, 1.0, 1.0, -1.0, 1.0])
    assert MAX_TERMS == 3
    assert format_dot_product(a, b) == "(3·(−1) + (−2)·1 + 0.5·1 + 2 more terms)"
    assert format_sum(a[:4]) == "(3 + (−2) + 0.1 + 1 more term)"
    assert format_sum(a[:1]) == "(0.1)"
