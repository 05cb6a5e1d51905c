"""Routes of rooms: permissions, and hostile requests."""

import json

from explorer.translations import current_locale
from explorer.web.room_routes import MAX_BODY_BYTES, MAX_STATE_BYTES
from explorer.web.rooms import MAX_SHOWN_REPLIES
from tests.subtest_loops import subtest_each

from .conftest import STATE, STUDENT_NAME, RoomClient, Student, Teacher, assert_refused, run_in_event_loop

HOSTILE = "<img src=x onerror=alert(1)>"


def test_only_teacher_key_leads_and_closes(process):
    async def story():
        teacher = await Teacher.open_room(process)
        student = Student(process, teacher.code)
        for key in (
            "",
            teacher.credentials["key"][:-1],
            teacher.credentials["key"] + "a",
            student.credentials["student"],
        ):
            for act, more in (("lead", {"state": STATE}), ("close", {}), ("next", {})):
                assert_refused(
                    await student.answer(act, code=teacher.code, key=key, **more),
                    403,
                    "Only the teacher who opened this room",
                )
        await teacher.lead()
        assert (await student.next())["leads"] is True

    run_in_event_loop(story())


def test_students_get_no_counts(process):
    async def story():
        teacher = await Teacher.open_room(process)
        await teacher.lead(lesson="tokens-and-merges", step=4)
        student = Student(process, teacher.code)
        assert not {"counts", "people"} & set(await student.until(lambda update: update["lesson"]))

    run_in_event_loop(story())


def test_unknown_room_is_refused(process):
    async def story():
        for code in ("", "AAAAA", "A" * 11, HOSTILE, "A" * 10, "room/x", "*" * 10):
            assert_refused(
                await RoomClient(process).answer("next", code=code, student=STUDENT_NAME), 404, "no room with this code"
            )

    run_in_event_loop(story())


def test_own_question_and_its_replies_are_bounded(process):
    async def story():
        teacher = await Teacher.open_room(process)
        question = {"number": 1, "text": HOSTILE, "answers": [], "shows_replies": False}
        for change, sentence in (
            ({"text": ""}, "question.text must be text that is not empty"),
            ({"text": "x" * 201}, "question.text must be text of at most 200 characters"),
            ({"answers": ["x" * 81, "y"]}, "question.answers[0] must be text of at most 80 characters"),
            ({"answers": list("abcde")}, "question.answers must be a list of at most 4 items"),
            ({"answers": ["a"]}, "two to four different"),
            ({"answers": ["a", "a"]}, "two to four different"),
            ({"number": -1}, "question.number must be at least 0"),
            ({"text": " "}, "two to four different"),
            ({"more": 1}, "question.more is unknown"),
        ):
            body = teacher.credentials | {"leads": False, "question": question | change}
            request = teacher.client.post(
                "/rooms/lead", content=json.dumps(body), headers={"content-type": "application/json"}
            )
            assert_refused(await request, 422, sentence)
        await teacher.lead(question=question)
        student = Student(process, teacher.code)
        assert (await student.until(lambda update: update["question"]))["question"]["text"] == HOSTILE
        for reply in ("", "   ", "x" * 81, "x" * 201, 3):
            assert_refused(await student.reply(reply, "", 1), 422)
        assert_refused(await student.reply("x", "", 2), 409, "This question is over.")
        students = [student, *(Student(process, teacher.code) for _other in range(MAX_SHOWN_REPLIES))]
        for number, other in enumerate(students):
            await other.next() if number else None
            assert (await other.reply(f"words {number}", "", 1)).status_code == 200
        await teacher.lead(question=question | {"shows_replies": True})
        await teacher.until(lambda update: len(update["own_replies"]["counts"]) == MAX_SHOWN_REPLIES + 1)
        update = await student.until(lambda update: update["own_replies"])
        assert len(update["own_replies"]["counts"]) == MAX_SHOWN_REPLIES

    run_in_event_loop(story())


def test_code_is_accepted_in_any_spelling(process):
    async def story():
        teacher = await Teacher.open_room(process)
        code = teacher.code.replace("0", "o").replace("1", "l").lower()
        student = Student(process, f" {code[:5]} – {code[5:]}")
        await student.next()

    run_in_event_loop(story())


@subtest_each(
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
        ("tokens-and-merges", 3, "3", 422),
        ("order", 2, "3", 409),
        ("no-such", 4, "3", 409),
        ("", 4, "3", 409),
        (["tokens-and-merges"], 4, "3", 422),
        ("tokens-and-merges", "4", "3", 422),
        (None, None, None, 422),
    ],
)
def test_reply_must_fit_question_of_lesson(process, lesson, step, reply, status):
    async def story():
        teacher = await Teacher.open_room(process)
        await teacher.lead(lesson="tokens-and-merges", step=4)
        student = Student(process, teacher.code)
        await student.until(lambda update: update["lesson"])
        answer = await student.reply(reply, lesson, step)
        assert answer.status_code == status, answer.text
        expected_counts = {"3": 1} if status == 200 else {}
        assert await teacher.until(lambda update: update["people"] and update["counts"] == expected_counts)

    run_in_event_loop(story())


def test_reply_counts_for_its_own_step(process):
    async def story():
        teacher = await Teacher.open_room(process)
        await teacher.lead(lesson="tokens-and-merges", step=4)
        student = Student(process, teacher.code)
        await student.until(lambda update: update["lesson"])
        assert (await student.reply("1", "tokens-and-merges", 5)).status_code == 200
        assert (await teacher.until(lambda update: update["people"]))["counts"] == {}
        await teacher.lead(lesson="tokens-and-merges", step=5)
        assert (await teacher.until(lambda update: update["step"] == 5))["counts"] == {"1": 1}

    run_in_event_loop(story())


def test_reply_without_joining_is_refused(process):
    async def story():
        teacher = await Teacher.open_room(process)
        await teacher.lead(lesson="tokens-and-merges", step=4)
        assert_refused(
            await Student(process, teacher.code).reply("3", "tokens-and-merges", 4), 403, "Join the room first"
        )
        for name in ("", "0" * 31, "A" * 32, "../" * 10, "0" * 33):
            answer = await RoomClient(process).answer("next", code=teacher.code, student=name)
            assert_refused(answer, 422, "A student has a name")

    run_in_event_loop(story())


NOT_A_FIELD = "state is refused: x is no field of the page’s state, and neither text nor a number."
NOT_A_STATE = "“state” must be the state of the page."


@subtest_each(
    ("state", "sentence"),
    [
        (None, NOT_A_STATE),
        ({}, NOT_A_STATE),
        ({"checkpoint": ""}, NOT_A_STATE),
        ({"checkpoint": "tiny", "x": {"y": 1}}, NOT_A_FIELD),
        ({"checkpoint": "tiny", "x": [[1]]}, NOT_A_FIELD),
    ],
)
def test_invalid_state_is_refused(process, state, sentence):
    async def story():
        teacher = await Teacher.open_room(process)
        assert_refused(await teacher.answer("lead", **teacher.credentials, leads=True, state=state), 422, sentence)

    run_in_event_loop(story())


@subtest_each(
    ("act", "change", "sentence"),
    [
        ("next", {"code": 7}, "code must be text, got 7."),
        ("next", {"key": 7}, "key must be text, got 7."),
        ("lead", {"leads": 1}, "leads must be true or false, got 1."),
        ("lead", {"state": [1]}, "state must be an object, got a list of 1."),
        ("lead", {"state": STATE | {"query": 1.0}}, "state.query must be a whole number, got 1.0."),
        ("lead", {"step": True}, "step must be a whole number, got true."),
        ("lead", {"other": 1}, "other is unknown here: leave it out."),
    ],
)
def test_value_of_wrong_type_is_refused(process, act, change, sentence):
    async def story():
        teacher = await Teacher.open_room(process)
        assert_refused(await teacher.answer(act, **teacher.credentials | change), 422, sentence)

    run_in_event_loop(story())


@subtest_each(
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
        (b'{"x": "' + b"x" * MAX_BODY_BYTES + b'"}', "application/json", 413),
    ],
)
def test_malformed_request_is_refused(process, body, kind, status):
    async def story():
        client = RoomClient(process).client
        assert_refused(await client.post("/rooms/next", content=body, headers={"content-type": kind}), status)
        assert_refused(await client.get("/rooms/next"), 405)
        assert_refused(await client.post("/rooms/keys", json={}), 404)
        assert_refused(await client.post("/rooms/", json={}), 404)

    run_in_event_loop(story())


def test_too_large_state_is_refused(process):
    async def story():
        teacher = await Teacher.open_room(process)
        payload = teacher.credentials | {"leads": True, "state": STATE | {"find": "x" * MAX_STATE_BYTES}}
        assert_refused(await teacher.answer("lead", **payload), 413, "at most 200,000 bytes")

    run_in_event_loop(story())


def test_refusal_is_in_language_of_page(process, monkeypatch):
    monkeypatch.setattr("explorer.web.room_routes._", lambda message: current_locale())

    async def story():
        for lang, language in (("zh-CN", "zh-CN"), ("en", "en"), (HOSTILE, "en")):
            assert_refused(
                await RoomClient(process).answer("next", code="x", student=STUDENT_NAME, lang=lang), 404, language
            )

    run_in_event_loop(story())


def test_answers_set_no_cookie_and_are_not_cached(process):
    async def story():
        teacher = await Teacher.open_room(process)
        student = Student(process, teacher.code)
        for answer in (
            await student.answer("next", **student.credentials),
            await teacher.answer("close", **teacher.credentials),
        ):
            assert answer.headers["cache-control"] == "no-store" and "set-cookie" not in answer.headers

    run_in_event_loop(story())
