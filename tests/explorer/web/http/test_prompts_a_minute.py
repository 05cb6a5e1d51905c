"""How often a visitor may ask about another text."""

from types import SimpleNamespace

import pytest

from explorer.state.errors import UserError
from explorer.web.http import often
from explorer.web.http.prompts_a_minute import AN_ADDRESS, PromptsAMinute


@pytest.fixture
def clock(monkeypatch) -> SimpleNamespace:
    clock = SimpleNamespace(now=1000.0)
    monkeypatch.setattr(often, "time", SimpleNamespace(monotonic=lambda: clock.now))
    return clock


def test_so_many_are_read_and_one_more_is_refused_in_words(clock):
    prompts = PromptsAMinute(3)
    for _time in range(3):
        prompts.ask("somebody", "here")
        clock.now += 10
    with pytest.raises(UserError, match=r"^Here 3 prompts a minute .* again in 30 s\.$"):
        prompts.ask("somebody", "here")
    prompts.ask("another", "here")


def test_after_a_minute_there_is_room_for_as_many_as_are_a_minute_old(clock):
    prompts = PromptsAMinute(2)
    prompts.ask("somebody", "here")
    clock.now += 30
    prompts.ask("somebody", "here")
    clock.now += 29.9
    with pytest.raises(UserError):
        prompts.ask("somebody", "here")
    clock.now += 0.1
    prompts.ask("somebody", "here")
    with pytest.raises(UserError):
        prompts.ask("somebody", "here")


def test_what_is_refused_does_not_count(clock):
    prompts = PromptsAMinute(1)
    prompts.ask("somebody", "here")
    for _time in range(5):
        clock.now += 11.9
        with pytest.raises(UserError):
            prompts.ask("somebody", "here")
    clock.now += 0.5
    prompts.ask("somebody", "here")


def test_who_comes_as_another_each_time_is_known_by_the_address(clock):
    prompts = PromptsAMinute(2)
    for number in range(2 * AN_ADDRESS):
        prompts.ask(f"visitor {number}", "here")
    with pytest.raises(UserError):
        prompts.ask("one more", "here")
    prompts.ask("one more", "elsewhere")


def test_no_more_visitors_are_remembered_than_there_is_room_for(clock, monkeypatch):
    monkeypatch.setattr(often, "MOST_KNOWN", 10)
    prompts = PromptsAMinute(2)
    for number in range(50):
        prompts.ask(f"visitor {number}", f"address {number}")
    assert len(prompts._asked._done) <= 10


def test_without_a_limit_nobody_is_remembered():
    prompts = PromptsAMinute()
    for _time in range(100):
        prompts.ask("somebody", "here")
    assert not prompts._asked._done
