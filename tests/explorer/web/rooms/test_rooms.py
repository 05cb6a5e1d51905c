"""Rooms with a teacher, students and several processes between them."""

import asyncio
from contextlib import suppress

from explorer.web import rooms
from explorer.web.key_value_stores import MemoryRooms, RedisStore, StoreError

from .conftest import STATE, Student, Teacher, assert_refused, make_process, run_in_event_loop


def make_two_processes(store, address):
    """Return two processes that share a store, or one process twice if the store is in memory."""
    first = make_process(store)
    return first, make_process(RedisStore(address)) if address else first


def test_students_of_all_processes_get_state_and_changes(store, address):
    async def story():
        first, second = make_two_processes(store, address)
        teacher = await Teacher.open_room(first)
        await teacher.lead(query=1)
        students = [Student(process, teacher.code) for process in (first, second)]
        for student in students:
            update = await student.until(lambda update: update["state"])
            assert update["leads"] and update["state"] == STATE | {"query": 1}
        waiting = [
            asyncio.create_task(student.until(lambda update: update["state"]["query"] == 2)) for student in students
        ]
        await asyncio.sleep(0.2)
        began = asyncio.get_running_loop().time()
        await teacher.lead(query=2)
        await asyncio.gather(*waiting)
        assert asyncio.get_running_loop().time() - began < 3

    run_in_event_loop(story())


def test_new_student_gets_state_and_up_to_date_one_waits(monkeypatch):
    monkeypatch.setattr("explorer.web.room_routes.LONG_POLL_S", 0.3)

    async def story():
        process = make_process(MemoryRooms())
        teacher = await Teacher.open_room(process)
        await teacher.lead(query=1)
        student = Student(process, teacher.code)
        first = await student.until(lambda update: update["state"])
        assert await student.request_json("next", **student.credentials, seen=first["tag"]) == {"tag": first["tag"]}
        assert (await student.request_json("next", **student.credentials, seen="of long ago"))["state"] == STATE | {
            "query": 1
        }

    run_in_event_loop(story())


def test_state_is_not_sent_while_teacher_does_not_lead(monkeypatch):
    async def story():
        process = make_process(MemoryRooms())
        teacher = await Teacher.open_room(process)
        student = Student(process, teacher.code)
        await teacher.lead(leads=False, query=1, lesson="order", step=2, held_from=2)
        update = await student.until(lambda update: not update["leads"])
        assert update["state"] is None and update["lesson"] == "order" and update["held_from"] == 2
        await teacher.lead(query=1)
        assert (await student.until(lambda update: update["leads"]))["state"] == STATE | {"query": 1}

    run_in_event_loop(story())


def test_students_never_see_private_fields_of_teacher(store):
    async def story():
        process = make_process(store)
        teacher = await Teacher.open_room(process)
        await teacher.lead(lesson="order", step=2, reply="2:right", guess="fox", lang="zh-CN", turn=7)
        student = Student(process, teacher.code)
        update = await student.until(lambda update: update["state"])
        assert set(update) == {"tag", "leads", "state", "lesson", "held_from", "question", "own_replies"}
        assert not {"reply", "guess", "lang", "turn"} & set(update["state"])
        assert teacher.credentials["key"] not in str(update)
        assert teacher.credentials["key"].encode() not in b"".join(store.read_room(teacher.code).values())

    run_in_event_loop(story())


def test_latest_reply_of_each_student_is_counted(store, address):
    async def story():
        first, second = make_two_processes(store, address)
        teacher = await Teacher.open_room(first)
        await teacher.lead(lesson="tokens-and-merges", step=4)
        students = [Student(process, teacher.code) for process in (first, second, first)]
        for student in students:
            await student.until(lambda update: update["lesson"])

        async def send_reply(student, reply):
            assert (await student.reply(reply, "tokens-and-merges", 4)).status_code == 200

        await asyncio.gather(*(send_reply(student, reply) for student, reply in zip(students, "133", strict=True)))
        assert (await teacher.until(lambda update: sum(update["counts"].values()) == 3))["counts"] == {"3": 2, "1": 1}
        await send_reply(students[0], "2")
        await send_reply(students[1], "3")
        assert (await teacher.until(lambda update: "2" in update["counts"]))["counts"] == {"3": 2, "2": 1}
        await send_reply(students[2], None)
        assert (await teacher.until(lambda update: len(update["counts"]) and update["counts"]["3"] == 1))["people"] == 3
        await teacher.lead(lesson="tokens-and-merges", step=5)
        assert (await teacher.until(lambda update: update["step"] == 5))["counts"] == {}
        await teacher.lead(lesson="tokens-and-merges", step=4)  # replies to that step are still counted
        assert (await teacher.until(lambda update: update["step"] == 4))["counts"] == {"2": 1, "3": 1}

    run_in_event_loop(story())


def test_own_question_is_answered_shown_and_replaced(store, address):
    async def story():
        first, second = make_two_processes(store, address)
        teacher = await Teacher.open_room(first)
        question = {"number": 1, "text": "Who?", "answers": ["the cat", "the dog"], "shows_replies": False}
        await teacher.lead(question=question)
        students = [Student(process, teacher.code) for process in (first, second)]
        for student in students:
            update = await student.until(lambda update: update["question"])
            assert update["question"] == question and update["own_replies"] is None
        for student, reply in ((students[0], "1"), (students[1], "1"), (students[1], "2")):
            assert (await student.reply(reply, "", 1)).status_code == 200
        counts = {"1": 1, "2": 1}
        assert (await teacher.until(lambda update: len(update["own_replies"]["counts"]) == 2))["own_replies"] == {
            "number": 1,
            "counts": counts,
        }
        await teacher.lead(question=question | {"shows_replies": True})
        for student in students:
            assert (await student.until(lambda update: update["own_replies"]))["own_replies"]["counts"] == counts
        await teacher.lead(question={"number": 2, "text": "Why?", "answers": [], "shows_replies": False})
        for student in students:
            assert (await student.until(lambda update: update["question"]["number"] == 2))["own_replies"] is None
        assert not [field for field in store.read_room(teacher.code) if "reply/:1/" in field]
        assert_refused(await students[0].reply("1", "", 1), 409, "This question is over.")
        for student, reply in zip(students, (" It  saw <b>it</b> ", "it saw <B>it</B>"), strict=True):
            assert (await student.reply(reply, "", 2)).status_code == 200
        update = await teacher.until(lambda update: update["own_replies"]["counts"] == {"it saw <b>it</b>": 2})
        assert update["counts"] == {}
        await teacher.lead()
        await students[0].until(lambda update: update["question"] is None)
        assert not [field for field in store.read_room(teacher.code) if "reply/" in field]

    run_in_event_loop(story())


def test_present_students_are_counted(store, address, monkeypatch):
    monkeypatch.setattr(rooms, "GRACE_S", 0.2)
    monkeypatch.setattr(rooms, "POLL_INTERVAL_S", 0.3)

    async def story():
        first, second = make_two_processes(store, address)
        teacher = await Teacher.open_room(first)
        students = [Student(process, teacher.code) for process in (first, second, second)]
        waiting = [asyncio.create_task(poll_forever(student)) for student in students]
        await teacher.until(lambda update: update["people"] == 3)
        await students[1].request_json("leave", **students[1].credentials)
        waiting[1].cancel()
        waiting[2].cancel()  # its browser was closed
        await teacher.until(lambda update: update["people"] == 1)
        waiting[0].cancel()
        for task in waiting:
            with suppress(asyncio.CancelledError):
                await task

    run_in_event_loop(story())


async def poll_forever(student: Student):
    while True:
        await student.next()


def test_closed_room_leaves_nothing_and_students_are_told(store, address):
    async def story():
        first, second = make_two_processes(store, address)
        teacher, other = await Teacher.open_room(first), await Teacher.open_room(first)
        await teacher.lead(lesson="tokens-and-merges", step=4)
        await other.lead()
        students = [Student(process, teacher.code) for process in (first, second)]
        for student in students:
            await student.until(lambda update: update["lesson"])
            await student.reply("1", "tokens-and-merges", 4)
        await teacher.until(lambda update: update["people"] == 2 and update["counts"])
        waiting = [asyncio.create_task(student.until(lambda update: "closed" in update)) for student in students]
        await asyncio.sleep(0.1)
        await teacher.request_json("close", **teacher.credentials)
        await asyncio.gather(*waiting)
        await asyncio.sleep(0.3)
        assert not store.read_room(teacher.code) and store.read_room(other.code)
        again = await students[1].answer("next", **students[1].credentials)
        assert again.status_code == 404 and "no room with this code" in again.json()["detail"]

    run_in_event_loop(story())


class UnreliableStore(MemoryRooms):
    """Store that fails while `is_gone`."""

    is_gone = False

    def read_room(self, code):
        if self.is_gone:
            raise StoreError("gone")
        return super().read_room(code)


def test_store_failure_is_reported_and_recovered_from(monkeypatch, caplog):
    monkeypatch.setattr(rooms, "RETRY_AFTER_S", 0.1)
    monkeypatch.setattr("explorer.web.room_routes.LONG_POLL_S", 0.3)

    async def story():
        store = UnreliableStore()
        process = make_process(store)
        teacher = await Teacher.open_room(process)
        await teacher.lead(query=1)
        student = Student(process, teacher.code)
        await student.until(lambda update: update["state"])
        store.is_gone = True
        answer = await teacher.answer("lead", **teacher.credentials, leads=True, state=STATE)
        assert answer.status_code == 503 and "cannot be reached" in answer.json()["detail"]
        store.is_gone = False
        await teacher.lead(query=2)
        await student.until(lambda update: update["state"]["query"] == 2)

    run_in_event_loop(story())


def test_process_follows_changes_by_another(store, address):
    async def story():
        first = make_process(store)
        second = make_process(RedisStore(address) if address else store)
        teacher = await Teacher.open_room(first)
        student = Student(second, teacher.code)
        await teacher.lead(query=1)
        await student.until(lambda update: update["state"])
        began = asyncio.get_running_loop().time()
        await teacher.lead(query=2)
        await student.until(lambda update: update["state"]["query"] == 2)
        assert asyncio.get_running_loop().time() - began < 3 * rooms.POLL_INTERVAL_S

    run_in_event_loop(story())
