"""A teacher, students, and the processes between them."""

import asyncio
from contextlib import suppress

import pytest

from explorer.web.rooms import here, rooms
from explorer.web.shared.in_memory import InMemory
from explorer.web.shared.opened import store_at
from explorer.web.shared.store import StoreError

from .conftest import STATE, Student, Teacher, in_one_loop, served


def two_processes(store, address):
    """Two that share a store; of one in memory there is one."""
    first = served(store)
    return first, served(store_at(address, "rooms")) if address else first


def test_students_of_all_processes_get_the_teachers_state_and_every_change(store, address):
    async def story():
        first, second = two_processes(store, address)
        teacher = await Teacher.opens(first)
        await teacher.lead(query=1)
        students = [Student(process, teacher.code) for process in (first, second)]
        for student in students:
            told = await student.until(lambda told: told["state"])
            assert told["leads"] and told["state"] == STATE | {"query": 1}
        waiting = [asyncio.create_task(student.until(lambda told: told["state"]["query"] == 2)) for student in students]
        await asyncio.sleep(0.2)
        began = asyncio.get_running_loop().time()
        await teacher.lead(query=2)
        await asyncio.gather(*waiting)
        assert asyncio.get_running_loop().time() - began < 3

    in_one_loop(story())


def test_who_comes_later_is_told_at_once_and_who_knows_waits(monkeypatch):
    monkeypatch.setattr("explorer.web.rooms.routes.WAITS", 0.3)

    async def story():
        process = served(InMemory())
        teacher = await Teacher.opens(process)
        await teacher.lead(query=1)
        student = Student(process, teacher.code)
        first = await student.until(lambda told: told["state"])
        assert await student.told("next", **student.who, seen=first["tag"]) == {"tag": first["tag"]}
        assert (await student.told("next", **student.who, seen="of long ago"))["state"] == STATE | {"query": 1}

    in_one_loop(story())


def test_what_is_not_led_is_not_sent(monkeypatch):
    async def story():
        process = served(InMemory())
        teacher = await Teacher.opens(process)
        student = Student(process, teacher.code)
        await teacher.lead(leads=False, query=1, lesson="order", step=2)
        told = await student.until(lambda told: not told["leads"])
        assert told["state"] is None and told["lesson"] == "order"
        await teacher.lead(query=1)
        assert (await student.until(lambda told: told["leads"]))["state"] == STATE | {"query": 1}

    in_one_loop(story())


def test_students_never_see_what_is_the_teachers_own(store):
    async def story():
        process = served(store)
        teacher = await Teacher.opens(process)
        await teacher.lead(lesson="order", step=2, reply="2:right", guess="fox", lang="zh-CN", turn=7)
        student = Student(process, teacher.code)
        told = await student.until(lambda told: told["state"])
        assert set(told) == {"tag", "leads", "state", "lesson"}
        assert not {"reply", "guess", "lang", "turn"} & set(told["state"])
        assert teacher.who["key"] not in str(told)
        assert teacher.who["key"].encode() not in b"".join(filter(None, map(store.get, store.keys(""))))

    in_one_loop(story())


def test_each_student_counts_once_with_what_they_replied_last(store, address):
    async def story():
        first, second = two_processes(store, address)
        teacher = await Teacher.opens(first)
        await teacher.lead(lesson="tokens-and-merges", step=4)
        students = [Student(process, teacher.code) for process in (first, second, first)]
        for student in students:
            await student.until(lambda told: told["lesson"])

        async def replies(student, reply):
            assert (await student.reply(reply, "tokens-and-merges", 4)).status_code == 200

        await asyncio.gather(*(replies(student, reply) for student, reply in zip(students, "133", strict=True)))
        assert (await teacher.until(lambda told: sum(told["counts"].values()) == 3))["counts"] == {"3": 2, "1": 1}
        await replies(students[0], "2")
        await replies(students[1], "3")
        assert (await teacher.until(lambda told: "2" in told["counts"]))["counts"] == {"3": 2, "2": 1}
        await replies(students[2], None)
        assert (await teacher.until(lambda told: len(told["counts"]) and told["counts"]["3"] == 1))["people"] == 3
        await teacher.lead(lesson="tokens-and-merges", step=5)
        assert (await teacher.until(lambda told: told["step"] == 5))["counts"] == {}
        await teacher.lead(lesson="tokens-and-merges", step=4)  # what was replied there is still there
        assert (await teacher.until(lambda told: told["step"] == 4))["counts"] == {"2": 1, "3": 1}

    in_one_loop(story())


def test_who_is_there_is_counted_and_who_leaves_is_not(store, address, monkeypatch):
    monkeypatch.setattr(here, "GRACE", 0.2)
    monkeypatch.setattr(rooms, "LOOKING", 0.3)

    async def story():
        first, second = two_processes(store, address)
        teacher = await Teacher.opens(first)
        students = [Student(process, teacher.code) for process in (first, second, second)]
        waiting = [asyncio.create_task(forever(student)) for student in students]
        await teacher.until(lambda told: told["people"] == 3)
        await students[1].told("leave", **students[1].who)
        waiting[1].cancel()
        waiting[2].cancel()  # whose browser was shut
        await teacher.until(lambda told: told["people"] == 1)
        waiting[0].cancel()
        for each in waiting:
            with suppress(asyncio.CancelledError):
                await each

    in_one_loop(story())


async def forever(student: Student):
    while True:
        await student.next()


def test_nothing_is_left_of_a_room_that_is_closed_and_everybody_is_told(store, address):
    async def story():
        first, second = two_processes(store, address)
        teacher, other = await Teacher.opens(first), await Teacher.opens(first)
        await teacher.lead(lesson="tokens-and-merges", step=4)
        await other.lead()
        students = [Student(process, teacher.code) for process in (first, second)]
        for student in students:
            await student.until(lambda told: told["lesson"])
            await student.reply("1", "tokens-and-merges", 4)
        await teacher.until(lambda told: told["people"] == 2 and told["counts"])
        waiting = [asyncio.create_task(student.until(lambda told: "closed" in told)) for student in students]
        await asyncio.sleep(0.1)
        await teacher.told("close", **teacher.who)
        await asyncio.gather(*waiting)
        await asyncio.sleep(0.3)
        assert [key for key in store.keys("") if teacher.code in key] == []
        assert [key for key in store.keys("") if other.code in key] != []
        again = await students[1].answer("next", **students[1].who)
        assert again.status_code == 404 and "no such room" in again.json()["detail"]

    in_one_loop(story())


class Gone(InMemory):
    """Answers as long as it is there."""

    is_gone = False

    def get(self, key):
        if self.is_gone:
            raise StoreError("gone")
        return super().get(key)


def test_a_store_that_is_gone_is_told_and_comes_back(monkeypatch, caplog):
    monkeypatch.setattr(rooms, "AGAIN_AFTER", 0.1)
    monkeypatch.setattr("explorer.web.rooms.routes.WAITS", 0.3)

    async def story():
        store = Gone()
        process = served(store)
        teacher = await Teacher.opens(process)
        await teacher.lead(query=1)
        student = Student(process, teacher.code)
        await student.until(lambda told: told["state"])
        store.is_gone = True
        answer = await teacher.answer("lead", **teacher.who, leads=True, state=STATE)
        assert answer.status_code == 503 and "cannot be reached" in answer.json()["detail"]
        store.is_gone = False
        await teacher.lead(query=2)
        await student.until(lambda told: told["state"]["query"] == 2)

    in_one_loop(story())


@pytest.mark.parametrize("waits", [0.05])
def test_a_process_that_missed_a_message_looks_by_itself(waits, monkeypatch):
    monkeypatch.setattr(rooms, "LOOKING", waits)

    async def story():
        store = InMemory()
        process = served(store)
        teacher = await Teacher.opens(process)
        student = Student(process, teacher.code)
        await teacher.lead(query=1)
        await student.until(lambda told: told["state"])
        monkeypatch.setattr(store, "publish", lambda channel, message: None)
        await teacher.lead(query=2)
        await student.until(lambda told: told["state"]["query"] == 2)

    in_one_loop(story())
