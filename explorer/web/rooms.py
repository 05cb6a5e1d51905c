"""Class rooms: their codes and keys, a teacher's own question, their state in the store, and the clients that wait."""

import asyncio
import hashlib
import hmac
import json
import logging
import re
import secrets
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass
from typing import Annotated, Any, TypeVar

import anyio
import anyio.to_thread
from pydantic import Field
from typing_extensions import TypedDict

from explorer.state.selection import parse_index
from explorer.web.key_value_stores import MemoryRooms, RedisStore, StoreError
from explorer.web.request_validation import STRICT, Index

ALPHABET = "23456789ACDEFGHJKMNPQRTVWXY"  # no two that look alike
CODE_LENGTH, KEY_BYTES = 10, 24
CODE_TRANSLATION = str.maketrans("BSZ", "852", " -–—")  # as room_client.js has it
STUDENT_PATTERN = re.compile(r"[0-9a-f]{32}")  # 128 random bits that a student's page makes up


def new_room_code() -> str:
    """Return a random code of a room."""
    return "".join(secrets.choice(ALPHABET) for _place in range(CODE_LENGTH))


def new_teacher_key() -> str:
    """Return a random key of a teacher."""
    return secrets.token_urlsafe(KEY_BYTES)


def parse_room_code(text: object) -> str | None:
    """Return the code that a user typed, in any spelling; None if it is no code."""
    code = text[:40].upper().translate(CODE_TRANSLATION) if isinstance(text, str) else ""
    return code if len(code) == CODE_LENGTH and set(code) <= set(ALPHABET) else None


def is_valid_student_name(name: object) -> bool:
    """Return whether a value is a student's random name."""
    return isinstance(name, str) and STUDENT_PATTERN.fullmatch(name) is not None


def hash_teacher_key(key: str) -> str:
    """Return the hash that is stored in place of a key."""
    return hashlib.sha256(key.encode()).hexdigest()


def matches_key_hash(key: str, expected: str) -> bool:
    """Return whether a key has this hash; compares in constant time."""
    return hmac.compare_digest(hash_teacher_key(key), expected)


MAX_QUESTION_CHARS, MAX_ANSWER_CHARS = 200, 80  # an answer is one of the teacher's, or a student's own words
MIN_ANSWERS, MAX_ANSWERS = 2, 4
MAX_SHOWN_REPLIES = 20  # different ones that students get


class ClassQuestion(TypedDict):
    """A question that a teacher writes.

    Attributes:
        number: another one for each question of a room, so that no reply counts for the next question.
        text: the question.
        answers: those to choose from; empty if students reply in their own words.
        shows_replies: whether students get the counts of the replies.
    """

    __pydantic_config__ = STRICT

    number: Index
    text: Annotated[str, Field(min_length=1, max_length=MAX_QUESTION_CHARS)]
    answers: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=MAX_ANSWER_CHARS)]], Field(max_length=MAX_ANSWERS)
    ]
    shows_replies: bool


def is_valid_question(question: Mapping[str, Any]) -> bool:
    """Return whether no text is blank, and there are no answers to choose from, or enough that differ."""
    answers = question["answers"]
    return all(map(str.strip, (question["text"], *answers))) and (
        not answers or (len(answers) >= MIN_ANSWERS and len(set(answers)) == len(answers))
    )


def own_question_key(question: Mapping[str, Any]) -> str:
    """Return the key of a teacher's question in the store; no lesson is named ""."""
    return f":{question['number']}"


def own_question_tally_key(question: Mapping[str, Any], reply: str) -> str | None:
    """Return the key under which equal replies are counted: an answer's number, or words; None for an invalid reply."""
    if answers := question["answers"]:
        chosen = parse_index(reply)
        return str(chosen) if chosen is not None and 1 <= chosen <= len(answers) else None
    words = " ".join(reply.split()).casefold()
    return words if 0 < len(words) <= MAX_ANSWER_CHARS else None


TTL_S = 4 * 3600.0  # seconds after the teacher's last sign
PRESENCE_TTL_S = 60.0  # for which a process's report of its students counts
# At most 100 MB together: a room holds what its teacher shows, 200 kB, and replies of up to 0.4 kB with their keys.
MAX_ROOMS, MAX_REPLIES = 100, 2000  # replies in one room, to all its questions


@dataclass(frozen=True)
class TeacherState:
    """State that a teacher sets for the class: the page's state to follow, and the lesson's step.

    Attributes:
        leads: whether the class follows.
        state: the page's state to follow; None if the teacher does not lead.
        lesson: the teacher's current lesson; "" for none.
        step: number of its step, from 1.
        held_from: number of the lesson's first step whose answers are held back; 0 for none.
        question: the teacher's own question (`ClassQuestion`); None for none.
    """

    leads: bool = True
    state: Mapping[str, Any] | None = None
    lesson: str = ""
    step: int = 0
    held_from: int = 0
    question: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class StoredRoom:
    """A room's contents in the store.

    Each process and each student have fields of their own, so that none overwrites another's. Of a student only the
    last reply to each question is stored, under a random name.

    Attributes:
        fields: `key`, the hash of the teacher's key; `led`, the teacher's state; `reply/QUESTION/STUDENT`; and
            `there/PROCESS`, the students who are present in a process.
    """

    fields: Mapping[str, bytes]

    @property
    def key_hash(self) -> str:
        return self.fields["key"].decode()

    @property
    def teacher_state(self) -> TeacherState:
        return TeacherState(**json.loads(self.fields["led"])) if "led" in self.fields else TeacherState()

    def replies(self, question: str) -> dict[str, str]:
        """Return the replies to a question by student."""
        prefix = f"reply/{question}/"
        return {
            field.removeprefix(prefix): value.decode()
            for field, value in self.fields.items()
            if field.startswith(prefix)
        }

    def counts(self, question: str) -> dict[str, int]:
        """Return the number of students by reply, the most frequent first."""
        return dict(Counter(sorted(self.replies(question).values())).most_common())

    @property
    def present_students(self) -> frozenset[str]:
        """The students who are present in any process."""
        reports = [json.loads(value) for field, value in self.fields.items() if field.startswith("there/")]
        return frozenset(
            student for report in reports if report["until"] > time.time() for student in report["students"]
        )


class RoomStore:
    """Rooms in a store. Every method raises StoreError.

    Args:
        store: where the rooms are.
    """

    def __init__(self, store: MemoryRooms | RedisStore):
        self.store = store

    def open(self) -> tuple[str, str] | None:
        """Create a room, and return its code and key; None if there are too many rooms."""
        if self.store.count_rooms() >= MAX_ROOMS:
            return None
        code, key = new_room_code(), new_teacher_key()
        self.store.create_room(code, {"key": hash_teacher_key(key).encode()}, TTL_S)
        return code, key

    def read(self, code: str) -> StoredRoom | None:
        """Return a room's contents; None if there is no room with the code."""
        fields = self.store.read_room(code)
        return StoredRoom(fields) if fields else None

    def renew(self, code: str):
        """Restart the room's expiry time, as the teacher is present."""
        self.store.renew_room(code, TTL_S)

    def set_teacher_state(self, code: str, teacher_state: TeacherState):
        """Store the teacher's state, and delete replies to an earlier question of the teacher."""
        if (stored := self.read(code)) is None:
            return
        self.store.write_field(code, "led", json.dumps(asdict(teacher_state)).encode())
        before, question = stored.teacher_state.question, teacher_state.question
        if before and (question is None or question["number"] != before["number"]):
            for student in stored.replies(own_question_key(before)):
                self.reply(code, own_question_key(before), student, None)

    def reply(self, code: str, question: str, student: str, reply: str | None):
        """Store a student's reply in place of the one before; None deletes it."""
        self.store.write_field(code, f"reply/{question}/{student}", None if reply is None else reply.encode())

    def has_space(self, code: str, question: str, student: str, max_people: int) -> bool:
        """Return whether a student's reply to a question may be stored."""
        stored = self.read(code)
        replies = stored.replies(question) if stored else {}
        return student in replies or (len(replies) < max_people and len(stored.fields) < MAX_REPLIES)

    def report_present(self, code: str, process: str, students: Collection[str]):
        """Store which students are present in a process."""
        report = {"until": time.time() + PRESENCE_TTL_S, "students": sorted(students)}
        self.store.write_field(code, f"there/{process}", json.dumps(report).encode())

    def close(self, code: str):
        """Delete the room and its contents."""
        self.store.delete_room(code)


def question_key(teacher_state: TeacherState) -> str:
    """Return the key of the question at the teacher's step."""
    return f"{teacher_state.lesson}:{teacher_state.step}"


# In this process: for each room, the clients that wait for a change of it


def new_process_name() -> str:
    """Return a random name for a process."""
    return secrets.token_hex(8)


GRACE_S = 8.0  # seconds between two requests of a student who is present
CLOSED_ANSWER: tuple[str, bytes] = "closed", b'{"closed":true}'


class LocalRoomCopy:
    """This process's copy of a room: the latest responses, and who is waiting; changed by one task only.

    Attributes:
        code: of the room.
        key_hash: of the teacher's key.
        teacher_state: the teacher's latest state.
        for_students, for_teacher: the response's tag, unique to its content, and the response as JSON; None before
            the first read.
        present_until: student -> until when, by `time.monotonic`, they count as present; infinite while they wait.
        students_everywhere: the students whom all processes report as present.
        to_read, changed: events: the room must be read again; it was, and the response changed.
        waiting: number of waiting requests, the teacher's included; `left_at`, time of the latest request or the end
            of the last wait.
    """

    def __init__(self, code: str, key_hash: str = ""):
        self.code, self.key_hash, self.teacher_state, self.closed = code, key_hash, TeacherState(), False
        self.for_students: tuple[str, bytes] | None = None
        self.for_teacher: tuple[str, bytes] | None = None
        self.present_until: dict[str, float] = {}
        self.students_everywhere: frozenset[str] = frozenset()
        self.to_read, self.changed = asyncio.Event(), asyncio.Event()
        self.reported_students: set[str] = set()  # to other processes, and when
        self.reported_at = self.teacher_asked_at = self.renewed_at = -float("inf")
        self.waiting, self.left_at = 0, time.monotonic()
        self.task: asyncio.Task | None = None
        self.to_read.set()

    def answer(self, is_teacher: bool) -> tuple[str, bytes] | None:
        """Return the latest response for the teacher or the students; None before the first."""
        if self.closed:
            return CLOSED_ANSWER
        return self.for_teacher if is_teacher else self.for_students

    def set_answers(self, for_students: Mapping[str, Any] | None, for_teacher: Mapping[str, Any] | None):
        """Set the responses, and notify waiting clients if one changed; None leaves a response as it is."""
        before = self.for_students, self.for_teacher
        if for_students is not None:
            self.for_students = add_etag(for_students)
        if for_teacher is not None:
            self.for_teacher = add_etag(for_teacher)
        if before != (self.for_students, self.for_teacher):
            self._notify()

    def close(self):
        """Close the room and wake all who wait."""
        self.closed = True
        self._notify()

    def _notify(self):
        self.changed.set()
        self.changed = asyncio.Event()

    async def wait_for_change(self, is_teacher: bool, seen_tag: str, seconds: float) -> bytes | None:
        """Return the response once its tag differs from `seen_tag`; None if it does not within `seconds`."""
        end = time.monotonic() + seconds
        while True:
            changed, answer = self.changed, self.answer(is_teacher)
            if answer and answer[0] != seen_tag:
                return answer[1]
            if (remaining_s := end - time.monotonic()) <= 0:
                return None
            with anyio.move_on_after(remaining_s):
                await changed.wait()

    def join(self, student: str):
        """Count a student as present until the connection ends."""
        if student not in self.present_until:
            self.to_read.set()
        self.present_until[student] = float("inf")

    def leave(self, student: str, at_once: bool = False):
        """Mark that a student no longer waits: present for `GRACE_S` more, or absent at once."""
        if at_once:
            self.present_until.pop(student, None)
            self.to_read.set()
        elif student in self.present_until:
            self.present_until[student] = time.monotonic() + GRACE_S

    def drop_absent(self):
        """Remove students whose last request is too long ago."""
        now = time.monotonic()
        self.present_until = {student: until for student, until in self.present_until.items() if until >= now}

    @property
    def people(self) -> set[str]:
        return {*self.present_until, *self.students_everywhere}


def limit_replies(replies: Mapping[str, Any]) -> dict[str, Any]:
    """Return the replies to a teacher's question with the most frequent ones only, as students get them."""
    return {**replies, "counts": dict(list(replies["counts"].items())[:MAX_SHOWN_REPLIES])}


def add_etag(answer: Mapping[str, Any]) -> tuple[str, bytes]:
    """Return a response's tag, equal for equal contents only, and the response with its tag as JSON."""
    text = json.dumps(answer, ensure_ascii=False, sort_keys=True)
    tag = hashlib.sha256(text.encode()).hexdigest()[:16]
    return tag, json.dumps({"tag": tag, **answer}, ensure_ascii=False).encode()


LOG = logging.getLogger(__name__)
MAX_THREADS = 4  # threads that ask the store
MIN_READ_INTERVAL_S = 0.1  # between two reads of a room after changes by this process
POLL_INTERVAL_S = 1.0  # between two reads for changes by other processes
LINGER_S = 30.0  # seconds for which a room without waiting clients is followed
RETRY_AFTER_S = 2.0  # seconds until a store that is gone is asked again
Result = TypeVar("Result")


class RoomWatcher:
    """Follows each room with waiting clients by a task that reads it once a second, and at once after a change here.

    A waiting client takes a connection and no thread. Belongs to one event loop; errors are those of the store.

    Args:
        store: shared by the processes.
    """

    def __init__(self, store: MemoryRooms | RedisStore):
        self.room_store, self.name = RoomStore(store), new_process_name()
        self._rooms: dict[str, LocalRoomCopy] = {}
        self._limiter: anyio.CapacityLimiter | None = None

    async def run_store_call(self, function: Callable[..., Result], *args: Any) -> Result:
        """Call a function of the store on another thread, and return its result."""
        if self._limiter is None:
            self._limiter = anyio.CapacityLimiter(MAX_THREADS)
        return await anyio.to_thread.run_sync(lambda: function(*args), limiter=self._limiter)

    def get_local(self, code: str) -> LocalRoomCopy | None:
        """Return a room that this process follows; None if it does not, or the room is closed."""
        room = self._rooms.get(code)
        return None if room is None or room.closed else room

    async def get_or_follow(self, code: str) -> LocalRoomCopy | None:
        """Return a room, and follow it from now on; None if there is no such room."""
        if room := self.get_local(code):
            room.left_at = time.monotonic()  # whoever asks is about to wait: it is not given up meanwhile
            return room
        if (stored := await self.run_store_call(self.room_store.read, code)) is None:
            return None
        if room := self.get_local(code):  # another came meanwhile
            return room
        room = self._rooms[code] = LocalRoomCopy(code, stored.key_hash)
        room.task = asyncio.create_task(self._follow(room))
        return room

    async def _follow(self, room: LocalRoomCopy):
        try:
            while not room.closed and (room.waiting or time.monotonic() - room.left_at < LINGER_S):
                with anyio.move_on_after(POLL_INTERVAL_S):  # `asyncio.wait_for` of Python 3.11 may lose a cancellation
                    await room.to_read.wait()
                room.to_read.clear()
                try:
                    await self._read(room)
                except Exception as error:  # whatever it is, nobody is to be told that the class is over
                    LOG.warning("a room could not be read: %s", error, exc_info=not isinstance(error, StoreError))
                    await asyncio.sleep(RETRY_AFTER_S)
                await asyncio.sleep(MIN_READ_INTERVAL_S)
        finally:
            room.close()
            if self._rooms.get(room.code) is room:
                del self._rooms[room.code]

    async def _read(self, room: LocalRoomCopy):
        room.drop_absent()
        present_here, now = set(room.present_until), time.monotonic()
        is_due = present_here != room.reported_students or now - room.reported_at > PRESENCE_TTL_S / 3
        has_teacher = now - room.teacher_asked_at < LINGER_S

        def read() -> StoredRoom | None:
            if is_due:
                self.room_store.report_present(room.code, self.name, present_here)
            return self.room_store.read(room.code)

        stored = await self.run_store_call(read)
        if stored is None:
            return room.close()
        if is_due:
            room.reported_students, room.reported_at = present_here, now
        room.teacher_state, room.students_everywhere = stored.teacher_state, stored.present_students
        teacher_state, question = room.teacher_state, room.teacher_state.question
        own_counts = stored.counts(own_question_key(question)) if question else {}
        own_replies = {"number": question["number"], "counts": own_counts} if question else None
        for_students = {
            "leads": teacher_state.leads,
            "state": teacher_state.state,
            "lesson": teacher_state.lesson,
            "held_from": teacher_state.held_from,
            "question": question,
            "own_replies": limit_replies(own_replies) if question and question["shows_replies"] else None,
        }
        for_teacher = {
            "people": len(room.people),
            "lesson": teacher_state.lesson,
            "step": teacher_state.step,
            "counts": stored.counts(question_key(teacher_state)) if teacher_state.lesson else {},
            "own_replies": own_replies,
        }
        return room.set_answers(for_students, for_teacher if has_teacher else None)
