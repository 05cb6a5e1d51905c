from copy import deepcopy

import numpy as np
import pytest
import torch

from explorer.analysis.rounding import Check, largest_error, resolution, tolerance
from explorer.explain.captured import check
from explorer.tracing.capture import capture


def test_a_number_that_is_off_by_rounding_passes():
    values = np.float32([0.1, -3.0, 1e-30, 0.0])
    again = values.astype(np.float64) * (1 + 2.0**-24)
    assert Check.of("float32", values, again, np.abs(again)).passed


def test_one_number_that_is_one_percent_off_does_not():
    values = np.linspace(1, 2, 1000)
    again = values.copy()
    again[500] *= 1.01
    found = Check.of("float32", values, again, values)
    assert not found.passed
    assert found.error == pytest.approx(0.01 * values[500])
    assert found.times == pytest.approx(0.01 / tolerance("float32"), rel=1e-6)


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_what_is_not_a_number_never_passes(wrong):
    values, fine = np.array([1.0, wrong, 2.0]), np.array([1.0, 1.0, 2.0])
    for pair in ((values, fine), (fine, values), (values, values)):
        found = Check.of("float32", *pair, fine)
        assert not found.passed and not np.isfinite(largest_error([found]))
    assert not Check.of("float32", fine, fine, values).passed
    assert np.isnan(largest_error([Check(np.nan, np.nan), Check(1.0, 0.5)]))
    assert np.isnan(largest_error([Check(1.0, 0.5), Check(np.nan, np.nan)]))


def test_below_the_smallest_normal_number_rounding_is_not_relative():
    assert Check.of("float16", np.array([6e-8]), np.array([9e-8]), np.array([9e-8])).passed
    assert not Check.of("float32", np.array([6e-8]), np.array([9e-8]), np.array([9e-8])).passed


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("length", [1, 30])
def test_a_model_of_16_bit_numbers_is_held_to_what_they_can_tell(lms, style, dtype, length):
    lm = deepcopy(lms[style]).to(dtype)
    trace = capture(lm, list(range(length)))
    assert trace.dtype == str(dtype).removeprefix("torch.")
    assert [name for name in trace.values if not check(trace, name).passed] == []


def test_finer_numbers_tell_smaller_differences():
    kinds = ("float32", "float16", "bfloat16")
    assert [tolerance(kind) for kind in kinds] == sorted(map(tolerance, kinds))
    assert [resolution(kind) for kind in kinds] == sorted(map(resolution, kinds))
    assert resolution("float32") < 1e-4 < resolution("float32", angle=1000)
