import pytest

from model.training.trainer import learning_rate_factor, log_spaced_steps
from tests.subtest_loops import subtest_each


def test_learning_rate_rises_linearly_during_warmup():
    factors = [learning_rate_factor(step, warmup_steps=4, total_steps=100, final_fraction=0.1) for step in range(5)]
    assert factors == pytest.approx([0.25, 0.5, 0.75, 1, 1])


def test_learning_rate_falls_by_half_cosine():
    factors = [learning_rate_factor(step, warmup_steps=20, total_steps=100, final_fraction=0.1) for step in range(101)]
    assert factors[60] == pytest.approx((1 + 0.1) / 2)  # halfway down
    assert factors[40] == pytest.approx(0.1 + 0.9 * (1 + 0.5**0.5) / 2)  # a quarter: cos 45°
    assert factors[100] == pytest.approx(0.1)
    assert all(a > b for a, b in zip(factors[20:], factors[21:], strict=False))


def test_no_warmup_starts_at_peak():
    assert learning_rate_factor(0, warmup_steps=0, total_steps=10, final_fraction=0) == 1


def test_run_of_only_warmup_ends_at_peak():
    assert learning_rate_factor(9, warmup_steps=10, total_steps=10, final_fraction=0) == 1


def test_snapshot_steps_are_log_spaced():
    steps = log_spaced_steps(8192, 15)
    assert steps == [0, *(2**i for i in range(14))]


@subtest_each(("total", "count"), [(5000, 14), (13, 14), (20, 14), (1, 2), (100, 3), (10**6, 16)])
def test_number_of_snapshots_is_respected(total, count):
    steps = log_spaced_steps(total, count)
    assert len(set(steps)) == count
    assert steps == sorted(steps) and steps[0] == 0 and steps[-1] == total


def test_zero_snapshots_give_no_steps():
    assert log_spaced_steps(100, 0) == []
