"""The sliding-window rate limiter, its clients, and the limit on prompts a minute for each client."""

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
    current_client,
)


@pytest.fixture
def clock(monkeypatch) -> SimpleNamespace:
    clock = SimpleNamespace(now=1000.0)
    monkeypatch.setattr(rate_limits, "time", SimpleNamespace(monotonic=lambda: clock.now))
    return clock


def run(prompts: PromptRateLimiter, name: str, address: str):
    """Count a prompt of a client."""
    token = current_client.set(Client(name, address))
    try:
        prompts.acquire()
    finally:
        current_client.reset(token)


def test_so_many_are_read_and_one_more_is_refused_in_words(clock):
    prompts = PromptRateLimiter(3)
    for _time in range(3):
        run(prompts, "somebody", "here")
        clock.now += 10
    with pytest.raises(UserError, match=r"^Limit reached \(3 prompts per minute\)\. Try again in 30 s\.$"):
        run(prompts, "somebody", "here")
    run(prompts, "another", "here")


def test_after_a_minute_there_is_room_for_as_many_as_are_a_minute_old(clock):
    prompts = PromptRateLimiter(2)
    run(prompts, "somebody", "here")
    clock.now += 30
    run(prompts, "somebody", "here")
    clock.now += 29.9
    with pytest.raises(UserError):
        run(prompts, "somebody", "here")
    clock.now += 0.1
    run(prompts, "somebody", "here")
    with pytest.raises(UserError):
        run(prompts, "somebody", "here")


def test_what_is_refused_does_not_count(clock):
    prompts = PromptRateLimiter(1)
    run(prompts, "somebody", "here")
    for _time in range(5):
        clock.now += 11.9
        with pytest.raises(UserError):
            run(prompts, "somebody", "here")
    clock.now += 0.5
    run(prompts, "somebody", "here")


def test_who_comes_as_another_each_time_is_known_by_the_address(clock):
    prompts = PromptRateLimiter(2)
    for number in range(2 * CLIENTS_PER_ADDRESS):
        run(prompts, f"visitor {number}", "here")
    with pytest.raises(UserError):
        run(prompts, "one more", "here")
    run(prompts, "one more", "elsewhere")


def test_no_more_visitors_are_remembered_than_there_is_room_for(clock, monkeypatch):
    monkeypatch.setattr(rate_limits, "MAX_KEYS", 10)
    prompts = PromptRateLimiter(2)
    for number in range(50):
        run(prompts, f"visitor {number}", f"address {number}")
    assert len(prompts._limiter._times) <= 10


def test_without_a_limit_nobody_is_remembered():
    prompts = PromptRateLimiter()
    for _time in range(100):
        run(prompts, "somebody", "here")
    assert not prompts._limiter._times


def test_a_program_counts_by_its_address(clock):
    prompts = PromptRateLimiter(1)
    run(prompts, "", "here")
    with pytest.raises(UserError):
        run(prompts, "", "here")
    run(prompts, "", "elsewhere")


def test_what_the_server_itself_runs_is_not_counted(clock):
    prompts = PromptRateLimiter(1)
    token = current_client.set(None)
    for _time in range(3):
        prompts.acquire()
    current_client.reset(token)
    assert not prompts._limiter._times


def test_to_look_counts_nothing_and_what_is_refused_to_one_counts_for_none(monkeypatch):
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
def test_a_page_has_a_name_and_an_address_and_a_program_an_address(name, host, client):
    headers = {CLIENT_HEADER: name} if name else {}
    request = SimpleNamespace(headers=headers, client=host and SimpleNamespace(host=host))
    assert Client.from_request(request) == client
