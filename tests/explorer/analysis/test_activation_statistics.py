import math

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from explorer.analysis.activation_statistics import Statistics, tap_matrix
from tests.subtest_loops import each_style


def test_statistics_in_closed_form():
    statistics = Statistics.from_array(np.array([[3, -1], [0, 2]], np.float32))
    assert statistics == Statistics(mean=1, std=math.sqrt(2.5), rms=math.sqrt(3.5), smallest=-1, largest=3, zeros=0.25)


def test_statistics_of_constant_array():
    assert Statistics.from_array(np.zeros((2, 3), np.float32)) == Statistics(0, 0, 0, 0, 0, zeros=1)


def test_rms_does_not_overflow_float32():
    assert Statistics.from_array(np.full(3, 1e30, np.float32)).rms == pytest.approx(1e30)


@each_style
def test_rms_squared_is_mean_squared_plus_variance(trace):
    for value in trace.values.values():
        statistics = Statistics.from_array(value)
        assert statistics.rms**2 == pytest.approx(statistics.mean**2 + statistics.std**2)
        assert statistics.smallest <= statistics.mean <= statistics.largest


@each_style
def test_zeros_share_of_causal_pattern(trace):
    tokens = len(trace)
    assert Statistics.from_array(trace["blocks.0.attn.pattern"]).zeros == pytest.approx((tokens - 1) / (2 * tokens))


def test_tap_matrix_selects_key_value_head_of_group(capture_trace):
    trace = capture_trace("grouped")
    for name in ("blocks.0.attn.k", "blocks.1.attn.k_rot", "blocks.1.attn.v"):
        for head, kv_head in enumerate((0, 0, 1, 1, 2, 2)):
            assert_array_equal(tap_matrix(trace, name, head), trace[name][kv_head])


@each_style
def test_tap_matrix_selects_head(trace):
    assert_array_equal(tap_matrix(trace, "blocks.1.attn.q", 2), trace["blocks.1.attn.q"][2])


@each_style
def test_tap_matrix_keeps_two_dimensional_values(trace):
    assert tap_matrix(trace, "embed", 2) is trace["embed"]
