"""A room as one process knows it: who waits here for what the teacher does, and what they are told."""

import asyncio
import hashlib
import json
import time
from collections.abc import Mapping
from typing import Any

from explorer.web.rooms.kept_rooms import Led

GRACE = 8.0  # seconds between two questions of somebody who is still there
GONE: tuple[str, bytes] = "closed", b'{"closed":true}'


class Here:
    """Of one room what was last read of the store, as answers; changed by one task alone (`rooms.py`).

    Attributes:
        code: of the room.
        led: what the teacher does.
        for_students, for_teacher: a tag that another answer has not, and the answer as JSON; None before it is known.
        staying: student -> until when, by `time.monotonic`, they are taken to be there; endless while they wait here.
        told: the students whom all processes told to be there.
        to_read, changed: events: something of it is to be read anew; it was, and something else is answered.
        waiting: how many wait here, the teacher among them; `left_at`, when the last of them left, or somebody asked.
    """

    def __init__(self, code: str):
        self.code, self.led, self.closed = code, Led(), False
        self.for_students: tuple[str, bytes] | None = None
        self.for_teacher: tuple[str, bytes] | None = None
        self.staying: dict[str, float] = {}
        self.told: frozenset[str] = frozenset()
        self.to_read, self.changed = asyncio.Event(), asyncio.Event()
        self.said: set[str] = set()  # to other processes, and when
        self.said_at = self.teacher_asked_at = self.renewed_at = -float("inf")
        self.waiting, self.left_at = 0, time.monotonic()
        self.task: asyncio.Task | None = None
        self.to_read.set()

    def answer(self, is_teacher: bool) -> tuple[str, bytes] | None:
        if self.closed:
            return GONE
        return self.for_teacher if is_teacher else self.for_students

    def show(self, for_students: Mapping[str, Any] | None, for_teacher: Mapping[str, Any] | None):
        """What is answered from now on, where that is something else; None where it stays."""
        before = self.for_students, self.for_teacher
        if for_students is not None:
            self.for_students = tagged(for_students)
        if for_teacher is not None:
            self.for_teacher = tagged(for_teacher)
        if before != (self.for_students, self.for_teacher):
            self._tell()

    def close(self):
        self.closed = True
        self._tell()

    def _tell(self):
        self.changed.set()
        self.changed = asyncio.Event()

    async def next(self, is_teacher: bool, seen: str, seconds: float) -> bytes | None:
        """An answer that is another than the one that was seen; None where there is none within so many seconds."""
        end = time.monotonic() + seconds
        while True:
            changed, answer = self.changed, self.answer(is_teacher)
            if answer and answer[0] != seen:
                return answer[1]
            if (left := end - time.monotonic()) <= 0:
                return None
            try:
                await asyncio.wait_for(changed.wait(), left)
            except asyncio.TimeoutError:
                return None

    def come(self, student: str):
        if student not in self.staying:
            self.to_read.set()
        self.staying[student] = float("inf")

    def go(self, student: str, at_once: bool = False):
        """Somebody no longer waits: perhaps they ask again, or else they are gone."""
        if at_once:
            self.staying.pop(student, None)
            self.to_read.set()
        elif student in self.staying:
            self.staying[student] = time.monotonic() + GRACE

    def forget_gone(self):
        """Students who no longer ask."""
        now = time.monotonic()
        self.staying = {student: until for student, until in self.staying.items() if until >= now}

    @property
    def people(self) -> set[str]:
        return {*self.staying, *self.told}


def tagged(answer: Mapping[str, Any]) -> tuple[str, bytes]:
    """With a tag in it that an equal answer has, too, and no other."""
    text = json.dumps(answer, ensure_ascii=False, sort_keys=True)
    tag = hashlib.sha256(text.encode()).hexdigest()[:16]
    return tag, json.dumps({"tag": tag, **answer}, ensure_ascii=False).encode()
