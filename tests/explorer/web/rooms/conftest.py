"""Clients of rooms: teachers and students of one process, or of several that share a store."""

import asyncio
import json
import secrets
from collections.abc import Callable, Coroutine
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from explorer.lessons.lesson import LessonLibrary
from explorer.state.generation_settings import NO_LIMITS, UserLimits
from explorer.web import rooms
from explorer.web.browser_api.lesson_endpoints import ELEMENT_IDS
from explorer.web.key_value_stores import MemoryRooms, RedisStore
from explorer.web.room_routes import RoomRoutes

SHELF = LessonLibrary(None, ELEMENT_IDS)
STUDENT_NAME = "0" * 32
STATE = {"checkpoint": "tiny", "prompt": [1, 2, 3], "view": "attention", "query": 2, "lesson": "", "step": 0}


@pytest.fixture(autouse=True)
def short_read_interval(monkeypatch):
    """Read a room again after 10 ms, without waiting for further changes."""
    monkeypatch.setattr(rooms, "MIN_READ_INTERVAL_S", 0.01)


@pytest.fixture
def store(address):
    return RedisStore(address) if address else MemoryRooms()


@pytest.fixture
def process() -> RoomRoutes:
    return make_process(MemoryRooms())


def make_process(store, limits: UserLimits = NO_LIMITS) -> RoomRoutes:
    """Return a process that serves rooms from a store."""
    return RoomRoutes(store, SHELF, limits)


class RoomClient:
    """Client of a process's rooms."""

    def __init__(self, process: RoomRoutes, host: str = "10.0.0.1"):
        transport = httpx.ASGITransport(FastAPI(routes=process.routes), client=(host, 1234))
        self.client = httpx.AsyncClient(transport=transport, base_url="http://here", timeout=30)

    async def answer(self, name: str, **payload: Any) -> httpx.Response:
        return await self.client.post(f"/rooms/{name}", json=payload)

    async def request_json(self, name: str, **payload: Any) -> dict[str, Any]:
        answer = await self.answer(name, **payload)
        assert answer.status_code == 200, answer.text
        return answer.json()


class Student(RoomClient):
    def __init__(self, process: RoomRoutes, code: str, **options: Any):
        super().__init__(process, **options)
        self.credentials, self.tag = {"code": code, "student": secrets.token_hex(16)}, ""

    async def next(self) -> dict[str, Any]:
        """Wait for the next change and return it."""
        while True:
            update = await self.request_json("next", **self.credentials, seen=self.tag)
            self.tag = update.get("tag", "")
            if len(update) > 1 or "closed" in update:
                return update

    async def until(self, condition: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        while True:
            update = await asyncio.wait_for(self.next(), 15)
            if condition(update):
                return update

    async def reply(self, reply: str | None, lesson: str = "order", step: int = 2) -> httpx.Response:
        return await self.answer("reply", **self.credentials, lesson=lesson, step=step, reply=reply)


class Teacher(Student):
    @classmethod
    async def open_room(cls, process: RoomRoutes) -> "Teacher":
        teacher = cls(process, "")
        teacher.credentials = await teacher.request_json("open")
        return teacher

    @property
    def code(self) -> str:
        return self.credentials["code"]

    async def lead(self, leads: bool = True, question: dict[str, Any] | None = None, held_from: int = 0, **state: Any):
        state = STATE | state
        lesson_fields = {"leads": leads, "lesson": state["lesson"], "step": state["step"], "question": question}
        lesson_fields["held_from"] = held_from
        await self.request_json("lead", **self.credentials, **lesson_fields, state=state)


def assert_refused(answer: httpx.Response, status: int, text: str = ""):
    assert answer.status_code == status and text in answer.json()["detail"], answer.text
    assert answer.headers["content-type"] == "application/json"


def run_in_event_loop(story: Coroutine[Any, Any, None]):
    """Run a coroutine in an event loop of its own, for at most a minute."""

    async def run_with_timeout():
        await asyncio.wait_for(story, 60)

    asyncio.run(run_with_timeout())


def parse_json(answer: bytes) -> dict[str, Any]:
    return json.loads(answer)
