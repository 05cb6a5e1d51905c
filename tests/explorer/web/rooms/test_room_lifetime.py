"""Lifetime of rooms, and removal of everything in them."""

import asyncio
import time

from explorer.web import rooms
from explorer.web.key_value_stores import MemoryRooms
from explorer.web.rooms import RoomStore

from .conftest import STUDENT_NAME, Student, Teacher, make_process, run_in_event_loop


def test_abandoned_room_expires_with_all_its_data(store, monkeypatch):
    monkeypatch.setattr("explorer.web.rooms.TTL_S", 0.8)
    monkeypatch.setattr(rooms, "POLL_INTERVAL_S", 0.2)

    process = make_process(store)
    assert process.lesson_library.lessons  # reads lesson files before the room's time starts

    async def story():
        teacher = await Teacher.open_room(process)
        await teacher.lead(lesson="tokens-and-merges", step=4)
        student = Student(process, teacher.code)
        await student.until(lambda update: update["lesson"])
        monkeypatch.setattr("explorer.web.rooms.TTL_S", 60.0)
        await student.reply("1", "tokens-and-merges", 4)
        assert store.read_room(teacher.code)
        await student.until(lambda update: "closed" in update)
        assert store.count_rooms() == 0 and not store.read_room(teacher.code)

    run_in_event_loop(story())


def test_reply_during_close_is_not_kept(store):
    room_store = RoomStore(store)
    code, _key = room_store.open()
    room_store.close(code)
    room_store.reply(code, "order:2", STUDENT_NAME, "1")
    room_store.report_present(code, "a process", [STUDENT_NAME])
    room_store.renew(code)
    assert store.count_rooms() == 0 and room_store.read(code) is None


def test_process_renews_presence_of_students():
    """A student's presence that is not renewed within `PRESENCE_TTL_S` does not count."""
    store = MemoryRooms()
    process = make_process(store)

    async def story():
        teacher = await Teacher.open_room(process)
        await Student(process, teacher.code).next()
        await teacher.until(lambda update: update["people"] == 1)
        room = process.watcher.get_local(teacher.code)
        store.write_field(teacher.code, f"there/{process.watcher.name}", None)
        room.reported_at -= rooms.PRESENCE_TTL_S / 3
        room.to_read.set()
        for _time in range(100):
            await asyncio.sleep(0.02)
            if process.watcher.room_store.read(teacher.code).present_students:
                return
        raise AssertionError("nobody is there any more")

    run_in_event_loop(story())


def test_presence_that_a_process_no_longer_reports_ends(store, monkeypatch):
    room_store = RoomStore(store)
    code, _key = room_store.open()
    room_store.report_present(code, "a process", [STUDENT_NAME])
    assert room_store.read(code).present_students == {STUDENT_NAME}
    now = time.time()
    monkeypatch.setattr(rooms.time, "time", lambda: now + rooms.PRESENCE_TTL_S + 1)
    assert room_store.read(code).present_students == set()


def test_teacher_polling_keeps_room_alive(store, monkeypatch):
    monkeypatch.setattr("explorer.web.rooms.TTL_S", 1.0)
    monkeypatch.setattr("explorer.web.room_routes.MIN_RENEW_INTERVAL_S", 0.1)
    monkeypatch.setattr("explorer.web.room_routes.LONG_POLL_S", 0.3)

    async def story():
        process = make_process(store)
        teacher = await Teacher.open_room(process)
        await teacher.lead(query=1)
        for _time in range(5):
            update = await teacher.request_json("next", **teacher.credentials, seen=teacher.tag)
            teacher.tag = update["tag"]
        student = Student(process, teacher.code)
        assert (await student.until(lambda update: update["state"]))["state"]["query"] == 1

    run_in_event_loop(story())


def test_process_follows_room_while_somebody_waits(process, monkeypatch):
    monkeypatch.setattr(rooms, "LINGER_S", 0.2)
    monkeypatch.setattr(rooms, "POLL_INTERVAL_S", 0.05)
    monkeypatch.setattr("explorer.web.room_routes.LONG_POLL_S", 0.6)

    async def story():
        teacher = await Teacher.open_room(process)
        await teacher.lead(query=1)
        student = Student(process, teacher.code)
        followed = process.watcher.get_local(teacher.code)
        await student.until(lambda update: update["state"])
        assert await student.request_json("next", **student.credentials, seen=student.tag) == {"tag": student.tag}
        assert process.watcher.get_local(teacher.code) is followed
        while not followed.closed:
            await asyncio.sleep(0.05)
        await asyncio.sleep(0)
        assert not process.watcher._rooms
        student.tag = ""
        assert (await student.until(lambda update: update["state"]))["state"]["query"] == 1

    run_in_event_loop(story())


def test_returning_teacher_is_not_told_class_is_over(process, monkeypatch):
    """The process stops following a room without waiting clients, while it renews the room in the store."""
    monkeypatch.setattr(rooms, "POLL_INTERVAL_S", 0.2)

    async def story():
        teacher = await Teacher.open_room(process)
        await teacher.next()
        room = process.watcher.get_local(teacher.code)
        monkeypatch.setattr(process.watcher.room_store, "renew", lambda code: time.sleep(0.5))
        room.left_at = room.renewed_at = -float("inf")
        assert "people" in await teacher.request_json("next", **teacher.credentials)

    run_in_event_loop(story())
