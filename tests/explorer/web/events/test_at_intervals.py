"""How often a text that is being written is told."""

from types import SimpleNamespace

import pytest

from explorer.web.events import generation_events
from explorer.web.events.generation_events import at_intervals

A_TOKEN = 0.03  # seconds


@pytest.fixture
def told(monkeypatch):
    """How many tokens each answer has, where a token takes so long, by whether others wait for the place."""

    def answers(count: int, waited_for: bool, fails: bool = False) -> list[int]:
        clock = [100.0]

        def tokens():
            for number in range(1, count + 1):
                clock[0] += A_TOKEN
                yield {"tokens": number}
            if fails:
                raise ValueError

        monkeypatch.setattr(generation_events, "time", SimpleNamespace(monotonic=lambda: clock[0]))
        monkeypatch.setattr(generation_events, "is_waited_for", lambda: waited_for)
        monkeypatch.setattr(generation_events, "SECONDS_AN_ANSWER", 0.07)
        found = []
        try:
            for answer in at_intervals(tokens)():
                found.append(answer["tokens"])
        except ValueError:
            found.append("failed")
        return found

    return answers


def test_the_first_token_is_told_at_once_and_others_as_browsers_follow(told):
    assert told(8, waited_for=False) == [1, 4, 7, 8]


def test_where_others_wait_a_text_is_told_once_a_turn(told):
    assert told(12, waited_for=True) == [5, 10, 12]
    assert told(3, waited_for=True) == [3]


def test_what_was_written_before_an_error_is_told(told):
    assert told(2, waited_for=True, fails=True) == [2, "failed"]
