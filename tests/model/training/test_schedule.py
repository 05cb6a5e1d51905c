import pytest

from model.training.schedule import learning_rate_factor


def test_rises_in_a_line_over_the_warm_up():
    factors = [learning_rate_factor(step, warmup_steps=4, total_steps=100, final_fraction=0.1) for step in range(5)]
    assert factors == pytest.approx([0.25, 0.5, 0.75, 1, 1])


def test_falls_in_half_a_cosine_to_the_final_fraction():
    factors = [learning_rate_factor(step, warmup_steps=20, total_steps=100, final_fraction=0.1) for step in range(101)]
    assert factors[60] == pytest.approx((1 + 0.1) / 2)  # halfway down
    assert factors[40] == pytest.approx(0.1 + 0.9 * (1 + 0.5**0.5) / 2)  # a quarter: cos 45°
    assert factors[100] == pytest.approx(0.1)
    assert all(a > b for a, b in zip(factors[20:], factors[21:], strict=False))


def test_may_start_at_the_peak():
    assert learning_rate_factor(0, warmup_steps=0, total_steps=10, final_fraction=0) == 1


def test_a_run_that_is_all_warm_up_ends_at_the_peak():
    assert learning_rate_factor(9, warmup_steps=10, total_steps=10, final_fraction=0) == 1
