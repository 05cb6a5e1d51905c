"""Delay between teacher and class: `python -m tests.benchmarks.room --people 60 --seconds 60`, on Linux.

Students wait in one room as pages do, without browsers, and share the machine's cores with the server. Every five
seconds the teacher moves, each sixth time to another text; a student has followed with the first answer about the
new state. Then a step of a lesson asks all of them, who reply within two seconds: a reply is counted once the
teacher gets a sum with it.
"""

import argparse
import asyncio
import os
import random
import secrets
import time
from typing import Any

import httpx

from tests.benchmarks.app_server import serve_app
from tests.benchmarks.classroom import SHARED_PROMPT, cpu_seconds, print_report
from tests.benchmarks.simulated_user import REQUEST_TIMEOUT_S, Measurements, SimulatedUser

MOVE_INTERVAL_S, MOVES_PER_TEXT = 5.0, 6
QUESTION_STEP = {"lesson": "tokens-and-merges", "step": 4}
TABS = "attention", "residual", "tokens", "overview", "prediction"


class RoomMember(SimulatedUser):
    async def __aenter__(self):
        self.client = httpx.AsyncClient(timeout=REQUEST_TIMEOUT_S, follow_redirects=True)
        await self.load_page()
        return self

    async def __aexit__(self, *error: object):
        await self.client.aclose()

    async def call_room(self, name: str, **fields: Any) -> dict[str, Any]:
        return await self.post(f"rooms/{name}", fields) or {}


class RoomClass:
    """A teacher's class in one room, and its measurements."""

    def __init__(self, address: str, people: int, measurements: Measurements):
        self.address, self.measurements, self.moved_at = address, measurements, 0.0
        self.teacher, self.chance = RoomMember(-1, address, measurements, SHARED_PROMPT), random.Random(0)
        self.students = [RoomMember(number, address, measurements, SHARED_PROMPT) for number in range(people)]
        self.number, self.sent_at, self.counted = 0, [], 0

    async def run(self, seconds: float):
        async with self.teacher:
            await self.teacher.new_prompt()
            self.key = await self.teacher.call_room("open")
            await self.lead()
            waiting = [asyncio.create_task(self.follow(student)) for student in self.students]
            counting = asyncio.create_task(self.count())
            await asyncio.sleep(5 + len(self.students) / 10)  # until all have joined
            self.measurements.seconds.clear()
            self.measurements.seconds_by_person.clear()
            for move in range(1, int(seconds / MOVE_INTERVAL_S) + 1):
                await self.move(move)
                await asyncio.sleep(MOVE_INTERVAL_S)
            await self.ask()
            await asyncio.sleep(MOVE_INTERVAL_S)
            for task in (counting, *waiting):
                task.cancel()
            results = await asyncio.gather(counting, *waiting, return_exceptions=True)
            errors = [error for error in results if not isinstance(error, asyncio.CancelledError)]
            self.measurements.errors += [f"{type(error).__name__}: {error}" for error in errors]
            await self.teacher.call_room("close", **self.key)

    async def move(self, number: int):
        if number % MOVES_PER_TEXT == 0:
            self.teacher.prompt = f"{SHARED_PROMPT} again" if self.teacher.prompt == SHARED_PROMPT else SHARED_PROMPT
            await self.teacher.new_prompt()
        else:
            position = self.chance.randrange(1, len(self.teacher.state["prompt"]))
            self.teacher.state |= {"view": TABS[number % len(TABS)], "query": position, "key": position - 1}
        await self.lead()

    async def lead(self, **more: Any):
        self.number, self.moved_at = self.number + 1, time.monotonic()
        state = self.teacher.state | {"find": str(self.number)} | more
        lesson_fields = {"lesson": more.get("lesson", ""), "step": more.get("step", 0)}
        await self.teacher.call_room("lead", **self.key, leads=True, state=state, **lesson_fields)

    async def ask(self):
        await self.lead(**QUESTION_STEP)
        await asyncio.sleep(1)
        await asyncio.gather(*(self.reply(student) for student in self.students))

    async def reply(self, student: RoomMember):
        await asyncio.sleep(self.chance.uniform(0, 2))
        self.sent_at.append(time.monotonic())
        await student.call_room("reply", **student.who, **QUESTION_STEP, reply=str(self.chance.randint(1, 4)))

    async def follow(self, student: RoomMember):
        await asyncio.sleep(self.chance.uniform(0, 3))
        async with student:
            student.who, tag = {"code": self.key["code"], "student": secrets.token_hex(16)}, ""
            await student.new_prompt()
            while True:
                message = await student.call_room("next", **student.who, seen=tag)
                tag = message.get("tag", "")
                if state := message.get("state"):
                    is_now, began = state["find"] == str(self.number), self.moved_at
                    self.measurements.record_wait(student.number, "told of a move", began)
                    is_other_text = state["prompt"] != student.state["prompt"]
                    scope, action = ("show", {"kind": "follow"}) if is_other_text else ("view", None)
                    student.state |= state
                    await student.request_answer(scope, "there" if is_now else "there late", began, action)

    async def count(self):
        tag = ""
        while True:
            message = await self.teacher.call_room("next", **self.key, seen=tag)
            tag, count = message.get("tag", ""), sum(message.get("counts", {}).values())
            for sent in sorted(self.sent_at)[self.counted : count]:
                self.measurements.record_wait(-1, "counted", sent)
            self.counted = max(self.counted, count)


async def run_class(address: str, people: int, seconds: float, server: int | None) -> tuple[Measurements, int]:
    measurements, before = Measurements(), cpu_seconds(server) if server else 0.0
    room_class = RoomClass(address, people, measurements)
    await room_class.run(seconds)
    measurements.server_seconds = cpu_seconds(server) - before if server else 0.0
    return measurements, room_class.counted


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--people", type=int, default=60)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--app", nargs="*", default=[], help="arguments of app.py, without the dashes: public")
    options = parser.parse_args()
    with serve_app(options.app) as (address, process):
        measurements, counted = asyncio.run(run_class(address, options.people, options.seconds, process))
    print_report(measurements)
    print(
        f"{counted} replies of {options.people} students counted; "
        f"the server computed for {measurements.server_seconds:.1f} s"
    )
    print("load over one, five and fifteen minutes:", *(f"{load:.1f}" for load in os.getloadavg()))


if __name__ == "__main__":
    main()
