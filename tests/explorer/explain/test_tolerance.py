from copy import deepcopy

import numpy as np
import pytest
import torch

from explorer.explain.captured import check_captured_value
from explorer.explain.derivation import RecomputationCheck, largest_error, rounding_threshold, tolerance
from explorer.tracing.capture import capture
from tests.subtest_loops import each_style, subtest_each


def test_rounding_error_is_within_tolerance():
    values = np.float32([0.1, -3.0, 1e-30, 0.0])
    recomputed = values.astype(np.float64) * (1 + 2.0**-24)
    assert RecomputationCheck.from_arrays("float32", values, recomputed, np.abs(recomputed)).is_within_tolerance


def test_one_percent_error_exceeds_tolerance():
    values = np.linspace(1, 2, 1000)
    recomputed = values.copy()
    recomputed[500] *= 1.01
    result = RecomputationCheck.from_arrays("float32", values, recomputed, values)
    assert not result.is_within_tolerance
    assert result.error == pytest.approx(0.01 * values[500])
    assert result.times == pytest.approx(0.01 / tolerance("float32"), rel=1e-6)


@subtest_each("wrong", [np.nan, np.inf, -np.inf])
def test_non_finite_value_exceeds_tolerance(wrong):
    values, fine = np.array([1.0, wrong, 2.0]), np.array([1.0, 1.0, 2.0])
    for pair in ((values, fine), (fine, values), (values, values)):
        result = RecomputationCheck.from_arrays("float32", *pair, fine)
        assert not result.is_within_tolerance and not np.isfinite(largest_error([result]))
    assert not RecomputationCheck.from_arrays("float32", fine, fine, values).is_within_tolerance
    assert np.isnan(largest_error([RecomputationCheck(np.nan, np.nan), RecomputationCheck(1.0, 0.5)]))
    assert np.isnan(largest_error([RecomputationCheck(1.0, 0.5), RecomputationCheck(np.nan, np.nan)]))


def test_subnormal_rounding_is_absolute():
    assert RecomputationCheck.from_arrays(
        "float16", np.array([6e-8]), np.array([9e-8]), np.array([9e-8])
    ).is_within_tolerance
    assert not RecomputationCheck.from_arrays(
        "float32", np.array([6e-8]), np.array([9e-8]), np.array([9e-8])
    ).is_within_tolerance


@each_style
@subtest_each("dtype", [torch.float16, torch.bfloat16])
@subtest_each("length", [1, 30])
def test_half_precision_models_are_within_tolerance(lms, style, dtype, length):
    lm = deepcopy(lms[style]).to(dtype)
    trace = capture(lm, list(range(length)))
    assert trace.dtype == str(dtype).removeprefix("torch.")
    assert [name for name in trace.values if not check_captured_value(trace, name).is_within_tolerance] == []


def test_finer_dtypes_have_smaller_tolerances():
    kinds = ("float32", "float16", "bfloat16")
    assert [tolerance(kind) for kind in kinds] == sorted(map(tolerance, kinds))
    assert [rounding_threshold(kind) for kind in kinds] == sorted(map(rounding_threshold, kinds))
    assert rounding_threshold("float32") < 1e-4 < rounding_threshold("float32", angle=1000)
