"""How many may come, and how often somebody may guess."""

import asyncio
import time
from dataclasses import replace

from explorer.state.limits import NO_LIMITS, PUBLIC_LIMITS
from explorer.web.rooms.here import GRACE
from explorer.web.rooms.limits import MOST_MISSES
from explorer.web.shared.in_memory import InMemory

from .conftest import A_STUDENT, Asking, Student, Teacher, in_one_loop, refused, served


def test_who_guesses_codes_is_soon_told_nothing_and_those_who_are_there_stay(process):
    async def story():
        teacher = await Teacher.opens(process)
        inside = Student(process, teacher.code)
        await inside.next()
        guessing = Asking(process)
        for _guess in range(MOST_MISSES):
            refused(await guessing.answer("next", code="0" * 10, student=A_STUDENT), 404)
        for code in ("0" * 10, teacher.code):  # the right one, too
            refused(await guessing.answer("next", code=code, student=A_STUDENT), 429, "try again in")
        refused(await guessing.answer("close", code="0" * 10, key="x"), 429)
        await teacher.lead()
        await inside.until(lambda told: told["state"])
        await Student(process, teacher.code, host="10.0.0.2").next()

    in_one_loop(story())


def test_a_room_has_so_many_people_and_a_visitor_so_many_rooms():
    process = served(InMemory(), replace(PUBLIC_LIMITS, rooms=2, people=2))

    async def story():
        teacher = await Teacher.opens(process)
        await Teacher.opens(process)
        refused(await Asking(process).answer("open"), 429, "a visitor opens 2 rooms an hour")
        students = [Student(process, teacher.code) for _student in range(3)]
        for student in students[:2]:
            await student.next()
        refused(await students[2].answer("next", **students[2].who), 403, "As many people")
        await students[0].told("leave", **students[0].who)
        left_at = time.monotonic()
        while (answer := await students[2].answer("next", **students[2].who)).status_code == 403:
            await asyncio.sleep(0.05)
        assert answer.status_code == 200 and time.monotonic() - left_at < GRACE / 2

    in_one_loop(story())


def test_who_is_in_a_full_room_may_go_on_in_another_process():
    store, limits = InMemory(), replace(PUBLIC_LIMITS, people=1)
    first, second = served(store, limits), served(store, limits)

    async def story():
        teacher = await Teacher.opens(first)
        student = Student(first, teacher.code)
        await student.next()
        elsewhere = Teacher(second, "")
        elsewhere.who = teacher.who
        await elsewhere.until(lambda told: told["people"] == 1)
        again, other = Student(second, teacher.code), Student(second, teacher.code)
        refused(await other.answer("next", **other.who), 403, "As many people")
        again.who = student.who
        assert "leads" in await again.next()

    in_one_loop(story())


def test_in_a_room_that_is_full_of_replies_each_may_be_changed_and_no_other_comes_to_them():
    process = served(InMemory(), replace(PUBLIC_LIMITS, people=1))

    async def story():
        teacher = await Teacher.opens(process)
        await teacher.lead(lesson="tokens-and-merges", step=4)
        student, other = Student(process, teacher.code), Student(process, teacher.code)
        await student.until(lambda told: told["lesson"])
        for reply in "12":
            assert (await student.reply(reply, "tokens-and-merges", 4)).status_code == 200
        await student.told("leave", **student.who)
        while (await other.answer("next", **other.who)).status_code == 403:
            await asyncio.sleep(0.05)
        refused(await other.reply("3", "tokens-and-merges", 4), 403, "As many people")
        assert (await teacher.until(lambda told: told["counts"]))["counts"] == {"2": 1}

    in_one_loop(story())


def test_no_more_rooms_are_open_than_may_be(monkeypatch, process):
    monkeypatch.setattr("explorer.web.rooms.kept_rooms.MOST_ROOMS", 2)

    async def story():
        teachers = [await Teacher.opens(process) for _room in range(2)]
        refused(await Asking(process).answer("open"), 429, "As many rooms")
        await teachers[0].told("close", **teachers[0].who)
        await Teacher.opens(process)

    in_one_loop(story())


def test_without_limits_a_class_of_any_size_comes():
    assert NO_LIMITS.people >= 200 and PUBLIC_LIMITS.people >= 60
