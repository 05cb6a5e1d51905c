"""How soon a class is where its teacher is: `python -m tests.benchmarks.room --people 60 --seconds 60`, on Linux.

Students wait in one room as pages do, without browsers, and share the machine's cores with the server. Every five
seconds the teacher goes elsewhere, each sixth time to another text; a student is there with the first answer about the
new state. Then a step of a lesson asks all of them, who reply within two seconds: a reply is counted when the teacher
is told a sum with it.
"""

import argparse
import asyncio
import os
import random
import secrets
import time
from typing import Any

import httpx

from tests.benchmarks.classroom import SAME, computed, tell
from tests.benchmarks.served import served
from tests.benchmarks.visitor import STOP_AFTER, Told, Visitor

EVERY, ANOTHER_TEXT = 5.0, 6
ASKED = {"lesson": "tokens-and-merges", "step": 4}
TABS = "attention", "residual", "tokens", "overview", "prediction"


class Person(Visitor):
    async def __aenter__(self):
        self.client = httpx.AsyncClient(timeout=STOP_AFTER, follow_redirects=True)
        await self.come()
        return self

    async def __aexit__(self, *error: object):
        await self.client.aclose()

    async def room(self, name: str, **given: Any) -> dict[str, Any]:
        return await self.sent(f"rooms/{name}", given) or {}


class Class:
    """One teacher's, and what the others wait for."""

    def __init__(self, address: str, people: int, told: Told):
        self.address, self.told, self.moved_at = address, told, 0.0
        self.teacher, self.chance = Person(-1, address, told, SAME), random.Random(0)
        self.students = [Person(number, address, told, SAME) for number in range(people)]
        self.number, self.sent_at, self.counted = 0, [], 0

    async def goes_on(self, seconds: float):
        async with self.teacher:
            await self.teacher.new_prompt()
            self.key = await self.teacher.room("open")
            await self.lead()
            waiting = [asyncio.create_task(self.follow(student)) for student in self.students]
            counting = asyncio.create_task(self.count())
            await asyncio.sleep(5 + len(self.students) / 10)  # until all have come
            self.told.seconds.clear()
            self.told.of_each.clear()
            for move in range(1, int(seconds / EVERY) + 1):
                await self.move(move)
                await asyncio.sleep(EVERY)
            await self.ask()
            await asyncio.sleep(EVERY)
            for task in (counting, *waiting):
                task.cancel()
            left = await asyncio.gather(counting, *waiting, return_exceptions=True)
            errors = [error for error in left if not isinstance(error, asyncio.CancelledError)]
            self.told.errors += [f"{type(error).__name__}: {error}" for error in errors]
            await self.teacher.room("close", **self.key)

    async def move(self, number: int):
        if number % ANOTHER_TEXT == 0:
            self.teacher.prompt = f"{SAME} again" if self.teacher.prompt == SAME else SAME
            await self.teacher.new_prompt()
        else:
            place = self.chance.randrange(1, len(self.teacher.state["prompt"]))
            self.teacher.state |= {"view": TABS[number % len(TABS)], "query": place, "key": place - 1}
        await self.lead()

    async def lead(self, **more: Any):
        self.number, self.moved_at = self.number + 1, time.monotonic()
        state = self.teacher.state | {"find": str(self.number)} | more
        place = {"lesson": more.get("lesson", ""), "step": more.get("step", 0)}
        await self.teacher.room("lead", **self.key, leads=True, state=state, **place)

    async def ask(self):
        await self.lead(**ASKED)
        await asyncio.sleep(1)
        await asyncio.gather(*(self.reply(student) for student in self.students))

    async def reply(self, student: Person):
        await asyncio.sleep(self.chance.uniform(0, 2))
        self.sent_at.append(time.monotonic())
        await student.room("reply", **student.who, **ASKED, reply=str(self.chance.randint(1, 4)))

    async def follow(self, student: Person):
        await asyncio.sleep(self.chance.uniform(0, 3))
        async with student:
            student.who, tag = {"code": self.key["code"], "student": secrets.token_hex(16)}, ""
            await student.new_prompt()
            while True:
                told = await student.room("next", **student.who, seen=tag)
                tag = told.get("tag", "")
                if state := told.get("state"):
                    is_now, began = state["find"] == str(self.number), self.moved_at
                    self.told.waited(student.number, "told of a move", began)
                    about = "show" if state["prompt"] != student.state["prompt"] else "view"
                    student.state |= state
                    answers = student.answers(about, "there" if is_now else "there late", began)
                    await asyncio.gather(answers, *([self.widgets(student, began)] if about == "show" else ()))

    async def widgets(self, student: Person, began: float):
        """Gradio's own, such as the prompt's box, follow another text."""
        async for _shown in student.events("on_follow", [student.state]):
            self.told.waited(student.number, "Gradio's widgets there", began)

    async def count(self):
        tag = ""
        while True:
            told = await self.teacher.room("next", **self.key, seen=tag)
            tag, count = told.get("tag", ""), sum(told.get("counts", {}).values())
            for sent in sorted(self.sent_at)[self.counted : count]:
                self.told.waited(-1, "counted", sent)
            self.counted = max(self.counted, count)


async def led(address: str, people: int, seconds: float, server: int | None) -> tuple[Told, int]:
    told, before = Told(), computed(server) if server else 0.0
    one = Class(address, people, told)
    await one.goes_on(seconds)
    told.server_seconds = computed(server) - before if server else 0.0
    return told, one.counted


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--people", type=int, default=60)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--app", nargs="*", default=[], help="arguments of app.py, without the dashes: workers=2")
    options = parser.parse_args()
    with served(options.app) as (address, process):
        told, counted = asyncio.run(led(address, options.people, options.seconds, process))
    tell(told)
    print(
        f"{counted} replies of {options.people} students counted; the server computed for {told.server_seconds:.1f} s"
    )
    print("load over one, five and fifteen minutes:", *(f"{load:.1f}" for load in os.getloadavg()))


if __name__ == "__main__":
    main()
