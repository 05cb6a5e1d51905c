"""A room as one process knows it."""

import pytest

from explorer.web.rooms.here import GRACE, Here

A, B = "a" * 32, "b" * 32


@pytest.fixture
def room() -> Here:
    """One that has been read."""
    room = Here("K7MQ29TFZX")
    room.to_read.clear()
    return room


def test_who_comes_and_who_leaves_has_it_read_at_once(room):
    room.come(A)
    assert room.to_read.is_set() and room.people == {A}
    room.to_read.clear()
    room.come(A)
    assert not room.to_read.is_set()
    room.go(A, at_once=True)
    assert room.to_read.is_set() and not room.people


def test_whoever_asks_again_soon_was_there_all_the_while(room, monkeypatch):
    now = 100.0
    monkeypatch.setattr("explorer.web.rooms.here.time.monotonic", lambda: now)
    for student in (A, B):
        room.come(student)
        room.go(student)
    now += GRACE - 1
    room.forget_gone()
    assert room.people == {A, B}
    room.come(B)
    now += GRACE
    room.forget_gone()
    assert room.people == {B}


def test_whom_another_process_knows_too_is_counted_once(room):
    room.come(A)
    room.told = frozenset({A, B})
    assert room.people == {A, B}
