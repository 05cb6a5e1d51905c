"""Who may ask what of a room, and what anybody may send."""

import pytest

from explorer.language import spoken
from explorer.web.rooms.routes import MOST_BODY, MOST_STATE

from .conftest import A_STUDENT, STATE, Asking, Student, Teacher, in_one_loop, refused

HOSTILE = "<img src=x onerror=alert(1)>"


def test_only_the_key_leads_and_closes(process):
    async def story():
        teacher = await Teacher.opens(process)
        student = Student(process, teacher.code)
        for key in ("", teacher.who["key"][:-1], teacher.who["key"] + "a", student.who["student"]):
            for act, more in (("lead", {"state": STATE}), ("close", {}), ("next", {})):
                refused(await student.answer(act, code=teacher.code, key=key, **more), 403, "another’s room")
        await teacher.lead()
        assert (await student.next())["leads"] is True

    in_one_loop(story())


def test_students_are_told_no_counts_and_no_number(process):
    async def story():
        teacher = await Teacher.opens(process)
        await teacher.lead(lesson="tokens-and-merges", step=4)
        student = Student(process, teacher.code)
        assert not {"counts", "people"} & set(await student.until(lambda told: told["lesson"]))

    in_one_loop(story())


@pytest.mark.parametrize("code", ["", "AAAAA", "A" * 11, HOSTILE, "A" * 10, "room/x", "*" * 10])
def test_a_room_that_is_not_there(process, code):
    async def story():
        refused(await Asking(process).answer("next", code=code, student=A_STUDENT), 404, "no such room")

    in_one_loop(story())


def test_a_code_is_understood_however_it_is_typed(process):
    async def story():
        teacher = await Teacher.opens(process)
        code = teacher.code.replace("0", "o").replace("1", "l").lower()
        student = Student(process, f" {code[:5]} – {code[5:]}")
        await student.next()

    in_one_loop(story())


@pytest.mark.parametrize(
    ("lesson", "step", "reply", "status"),
    [
        ("tokens-and-merges", 4, "3", 200),
        ("tokens-and-merges", 4, "5", 422),
        ("tokens-and-merges", 4, "0", 422),
        ("tokens-and-merges", 4, HOSTILE, 422),
        ("tokens-and-merges", 4, "1" * 300, 422),
        ("tokens-and-merges", 4, 3, 422),
        ("tokens-and-merges", 4, ["3"], 422),
        ("tokens-and-merges", 99, "3", 422),
        ("tokens-and-merges", 0, "3", 422),
        ("tokens-and-merges", None, "3", 422),
        ("tokens-and-merges", 1, "3", 422),
        ("order", 2, "3", 409),
        ("no-such", 4, "3", 409),
        ("", 4, "3", 409),
        (["tokens-and-merges"], 4, "3", 422),
        ("tokens-and-merges", "4", "3", 422),
        (None, None, None, 422),
    ],
)
def test_a_reply_is_one_to_a_question_of_the_rooms_lesson(process, lesson, step, reply, status):
    async def story():
        teacher = await Teacher.opens(process)
        await teacher.lead(lesson="tokens-and-merges", step=4)
        student = Student(process, teacher.code)
        await student.until(lambda told: told["lesson"])
        answer = await student.reply(reply, lesson, step)
        assert answer.status_code == status, answer.text
        wanted = {"3": 1} if status == 200 else {}
        assert await teacher.until(lambda told: told["people"] and told["counts"] == wanted)

    in_one_loop(story())


def test_a_reply_counts_for_the_step_that_it_is_to_wherever_the_class_is(process):
    async def story():
        teacher = await Teacher.opens(process)
        await teacher.lead(lesson="tokens-and-merges", step=4)
        student = Student(process, teacher.code)
        await student.until(lambda told: told["lesson"])
        assert (await student.reply("1", "tokens-and-merges", 5)).status_code == 200
        assert (await teacher.until(lambda told: told["people"]))["counts"] == {}
        await teacher.lead(lesson="tokens-and-merges", step=5)
        assert (await teacher.until(lambda told: told["step"] == 5))["counts"] == {"1": 1}

    in_one_loop(story())


def test_who_never_joined_replies_to_nothing(process):
    async def story():
        teacher = await Teacher.opens(process)
        await teacher.lead(lesson="tokens-and-merges", step=4)
        refused(await Student(process, teacher.code).reply("3", "tokens-and-merges", 4), 403, "Join the room first")
        for name in ("", "0" * 31, "A" * 32, "../" * 10, "0" * 33):
            answer = await Asking(process).answer("next", code=teacher.code, student=name)
            refused(answer, 422, "A student has a name")

    in_one_loop(story())


@pytest.mark.parametrize(
    "state",
    [
        *(None, {}),
        {"checkpoint": ""},
        *({"checkpoint": "tiny", "x": value} for value in ({"y": 1}, None, ["a"], [[1]])),
        {"checkpoint": "tiny", "y" * 41: 1},
        {"checkpoint": "tiny"} | {str(name): 1 for name in range(120)},
    ],
)
def test_what_is_shown_is_a_state(process, state):
    async def story():
        teacher = await Teacher.opens(process)
        refused(await teacher.answer("lead", **teacher.who, leads=True, state=state), 422, "the page’s state")

    in_one_loop(story())


@pytest.mark.parametrize(
    ("act", "change", "sentence"),
    [
        ("next", {"code": 7}, "code must be text, got 7."),
        ("next", {"key": None}, "key must be text, got null."),
        ("lead", {"leads": 1}, "leads must be true or false, got 1."),
        ("lead", {"state": [1]}, "state must be an object, got a list of 1."),
        ("lead", {"state": STATE | {"query": 1.0}}, "state.query must be a whole number, got 1.0."),
        ("lead", {"step": True}, "step must be a whole number, got true."),
        ("lead", {"other": 1}, "other is unknown here: leave it out."),
        ("close", {"lang": 7}, "lang must be text, got 7."),
    ],
)
def test_a_value_of_another_type_is_refused_in_words(process, act, change, sentence):
    async def story():
        teacher = await Teacher.opens(process)
        refused(await teacher.answer(act, **teacher.who | change), 422, sentence)

    in_one_loop(story())


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        (b"{", "application/json", 422),
        (b"[]", "application/json", 422),
        (b"", "application/json", 422),
        (b"[" * 1500, "application/json", 422),
        (b'{"seen": NaN}', "application/json", 422),
        (b"\xff", "application/json", 422),
        (b"{}", "text/plain", 415),
        (b"{}", "application/x-www-form-urlencoded", 415),
        (b'{"x": "' + b"x" * MOST_BODY + b'"}', "application/json", 413),
    ],
)
def test_what_is_no_question_is_refused_in_words(process, body, kind, status):
    async def story():
        client = Asking(process).client
        refused(await client.post("/rooms/next", content=body, headers={"content-type": kind}), status)
        refused(await client.get("/rooms/next"), 404)
        refused(await client.post("/rooms/keys", json={}), 404)
        refused(await client.post("/rooms/", json={}), 404)

    in_one_loop(story())


def test_a_state_that_is_too_long_is_refused_in_words(process):
    async def story():
        teacher = await Teacher.opens(process)
        given = teacher.who | {"leads": True, "state": STATE | {"find": "x" * MOST_STATE}}
        refused(await teacher.answer("lead", **given), 413, "at most 200,000 bytes")

    in_one_loop(story())


def test_it_is_said_in_the_pages_language(process, monkeypatch):
    monkeypatch.setattr("explorer.web.rooms.refusals._", lambda message: spoken())

    async def story():
        for lang, said in (("zh-CN", "zh-CN"), ("en", "en"), (HOSTILE, "en")):
            refused(await Asking(process).answer("next", code="x", student=A_STUDENT, lang=lang), 404, said)

    in_one_loop(story())


def test_answers_set_no_cookie_and_are_kept_nowhere(process):
    async def story():
        teacher = await Teacher.opens(process)
        student = Student(process, teacher.code)
        for answer in (await student.answer("next", **student.who), await teacher.answer("close", **teacher.who)):
            assert answer.headers["cache-control"] == "no-store" and "set-cookie" not in answer.headers

    in_one_loop(story())
