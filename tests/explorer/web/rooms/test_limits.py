"""Limits on people, rooms and guessed codes."""

import asyncio
import time
from dataclasses import replace

from explorer.state.generation_settings import NO_LIMITS, PUBLIC_LIMITS
from explorer.web.key_value_stores import MemoryRooms
from explorer.web.room_routes import MAX_MISSES_PER_MINUTE
from explorer.web.rooms import GRACE_S

from .conftest import STUDENT_NAME, RoomClient, Student, Teacher, assert_refused, make_process, run_in_event_loop


def test_guessing_codes_is_blocked_and_members_stay(process):
    async def story():
        teacher = await Teacher.open_room(process)
        inside = Student(process, teacher.code)
        await inside.next()
        guessing = RoomClient(process)
        for _guess in range(MAX_MISSES_PER_MINUTE):
            assert_refused(await guessing.answer("next", code="0" * 10, student=STUDENT_NAME), 404)
        for code in ("0" * 10, teacher.code):  # even for the right code
            assert_refused(
                await guessing.answer("next", code=code, student=STUDENT_NAME),
                429,
                "Too many requests for rooms that do not exist. Try again in",
            )
        assert_refused(await guessing.answer("close", code="0" * 10, key="x"), 429)
        await teacher.lead()
        await inside.until(lambda update: update["state"])
        await Student(process, teacher.code, host="10.0.0.2").next()

    run_in_event_loop(story())


def test_numbers_of_people_and_rooms_are_limited():
    process = make_process(MemoryRooms(), replace(PUBLIC_LIMITS, rooms=2, people=2))

    async def story():
        teacher = await Teacher.open_room(process)
        await Teacher.open_room(process)
        assert_refused(await RoomClient(process).answer("open"), 429, "Limit reached (2 rooms per hour)")
        students = [Student(process, teacher.code) for _student in range(3)]
        for student in students[:2]:
            await student.next()
        assert_refused(await students[2].answer("next", **students[2].credentials), 403, "This room is full")
        await students[0].request_json("leave", **students[0].credentials)
        left_at = time.monotonic()
        while (answer := await students[2].answer("next", **students[2].credentials)).status_code == 403:
            await asyncio.sleep(0.05)
        assert answer.status_code == 200 and time.monotonic() - left_at < GRACE_S / 2

    run_in_event_loop(story())


def test_member_of_full_room_may_change_process():
    store, limits = MemoryRooms(), replace(PUBLIC_LIMITS, people=1)
    first, second = make_process(store, limits), make_process(store, limits)

    async def story():
        teacher = await Teacher.open_room(first)
        student = Student(first, teacher.code)
        await student.next()
        elsewhere = Teacher(second, "")
        elsewhere.credentials = teacher.credentials
        await elsewhere.until(lambda update: update["people"] == 1)
        again, other = Student(second, teacher.code), Student(second, teacher.code)
        assert_refused(await other.answer("next", **other.credentials), 403, "This room is full")
        again.credentials = student.credentials
        assert "leads" in await again.next()

    run_in_event_loop(story())


def test_replies_in_full_room_can_be_changed_but_not_added():
    process = make_process(MemoryRooms(), replace(PUBLIC_LIMITS, people=1))

    async def story():
        teacher = await Teacher.open_room(process)
        await teacher.lead(lesson="tokens-and-merges", step=4)
        student, other = Student(process, teacher.code), Student(process, teacher.code)
        await student.until(lambda update: update["lesson"])
        for reply in "12":
            assert (await student.reply(reply, "tokens-and-merges", 4)).status_code == 200
        await student.request_json("leave", **student.credentials)
        while (await other.answer("next", **other.credentials)).status_code == 403:
            await asyncio.sleep(0.05)
        assert_refused(await other.reply("3", "tokens-and-merges", 4), 403, "This room is full")
        assert (await teacher.until(lambda update: update["counts"]))["counts"] == {"2": 1}

    run_in_event_loop(story())


def test_total_number_of_replies_is_limited(monkeypatch, process):
    monkeypatch.setattr("explorer.web.rooms.MAX_REPLIES", 4)  # the key, the state, who is present and one reply

    async def story():
        teacher = await Teacher.open_room(process)
        await teacher.lead(lesson="tokens-and-merges", step=4)
        student = Student(process, teacher.code)
        await student.until(lambda update: update["lesson"])
        await teacher.until(lambda update: update["people"] == 1)
        for reply in "12":
            assert (await student.reply(reply, "tokens-and-merges", 4)).status_code == 200
        assert_refused(await student.reply("1", "tokens-and-merges", 5), 403, "This room is full")

    run_in_event_loop(story())


def test_total_number_of_rooms_is_limited(monkeypatch, process):
    monkeypatch.setattr("explorer.web.rooms.MAX_ROOMS", 2)

    async def story():
        teachers = [await Teacher.open_room(process) for _room in range(2)]
        assert_refused(await RoomClient(process).answer("open"), 429, "Too many rooms")
        await teachers[0].request_json("close", **teachers[0].credentials)
        await Teacher.open_room(process)

    run_in_event_loop(story())


def test_default_limits_fit_large_classes():
    assert NO_LIMITS.people >= 200 and PUBLIC_LIMITS.people >= 60
