"""The limit on prompts a minute for each client."""

from types import SimpleNamespace

import pytest

from explorer.state.errors import UserError
from explorer.web.http import rate_limiter
from explorer.web.http.prompt_rate_limit import CLIENTS_PER_ADDRESS, PromptRateLimiter


@pytest.fixture
def clock(monkeypatch) -> SimpleNamespace:
    clock = SimpleNamespace(now=1000.0)
    monkeypatch.setattr(rate_limiter, "time", SimpleNamespace(monotonic=lambda: clock.now))
    return clock


def test_so_many_are_read_and_one_more_is_refused_in_words(clock):
    prompts = PromptRateLimiter(3)
    for _time in range(3):
        prompts.acquire("somebody", "here")
        clock.now += 10
    with pytest.raises(UserError, match=r"^Limit reached \(3 prompts per minute\)\. Try again in 30 s\.$"):
        prompts.acquire("somebody", "here")
    prompts.acquire("another", "here")


def test_after_a_minute_there_is_room_for_as_many_as_are_a_minute_old(clock):
    prompts = PromptRateLimiter(2)
    prompts.acquire("somebody", "here")
    clock.now += 30
    prompts.acquire("somebody", "here")
    clock.now += 29.9
    with pytest.raises(UserError):
        prompts.acquire("somebody", "here")
    clock.now += 0.1
    prompts.acquire("somebody", "here")
    with pytest.raises(UserError):
        prompts.acquire("somebody", "here")


def test_what_is_refused_does_not_count(clock):
    prompts = PromptRateLimiter(1)
    prompts.acquire("somebody", "here")
    for _time in range(5):
        clock.now += 11.9
        with pytest.raises(UserError):
            prompts.acquire("somebody", "here")
    clock.now += 0.5
    prompts.acquire("somebody", "here")


def test_who_comes_as_another_each_time_is_known_by_the_address(clock):
    prompts = PromptRateLimiter(2)
    for number in range(2 * CLIENTS_PER_ADDRESS):
        prompts.acquire(f"visitor {number}", "here")
    with pytest.raises(UserError):
        prompts.acquire("one more", "here")
    prompts.acquire("one more", "elsewhere")


def test_no_more_visitors_are_remembered_than_there_is_room_for(clock, monkeypatch):
    monkeypatch.setattr(rate_limiter, "MAX_KEYS", 10)
    prompts = PromptRateLimiter(2)
    for number in range(50):
        prompts.acquire(f"visitor {number}", f"address {number}")
    assert len(prompts._limiter._times) <= 10


def test_without_a_limit_nobody_is_remembered():
    prompts = PromptRateLimiter()
    for _time in range(100):
        prompts.acquire("somebody", "here")
    assert not prompts._limiter._times
