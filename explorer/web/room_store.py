"""Class rooms: their codes and keys, a teacher's own question, and their storage in the shared store."""

import hashlib
import hmac
import json
import re
import secrets
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from typing import Annotated, Any

from pydantic import Field
from typing_extensions import TypedDict

from explorer.state.selection import parse_index
from explorer.web.key_value_stores import KeyValueStore
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


def matches_key_hash(key: object, expected: str) -> bool:
    """Return whether a key has this hash; compares in constant time."""
    return isinstance(key, str) and hmac.compare_digest(hash_teacher_key(key), expected)


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
PRESENCE_TTL_S = 60.0  # expiry of a process's report of its students
MAX_ROOMS, MAX_ROOM_BYTES = 200, 32 << 20
CHANNEL = "rooms"


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


class RoomStore:
    """Rooms in a store.

    Each process and each student have keys of their own, so that none overwrites another's. Of a student only the
    last reply to each question is stored, under a random name. Every method raises StoreError.

    Args:
        store: where the rooms are.
    """

    def __init__(self, store: KeyValueStore):
        self.store = store

    def open(self) -> tuple[str, str] | None:
        """Create a room, and return its code and key; None if there are too many rooms."""
        rooms = {name.partition("/")[2] for name in self.store.keys("room/")}
        self._forget_all_but(rooms)
        if len(rooms) >= MAX_ROOMS:
            return None
        code, key = new_room_code(), new_teacher_key()
        self.store.put(f"room/{code}", hash_teacher_key(key).encode(), TTL_S)
        return code, key

    def exists(self, code: str) -> bool:
        """Return whether there is a room with the code."""
        return self.store.get(f"room/{code}") is not None

    def is_teacher(self, code: str, key: object) -> bool:
        """Return whether a key is that of the room's teacher."""
        stored_hash = self.store.get(f"room/{code}")
        return stored_hash is not None and matches_key_hash(key, stored_hash.decode())

    def renew(self, code: str):
        """Restart the room's expiry time, as the teacher is present."""
        for name in (f"room/{code}", f"{code}/led"):
            if (value := self.store.get(name)) is not None:
                self.store.put(name, value, TTL_S)

    def set_teacher_state(self, code: str, teacher_state: TeacherState):
        """Store the teacher's state, delete replies to an earlier question of the teacher, and tell all processes."""
        before, question = self.get_teacher_state(code).question, teacher_state.question
        self._put(code, "led", json.dumps(asdict(teacher_state)).encode(), TTL_S)
        if before and (question is None or question["number"] != before["number"]):
            for key in self.store.keys(f"{code}/reply/{own_question_key(before)}/"):
                self.store.drop(key)
        self.publish_change(code)

    def get_teacher_state(self, code: str) -> TeacherState:
        """Return the teacher's state; the default if none is stored."""
        value = self.store.get(f"{code}/led")
        return TeacherState(**json.loads(value)) if value else TeacherState()

    def reply(self, code: str, question: str, student: str, reply: str | None):
        """Store a student's reply in place of the one before; None deletes it."""
        name = f"reply/{question}/{student}"
        if reply is None:
            self.store.drop(f"{code}/{name}")
        else:
            self._put(code, name, reply.encode(), TTL_S)
        self.publish_change(code)

    def students_with_reply(self, code: str, question: str) -> list[str]:
        """Return the students who have replied."""
        prefix = f"{code}/reply/{question}/"
        return [key.removeprefix(prefix) for key in self.store.keys(prefix)]

    def counts(self, code: str, question: str) -> dict[str, int]:
        """Return the number of students by reply, the most frequent first."""
        replies = (self.store.get(key) for key in self.store.keys(f"{code}/reply/{question}/"))
        return dict(Counter(sorted(reply.decode() for reply in replies if reply is not None)).most_common())

    def report_present(self, code: str, process: str, students: Collection[str]):
        """Store which students are present in a process."""
        self._put(code, f"there/{process}", json.dumps(sorted(students)).encode(), PRESENCE_TTL_S)

    def present_students(self, code: str) -> set[str]:
        """Return the students who are present in any process."""
        payloads = (self.store.get(key) for key in self.store.keys(f"{code}/there/"))
        return {student for payload in payloads if payload for student in json.loads(payload)}

    def close(self, code: str):
        """Delete the room and its contents."""
        self.store.drop(f"room/{code}")  # first: nothing is put there any more
        self.forget(code)
        self.publish_change(code)

    def forget(self, code: str):
        """Delete the contents of a room that no longer exists."""
        for key in self.store.keys(f"{code}/"):
            self.store.drop(key)

    def publish_change(self, code: str):
        """Notify every process that the room has changed."""
        self.store.publish(CHANNEL, code.encode())

    def _put(self, code: str, name: str, value: bytes, seconds: float):
        if not self.exists(code):
            return
        self.store.put(f"{code}/{name}", value, seconds)
        if not self.exists(code):  # it was closed meanwhile
            self.store.drop(f"{code}/{name}")

    def _forget_all_but(self, rooms: Collection[str]):
        """Delete the contents of rooms that expired without being closed."""
        for key in self.store.keys(""):
            code = key.partition("/")[0]
            if code != "room" and code not in rooms:
                self.store.drop(key)


def question_key(teacher_state: TeacherState) -> str:
    """Return the key of the question at the teacher's step."""
    return f"{teacher_state.lesson}:{teacher_state.step}"
