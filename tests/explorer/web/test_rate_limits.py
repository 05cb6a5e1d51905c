"""Sliding-window rate limiter, its clients, and the limit on prompts per minute for each client."""

import math
from types import SimpleNamespace

import pytest

from explorer.errors import UserError
from explorer.web import rate_limits
from explorer.web.rate_limits import (
    CLIENT_HEADER,
    CLIENTS_PER_ADDRESS,
    Client,
    PromptRateLimiter,
    SlidingWindowLimiter,
    use_client,
)


@pytest.fixture
def clock(monkeypatch) -> SimpleNamespace:
    clock = SimpleNamespace(now=1000.0)
    monkeypatch.setattr(rate_limits, "time", SimpleNamespace(monotonic=lambda: clock.now))
    return clock


def count_prompt(prompts: PromptRateLimiter, name: str, address: str):
    """Count a prompt of a client."""
    with use_client(Client(name, address)):
        prompts.acquire()


def test_prompt_beyond_limit_is_refused_with_waiting_time(clock):
    prompts = PromptRateLimiter(3)
    for _time in range(3):
        count_prompt(prompts, "somebody", "here")
        clock.now += 10
    with pytest.raises(UserError, match=r"^Limit reached \(3 prompts per minute\)\. Try again in 30 s\.$"):
        count_prompt(prompts, "somebody", "here")
    count_prompt(prompts, "another", "here")


def test_prompts_older_than_a_minute_do_not_count(clock):
    prompts = PromptRateLimiter(2)
    count_prompt(prompts, "somebody", "here")
    clock.now += 30
    count_prompt(prompts, "somebody", "here")
    clock.now += 29.9
    with pytest.raises(UserError):
        count_prompt(prompts, "somebody", "here")
    clock.now += 0.1
    count_prompt(prompts, "somebody", "here")
    with pytest.raises(UserError):
        count_prompt(prompts, "somebody", "here")


def test_refused_prompts_do_not_count(clock):
    prompts = PromptRateLimiter(1)
    count_prompt(prompts, "somebody", "here")
    for _time in range(5):
        clock.now += 11.9
        with pytest.raises(UserError):
            count_prompt(prompts, "somebody", "here")
    clock.now += 0.5
    count_prompt(prompts, "somebody", "here")


def test_clients_with_changing_names_are_limited_by_ip_address(clock):
    prompts = PromptRateLimiter(2)
    for number in range(2 * CLIENTS_PER_ADDRESS):
        count_prompt(prompts, f"visitor {number}", "here")
    with pytest.raises(UserError):
        count_prompt(prompts, "one more", "here")
    count_prompt(prompts, "one more", "elsewhere")


def test_number_of_remembered_clients_is_limited(clock, monkeypatch):
    monkeypatch.setattr(rate_limits, "MAX_KEYS", 10)
    prompts = PromptRateLimiter(2)
    for number in range(50):
        count_prompt(prompts, f"visitor {number}", f"address {number}")
    assert len(prompts._limiter._times) <= 10


def test_no_client_is_remembered_without_limit():
    prompts = PromptRateLimiter()
    for _time in range(100):
        count_prompt(prompts, "somebody", "here")
    assert not prompts._limiter._times


def test_api_client_is_limited_by_ip_address(clock):
    prompts = PromptRateLimiter(1)
    count_prompt(prompts, "", "here")
    with pytest.raises(UserError):
        count_prompt(prompts, "", "here")
    count_prompt(prompts, "", "elsewhere")


def test_prompts_of_server_itself_do_not_count(clock):
    prompts = PromptRateLimiter(1)
    with use_client(None):
        for _time in range(3):
            prompts.acquire()
    assert not prompts._limiter._times


def test_only_successful_acquire_counts_for_all_keys(monkeypatch):
    clock = SimpleNamespace(now=100.0)
    monkeypatch.setattr(rate_limits, "time", SimpleNamespace(monotonic=lambda: clock.now))
    limiter = SlidingWindowLimiter(60.0)
    assert [limiter.seconds_until_free({"a": 1, "b": math.inf}) for _time in range(3)] == [0, 0, 0]
    assert limiter.acquire({"a": 1, "b": 2}) == 0
    clock.now += 20
    assert limiter.seconds_until_free({"a": 1}) == limiter.acquire({"a": 1, "b": 2}) == 40
    assert limiter.acquire({"b": 2}) == 0 and limiter.acquire({"b": 2}) == 40
    clock.now += 40
    assert limiter.acquire({"a": 1, "b": 2}) == 0 and limiter.seconds_until_free({"b": 2}) == 20


@pytest.mark.parametrize(
    ("name", "host", "client"),
    [
        ("page", "10.0.0.7", Client("page", "10.0.0.7")),
        ("x" * 1000, "10.0.0.7", Client("x" * 64, "10.0.0.7")),
        ("", "10.0.0.7", Client("", "10.0.0.7")),
        ("page", None, Client("page", "")),
    ],
)
def test_client_is_read_from_header_and_ip_address(name, host, client):
    headers = {CLIENT_HEADER: name} if name else {}
    request = SimpleNamespace(headers=headers, client=host and SimpleNamespace(host=host))
    assert Client.from_request(request) == client
