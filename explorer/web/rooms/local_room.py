"""This process's copy of a room: who waits here, and the responses they get."""

import asyncio
import hashlib
import json
import time
from collections.abc import Mapping
from typing import Any

from explorer.web.rooms.room_store import TeacherState

GRACE_S = 8.0  # seconds between two requests of a student who is present
CLOSED_ANSWER: tuple[str, bytes] = "closed", b'{"closed":true}'


class LocalRoom:
    """This process's copy of a room: the latest responses, and who is waiting; changed by one task only (`hub.py`).

    Attributes:
        code: of the room.
        teacher_state: the teacher's latest state.
        for_students, for_teacher: the response's tag, unique to its content, and the response as JSON; None before
            the first read.
        present_until: student -> until when, by `time.monotonic`, they count as present; infinite while they wait.
        students_everywhere: the students whom all processes report as present.
        to_read, changed: events: the room must be read again; it was, and the response changed.
        waiting: number of waiting requests, the teacher's included; `left_at`, time of the latest request or the end
            of the last wait.
    """

    def __init__(self, code: str):
        self.code, self.teacher_state, self.closed = code, TeacherState(), False
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
            try:
                await asyncio.wait_for(changed.wait(), remaining_s)
            except asyncio.TimeoutError:
                return None

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


def add_etag(answer: Mapping[str, Any]) -> tuple[str, bytes]:
    """Return a response's tag, equal for equal contents only, and the response with its tag as JSON."""
    text = json.dumps(answer, ensure_ascii=False, sort_keys=True)
    tag = hashlib.sha256(text.encode()).hexdigest()[:16]
    return tag, json.dumps({"tag": tag, **answer}, ensure_ascii=False).encode()
