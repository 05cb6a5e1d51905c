"""Lifetime of rooms, and removal of everything in them."""

import asyncio
import time

from explorer.web import room_store, room_watcher
from explorer.web.key_value_stores import MemoryStore
from explorer.web.room_store import RoomStore

from .conftest import A_STUDENT, Student, Teacher, make_process, run_story


def test_a_room_whose_teacher_gives_no_sign_expires_with_all_that_is_in_it(store, monkeypatch):
    monkeypatch.setattr("explorer.web.room_store.TTL_S", 0.8)
    monkeypatch.setattr(room_watcher, "POLL_INTERVAL_S", 0.2)

    process = make_process(store)
    assert process.lesson_library.lessons  # read from files before the room's time begins

    async def story():
        teacher = await Teacher.open_room(process)
        await teacher.lead(lesson="tokens-and-merges", step=4)
        student = Student(process, teacher.code)
        await student.until(lambda update: update["lesson"])
        monkeypatch.setattr("explorer.web.room_store.TTL_S", 60.0)
        await student.reply("1", "tokens-and-merges", 4)
        assert store.keys("")
        await student.until(lambda update: "closed" in update)
        assert store.keys("") == []

    run_story(story())


def test_what_is_left_of_a_room_that_nobody_came_back_to_goes_with_the_next(store):
    process = make_process(store)
    store.put("0123456789/reply/order:2/" + "a" * 32, b"1", 60)

    async def story():
        teacher = await Teacher.open_room(process)
        assert all(teacher.code in key for key in store.keys(""))

    run_story(story())


def test_what_comes_while_a_room_is_closed_does_not_stay(monkeypatch):
    store = MemoryStore()
    room_store, put = RoomStore(store), store.put
    code, _key = room_store.open()

    def put_after_close(*args):
        room_store.close(code)
        put(*args)

    monkeypatch.setattr(store, "put", put_after_close)
    room_store.reply(code, "order:2", A_STUDENT, "1")
    assert store.keys("") == []


def test_a_process_says_again_who_is_there_before_that_is_forgotten():
    """The store drops a student's presence that is not renewed within `THERE_LASTS`."""
    store = MemoryStore()
    process = make_process(store)

    async def story():
        teacher = await Teacher.open_room(process)
        await Student(process, teacher.code).next()
        await teacher.until(lambda update: update["people"] == 1)
        (presence_key,) = store.keys(f"{teacher.code}/there/")
        presence, room = store.get(presence_key), process.watcher.get_local(teacher.code)
        store.drop(presence_key)
        room.reported_at -= room_store.PRESENCE_TTL_S / 3
        room.to_read.set()
        for _time in range(100):
            await asyncio.sleep(0.02)
            if store.get(presence_key) == presence:
                return
        raise AssertionError("nobody is there any more")

    run_story(story())


def test_the_teachers_sign_keeps_a_room(store, monkeypatch):
    monkeypatch.setattr("explorer.web.room_store.TTL_S", 1.0)
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

    run_story(story())


def test_a_process_follows_a_room_as_long_as_somebody_waits_there(process, monkeypatch):
    monkeypatch.setattr(room_watcher, "LINGER_S", 0.2)
    monkeypatch.setattr(room_watcher, "POLL_INTERVAL_S", 0.05)
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

    run_story(story())


def test_whoever_leads_and_was_away_is_not_told_that_the_class_is_over(process, monkeypatch):
    """The process stops following a room in which nobody waits, while it checks the key in the store."""
    monkeypatch.setattr(room_watcher, "POLL_INTERVAL_S", 0.2)

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

    run_story(story())
