"""A user's own module on another device."""

import pytest
from numpy.testing import assert_allclose

from explorer import capture, diagnose, from_module
from tests.course_bugs import make_buggy_model
from tests.devices import on_each_device

from .test_from_module import IDS, MODELS


@on_each_device
@pytest.mark.parametrize("name", ["course", "nanogpt", "llama"])
def test_module_is_read_and_diagnosed_as_on_cpu(name, device):
    on_cpu, on_device = MODELS[name](), MODELS[name]().to(device)
    expected, actual = (capture(from_module(module, example_ids=IDS), IDS) for module in (on_cpu, on_device))
    assert actual.values.keys() == expected.values.keys()
    for tap, value in expected.values.items():
        assert_allclose(actual[tap], value, atol=1e-3 * max(1, abs(value).max()), err_msg=tap)
    report = diagnose(on_device)
    assert report.is_equal and [row.tap for row in report.rows] == [row.tap for row in diagnose(on_cpu).rows]


@on_each_device
@pytest.mark.parametrize("slip", ["no scale", "rotation of halves"])
def test_bug_is_found_on_device(slip, device):
    report = diagnose(make_buggy_model(slip).to(device))
    assert report.cause == diagnose(make_buggy_model(slip)).cause is not None
