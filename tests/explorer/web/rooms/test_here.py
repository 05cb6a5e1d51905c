"""A process's own copy of a room."""

import pytest

from explorer.web.room_watcher import GRACE_S, LocalRoomCopy

A, B = "a" * 32, "b" * 32


@pytest.fixture
def room() -> LocalRoomCopy:
    """Room that has been read."""
    room = LocalRoomCopy("K7MQ29TFZX")
    room.to_read.clear()
    return room


def test_who_comes_and_who_leaves_has_it_read_at_once(room):
    room.join(A)
    assert room.to_read.is_set() and room.people == {A}
    room.to_read.clear()
    room.join(A)
    assert not room.to_read.is_set()
    room.leave(A, at_once=True)
    assert room.to_read.is_set() and not room.people


def test_whoever_asks_again_soon_was_there_all_the_while(room, monkeypatch):
    now = 100.0
    monkeypatch.setattr("explorer.web.room_watcher.time.monotonic", lambda: now)
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


def test_whom_another_process_knows_too_is_counted_once(room):
    room.join(A)
    room.students_everywhere = frozenset({A, B})
    assert room.people == {A, B}
