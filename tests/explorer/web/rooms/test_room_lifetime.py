"""Lifetime of rooms, and removal of everything in them."""

import asyncio
import time

from explorer.web import rooms
from explorer.web.key_value_stores import MemoryStore
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
        assert store.keys("")
        await student.until(lambda update: "closed" in update)
        assert store.keys("") == []

    run_in_event_loop(story())


def test_leftovers_of_expired_room_are_removed_by_next_room(store):
    process = make_process(store)
    store.put("0123456789/reply/order:2/" + "a" * 32, b"1", 60)

    async def story():
        teacher = await Teacher.open_room(process)
        assert all(teacher.code in key for key in store.keys(""))

    run_in_event_loop(story())


def test_reply_during_close_is_not_kept(monkeypatch):
    store = MemoryStore()
    room_store, put = RoomStore(store), store.put
    code, _key = room_store.open()

    def put_after_close(*args):
        room_store.close(code)
        put(*args)

    monkeypatch.setattr(store, "put", put_after_close)
    room_store.reply(code, "order:2", STUDENT_NAME, "1")
    assert store.keys("") == []


def test_process_renews_presence_of_students():
    """The store drops a student's presence that is not renewed within `PRESENCE_TTL_S`."""
    store = MemoryStore()
    process = make_process(store)

    async def story():
        teacher = await Teacher.open_room(process)
        await Student(process, teacher.code).next()
        await teacher.until(lambda update: update["people"] == 1)
        (presence_key,) = store.keys(f"{teacher.code}/there/")
        presence, room = store.get(presence_key), process.watcher.get_local(teacher.code)
        store.drop(presence_key)
        room.reported_at -= rooms.PRESENCE_TTL_S / 3
        room.to_read.set()
        for _time in range(100):
            await asyncio.sleep(0.02)
            if store.get(presence_key) == presence:
                return
        raise AssertionError("nobody is there any more")

    run_in_event_loop(story())


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
    """The process stops following a room without waiting clients, while it checks the key in the store."""
    monkeypatch.setattr(rooms, "POLL_INTERVAL_S", 0.2)

    async def story():
        teacher = await Teacher.open_room(process)
        await teacher.next()
        room, is_teacher = process.watcher.get_local(teacher.code), process.watcher.room_store.is_teacher

        def check_slowly(*args):
            time.sleep(0.5)
            return is_teacher(*args)

        monkeypatch.setattr(process.watcher.room_store, "is_teacher", check_slowly)
        room.left_at = -float("inf")
        assert "people" in await teacher.request_json("next", **teacher.credentials)

    run_in_event_loop(story())
