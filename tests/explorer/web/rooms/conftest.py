"""Rooms as several people ask for them, of one process or of several that share a store."""

import asyncio
import json
import secrets
from collections.abc import Callable, Coroutine
from typing import Any

import httpx
import pytest

from explorer.lessons.course.shelf import Shelf
from explorer.state.limits import NO_LIMITS, VisitorLimits
from explorer.web.answers.lesson_answers import PICTURES
from explorer.web.rooms import rooms
from explorer.web.rooms.routes import RoomRoutes
from explorer.web.shared.in_memory import InMemory
from explorer.web.shared.opened import store_at
from tests.exhaustive import first_of

from ..shared.conftest import address_of, redis_server  # noqa: F401

SHELF = Shelf(None, PICTURES)
A_STUDENT = "0" * 32
STATE = {"checkpoint": "tiny", "prompt": [1, 2, 3], "view": "attention", "query": 2, "lesson": "", "step": 0}


@pytest.fixture(autouse=True)
def reads_often(monkeypatch):
    """Nobody here waits until others may have changed more."""
    monkeypatch.setattr(rooms, "SOON", 0.01)


@pytest.fixture(params=first_of(["file", "memory", "redis"]))
def address(request, tmp_path) -> str:
    """Of a store, of each kind."""
    return address_of(request.param, request, tmp_path)


@pytest.fixture
def store(address):
    return store_at(address, "rooms")


@pytest.fixture
def process() -> RoomRoutes:
    return served(InMemory())


def served(store, limits: VisitorLimits = NO_LIMITS) -> RoomRoutes:
    """A process that serves rooms."""
    return RoomRoutes(store, SHELF, limits)


class Asking:
    """Somebody who asks a process."""

    def __init__(self, process: RoomRoutes, host: str = "10.0.0.1"):
        transport = httpx.ASGITransport(process, client=(host, 1234))
        self.client = httpx.AsyncClient(transport=transport, base_url="http://here", timeout=30)

    async def answer(self, name: str, **given: Any) -> httpx.Response:
        return await self.client.post(f"/rooms/{name}", json=given)

    async def told(self, name: str, **given: Any) -> dict[str, Any]:
        answer = await self.answer(name, **given)
        assert answer.status_code == 200, answer.text
        return answer.json()


class Student(Asking):
    def __init__(self, process: RoomRoutes, code: str, **options: Any):
        super().__init__(process, **options)
        self.who, self.tag = {"code": code, "student": secrets.token_hex(16)}, ""

    async def next(self) -> dict[str, Any]:
        """What is new."""
        while True:
            told = await self.told("next", **self.who, seen=self.tag)
            self.tag = told.get("tag", "")
            if len(told) > 1 or "closed" in told:
                return told

    async def until(self, holds: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        while True:
            told = await asyncio.wait_for(self.next(), 15)
            if holds(told):
                return told

    async def reply(self, reply: str | None, lesson: str = "order", step: int = 2) -> httpx.Response:
        return await self.answer("reply", **self.who, lesson=lesson, step=step, reply=reply)


class Teacher(Student):
    @classmethod
    async def opens(cls, process: RoomRoutes) -> "Teacher":
        teacher = cls(process, "")
        teacher.who = await teacher.told("open")
        return teacher

    @property
    def code(self) -> str:
        return self.who["code"]

    async def lead(self, leads: bool = True, **state: Any):
        state = STATE | state
        given = {"leads": leads, "lesson": state["lesson"], "step": state["step"]}
        await self.told("lead", **self.who, **given, state=state)


def refused(answer: httpx.Response, status: int, words: str = ""):
    assert answer.status_code == status and words in answer.json()["detail"], answer.text
    assert answer.headers["content-type"] == "application/json"


def in_one_loop(story: Coroutine[Any, Any, None]):
    """Tell a story, and nobody waits any more at its end."""

    async def told():
        await asyncio.wait_for(story, 60)

    asyncio.run(told())


def as_object(answer: bytes) -> dict[str, Any]:
    return json.loads(answer)
