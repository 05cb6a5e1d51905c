"""One of many who use the page, as its server sees them: the requests of a browser, without the browser."""

import asyncio
import json
import random
import time
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx

from explorer.state.selection import FULL_TABS
from explorer.web.http.visitors import HEADER

LINES = (
    "the fox owl found a little red box in the garden and asked her friend where it came from but nobody knew so they",
    "walked down to the river big old tree said hello smiled because sun was warm today Tom Lily wanted to play",
)
WORDS = tuple(word for line in LINES for word in line.split())
STOP_AFTER = 60.0  # seconds without an answer
BACK_EVERY = 0.5  # seconds between two looks for a server that is gone


@dataclass
class Told:
    """What visitors waited for, in seconds by what they did, and by that and who they are; and what went wrong."""

    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    of_each: dict[str, dict[int, list[float]]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(list)))
    errors: list[str] = field(default_factory=list)
    lost_connections: int = 0
    lost_texts: int = 0
    told_places: int = 0
    server_seconds: float = 0.0

    def waited(self, person: int, what: str, since: float):
        """A visitor waited for something since a time of `time.monotonic`."""
        seconds = time.monotonic() - since
        self.seconds[what].append(seconds)
        self.of_each[what][person].append(seconds)


class Gone(Exception):
    """Nobody answers: what the page takes for a lost connection."""


class Visitor:
    """Holds the page's state, as a browser does.

    Args:
        number: other numbers do other things.
        address: of the page, with a slash at its end; where it leads on, the visitor stays there.
        told: is written to.
        prompt: what to ask about; None for ever new ones.
    """

    def __init__(self, number: int, address: str, told: Told, prompt: str | None = None, tokens: int = 40):
        self.number, self.address, self.told, self.tokens = number, address, told, tokens
        self.chance, self.prompt = random.Random(number), prompt
        self.session = f"visitor-{number}"
        self.state: dict[str, Any] = {}
        self.version = ""
        self.began, self.done_at = time.monotonic(), 0.0  # seconds after it came to be when it was answered last

    async def stay(self, until: float):
        """Come, and do the same again and again until a time of `time.monotonic`."""
        named = {"timeout": STOP_AFTER, "follow_redirects": True, "headers": {HEADER: self.session}}
        async with httpx.AsyncClient(**named) as self.client:
            await self.come()
            await asyncio.sleep(self.chance.uniform(0, 3))
            while time.monotonic() < until:
                try:
                    await self.one_round(until)
                except Gone:
                    self.told.lost_connections += 1
                    await self.come_back()

    async def come(self):
        page = (await self.client.get(self.address)).raise_for_status()
        self.here = self.address = str(page.url)  # where it stays, as a page does
        config = json.JSONDecoder().raw_decode(page.text.partition("window.gradio_config = ")[2])[0]
        self.functions = {each["api_name"]: each["id"] for each in config["dependencies"]}
        (self.component,) = (each["id"] for each in config["components"] if each["props"].get("elem_id") == "state")
        self.checkpoint = self.state.get("checkpoint", "llama-fables")

    async def come_back(self):
        """As the page does by itself, with the state that it holds."""
        while True:
            await asyncio.sleep(BACK_EVERY)
            try:
                return await self.come()
            except (httpx.HTTPError, ValueError, KeyError):
                continue

    async def one_round(self, until: float):
        if "prompt" not in self.state or not self.state.get("unfinished"):
            await self.new_prompt()
            for _click in range(6):
                if time.monotonic() > until:
                    return
                await asyncio.sleep(self.chance.uniform(1, 3))
                await self.click()
        await self.write()

    async def new_prompt(self):
        text = self.prompt or " ".join(self.chance.choices(WORDS, k=self.chance.randint(18, 58)))
        began = time.monotonic()
        told = [told async for told in self.events("on_prompt", [text, self.checkpoint, self.state])]
        if told and (change := told[-1][0].get("change")):
            self.state = {**self.state, **change, "view": "attention", "lang": "en"}
            await self.answers("show", "prompt", began)

    async def click(self):
        tab = self.chance.choice(FULL_TABS)
        about = "pick" if tab == self.state["view"] else "view"
        place = self.chance.randrange(1, len(self.state["prompt"]))
        self.state |= {"view": tab, "query": place, "key": self.chance.randrange(place)}
        await self.answers(about, "click", time.monotonic())

    async def write(self):
        before = list(self.state["generated"])
        began, self.state["unfinished"] = time.monotonic(), True
        async for data in self.events("on_generate", [{**self.state, "max_new_tokens": self.tokens, "temperature": 1}]):
            if not (change := data and data[0].get("change")):
                continue
            if len(change["generated"]) > len(before):
                self.told.lost_texts += change["generated"][: len(before)] != before
                self.state |= change
        self.state["unfinished"] = False
        if len(self.state["generated"]) == len(before) and not data:
            return
        self.told.waited(self.number, "written", began)
        await self.answers("show", "after writing", time.monotonic())

    async def answers(self, about: str, name: str, began: float):
        """The three requests that a question takes; the first is what the visitor waits for."""
        for part in range(3):
            sent = {key: value for key, value in self.state.items() if key != "unfinished"}
            answer = await self.called("answer", [about, sent | {"version": self.version}, part])
            if part == 0:
                self.told.waited(self.number, name, began)
            if answer is None or not answer["more"]:
                break
            self.version = answer["version"]
            self.told.waited(self.number, f"{name}, all of it", began)
            self.done_at = time.monotonic() - self.began

    async def called(self, name: str, given: list[Any]) -> Any:
        place = {"component_id": self.component, "session_hash": "page", "fn_name": name, "data": given}
        answer = await self.sent("gradio_api/component_server/", place)
        return answer

    async def sent(self, path: str, body: Mapping[str, Any]) -> Any:
        try:
            answer = await self.client.post(self.here + path, json=body)
        except httpx.TransportError as error:
            raise Gone from error
        if answer.status_code in (502, 503):
            raise Gone
        if answer.status_code != 200:
            self.told.errors.append(f"{path} {answer.status_code}: {answer.text[:200]}")
            return None
        return answer.json()

    async def events(self, name: str, data: list[Any]):
        """What an event of Gradio's queue gives, one after another."""
        asked = {"fn_index": self.functions[name], "data": data, "session_hash": self.session}
        if await self.sent("gradio_api/queue/join", asked) is None:
            return
        shown: list[Any] = []
        try:
            place = {"session_hash": self.session}
            async with self.client.stream("GET", self.here + "gradio_api/queue/data", params=place) as lines:
                async for line in lines.aiter_lines():
                    told = json.loads(line[6:]) if line.startswith("data: ") else {}
                    self.told.told_places += told.get("msg") == "estimation" and told.get("rank") is not None
                    if told.get("msg") not in ("process_generating", "process_completed"):
                        continue
                    if not told["success"]:
                        self.told.errors.append(f"{name}: {told['output']}"[:200])
                        return
                    shown = seen(shown, told["output"].get("data", []))
                    yield shown
                    if told["msg"] == "process_completed":
                        return
        except httpx.TransportError as error:
            raise Gone from error
        raise Gone


def seen(before: list[Any], given: list[Any]) -> list[Any]:
    """What is shown after an event: what it gives, or changes it makes to what was shown before."""
    if not before or not any(is_changes(each) for each in given):
        return given or before
    return [changed(old, new) if is_changes(new) else old for old, new in zip(before, given, strict=True)]


def is_changes(given: Any) -> bool:
    return isinstance(given, list) and all(isinstance(each, list) and len(each) == 3 for each in given)


def changed(value: Any, changes: list[Any]) -> Any:
    """After Gradio's changes: what is done where, and with what."""
    value = json.loads(json.dumps(value))
    for do, path, new in changes:
        if not path:
            value = new if do == "replace" else value + new
            continue
        *way, last = path
        place = value
        for step in way:
            place = place[step]
        if do == "delete":
            del place[last]
        elif do == "append":
            place[last] += new
        elif do == "add" and isinstance(place, list):
            place.insert(last, new)
        else:
            place[last] = new
    return value
