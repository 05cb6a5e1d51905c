"""How long a room lasts, and that nothing of it stays longer."""

from explorer.web.rooms import rooms

from .conftest import Student, Teacher, in_one_loop, served


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
