"""How long a room lasts, and that nothing of it stays longer."""

import asyncio
import time

from explorer.web.rooms import rooms
from explorer.web.rooms.kept_rooms import KeptRooms
from explorer.web.shared.in_memory import InMemory

from .conftest import A_STUDENT, Student, Teacher, in_one_loop, served


def test_a_room_whose_teacher_gives_no_sign_expires_with_all_that_is_in_it(store, monkeypatch):
    monkeypatch.setattr("explorer.web.rooms.kept_rooms.LASTS", 0.8)
    monkeypatch.setattr(rooms, "LOOKING", 0.2)

    process = served(store)
    assert process.shelf.lessons  # read from files before the room's time begins

    async def story():
        teacher = await Teacher.opens(process)
        await teacher.lead(lesson="tokens-and-merges", step=4)
        student = Student(process, teacher.code)
        await student.until(lambda told: told["lesson"])
        monkeypatch.setattr("explorer.web.rooms.kept_rooms.LASTS", 60.0)
        await student.reply("1", "tokens-and-merges", 4)
        assert store.keys("")
        await student.until(lambda told: "closed" in told)
        assert store.keys("") == []

    in_one_loop(story())


def test_what_is_left_of_a_room_that_nobody_came_back_to_goes_with_the_next(store):
    process = served(store)
    store.put("0123456789/reply/order:2/" + "a" * 32, b"1", 60)

    async def story():
        teacher = await Teacher.opens(process)
        assert all(teacher.code in key for key in store.keys(""))

    in_one_loop(story())


def test_what_comes_while_a_room_is_closed_does_not_stay(monkeypatch):
    store = InMemory()
    kept, put = KeptRooms(store), store.put
    code, _key = kept.open()

    def late(*given):
        kept.close(code)
        put(*given)

    monkeypatch.setattr(store, "put", late)
    kept.reply(code, "order:2", A_STUDENT, "1")
    assert store.keys("") == []


def test_a_process_says_again_who_is_there_before_that_is_forgotten():
    """A store drops what nothing more was told of (`THERE_LASTS`)."""
    store = InMemory()
    process = served(store)

    async def story():
        teacher = await Teacher.opens(process)
        await Student(process, teacher.code).next()
        await teacher.until(lambda told: told["people"] == 1)
        (said,) = store.keys(f"{teacher.code}/there/")
        kept, here = store.get(said), process.rooms.known(teacher.code)
        store.drop(said)
        here.said_at -= rooms.THERE_LASTS / 3
        here.to_read.set()
        for _time in range(100):
            await asyncio.sleep(0.02)
            if store.get(said) == kept:
                return
        raise AssertionError("nobody is there any more")

    in_one_loop(story())


def test_the_teachers_sign_keeps_a_room(store, monkeypatch):
    monkeypatch.setattr("explorer.web.rooms.kept_rooms.LASTS", 1.0)
    monkeypatch.setattr("explorer.web.rooms.routes.RENEWED", 0.1)
    monkeypatch.setattr("explorer.web.rooms.routes.WAITS", 0.3)

    async def story():
        process = served(store)
        teacher = await Teacher.opens(process)
        await teacher.lead(query=1)
        for _time in range(5):
            told = await teacher.told("next", **teacher.who, seen=teacher.tag)
            teacher.tag = told["tag"]
        student = Student(process, teacher.code)
        assert (await student.until(lambda told: told["state"]))["state"]["query"] == 1

    in_one_loop(story())


def test_a_process_follows_a_room_as_long_as_somebody_waits_there(process, monkeypatch):
    monkeypatch.setattr(rooms, "LINGERS", 0.2)
    monkeypatch.setattr(rooms, "LOOKING", 0.05)
    monkeypatch.setattr("explorer.web.rooms.routes.WAITS", 0.6)

    async def story():
        teacher = await Teacher.opens(process)
        await teacher.lead(query=1)
        student = Student(process, teacher.code)
        followed = process.rooms.known(teacher.code)
        await student.until(lambda told: told["state"])
        assert await student.told("next", **student.who, seen=student.tag) == {"tag": student.tag}
        assert process.rooms.known(teacher.code) is followed
        while not followed.closed:
            await asyncio.sleep(0.05)
        await asyncio.sleep(0)
        assert not process.rooms._here
        student.tag = ""
        assert (await student.until(lambda told: told["state"]))["state"]["query"] == 1

    in_one_loop(story())


def test_whoever_leads_and_was_away_is_not_told_that_the_class_is_over(process, monkeypatch):
    """The process gives up a room in which nobody waits, while it asks the store whose the key is."""
    monkeypatch.setattr(rooms, "LOOKING", 0.2)

    async def story():
        teacher = await Teacher.opens(process)
        await teacher.next()
        here, is_teacher = process.rooms.known(teacher.code), process.rooms.kept.is_teacher

        def slowly(*asked):
            time.sleep(0.5)
            return is_teacher(*asked)

        monkeypatch.setattr(process.rooms.kept, "is_teacher", slowly)
        here.left_at = -float("inf")
        assert "people" in await teacher.told("next", **teacher.who)

    in_one_loop(story())
