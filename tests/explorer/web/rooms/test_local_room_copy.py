"""A process's own copy of a room."""

import pytest

from explorer.web.rooms import GRACE_S, LocalRoomCopy

A, B = "a" * 32, "b" * 32


@pytest.fixture
def room() -> LocalRoomCopy:
    """Room that has been read."""
    room = LocalRoomCopy("K7MQ29TFZX")
    room.to_read.clear()
    return room


def test_joining_or_leaving_requests_immediate_read(room):
    room.join(A)
    assert room.to_read.is_set() and room.people == {A}
    room.to_read.clear()
    room.join(A)
    assert not room.to_read.is_set()
    room.leave(A, at_once=True)
    assert room.to_read.is_set() and not room.people


def test_student_who_returns_within_grace_period_stays(room, monkeypatch):
    now = 100.0
    monkeypatch.setattr("explorer.web.rooms.time.monotonic", lambda: now)
    for student in (A, B):
        room.join(student)
        room.leave(student)
    now += GRACE_S - 1
    room.drop_absent()
    assert room.people == {A, B}
    room.join(B)
    now += GRACE_S
    room.drop_absent()
    assert room.people == {B}


def test_student_in_two_processes_is_counted_once(room):
    room.join(A)
    room.students_everywhere = frozenset({A, B})
    assert room.people == {A, B}
