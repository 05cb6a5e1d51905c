"""Simulated user: sends the requests of a browser, without the browser."""

import asyncio
import json
import random
import time
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx

from explorer.views import FULL
from explorer.web.rate_limits import CLIENT_HEADER

SENTENCES = (
    "the fox owl found a little red box in the garden and asked her friend where it came from but nobody knew so they",
    "walked down to the river big old tree said hello smiled because sun was warm today Tom Lily wanted to play",
)
WORDS = tuple(word for line in SENTENCES for word in line.split())
REQUEST_TIMEOUT_S = 60.0  # seconds without an answer
RECONNECT_INTERVAL_S = 0.5  # seconds between attempts to reconnect


@dataclass
class Measurements:
    """Waiting times in seconds by kind of request, and by kind and person; and errors."""

    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    seconds_by_person: dict[str, dict[int, list[float]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(list))
    )
    errors: list[str] = field(default_factory=list)
    lost_connections: int = 0
    lost_texts: int = 0
    num_queue_messages: int = 0
    server_seconds: float = 0.0

    def record_wait(self, person: int, label: str, since: float):
        """Record that a person waited for something since a time of `time.monotonic`."""
        seconds = time.monotonic() - since
        self.seconds[label].append(seconds)
        self.seconds_by_person[label][person].append(seconds)


class ServerUnreachableError(Exception):
    """The server does not answer, which the page treats as a lost connection."""


class SimulatedUser:
    """Simulated user, with the page's state.

    Args:
        number: seed of the user's actions.
        address: URL of the page, with a slash at its end; a redirect replaces it.
        measurements: results are added to it.
        prompt: the prompt to use; None for a new random one each time.
        tokens: how many to generate at a time.
    """

    def __init__(
        self, number: int, address: str, measurements: Measurements, prompt: str | None = None, tokens: int = 40
    ):
        self.number, self.address, self.measurements, self.tokens = number, address, measurements, tokens
        self.chance, self.prompt = random.Random(number), prompt
        self.session = f"visitor-{number}"
        self.state: dict[str, Any] = {}
        self.version = ""
        self.began, self.done_at = time.monotonic(), 0.0  # `done_at`: seconds from `began` to the last answer

    async def stay(self, until: float):
        """Load the page, and act until a time of `time.monotonic`."""
        options = {"timeout": REQUEST_TIMEOUT_S, "follow_redirects": True, "headers": {CLIENT_HEADER: self.session}}
        async with httpx.AsyncClient(**options) as self.client:
            await self.load_page()
            await asyncio.sleep(self.chance.uniform(0, 3))
            while time.monotonic() < until:
                try:
                    await self.run_round(until)
                except ServerUnreachableError:
                    self.measurements.lost_connections += 1
                    await self.reconnect()

    async def load_page(self):
        page = (await self.client.get(self.address)).raise_for_status()
        self.base_url = self.address = str(page.url)  # later requests go to the redirected URL, like the page's
        config = json.JSONDecoder().raw_decode(page.text.partition("window.gradio_config = ")[2])[0]
        self.functions = {entry["api_name"]: entry["id"] for entry in config["dependencies"]}
        self.checkpoint = self.state.get("checkpoint", "llama-fables")

    async def reconnect(self):
        """Reload the page with the current state until the server answers, as the page does."""
        while True:
            await asyncio.sleep(RECONNECT_INTERVAL_S)
            try:
                return await self.load_page()
            except (httpx.HTTPError, ValueError, KeyError):
                continue

    async def run_round(self, until: float):
        if "prompt" not in self.state or not self.state.get("unfinished"):
            await self.new_prompt()
            for _click in range(6):
                if time.monotonic() > until:
                    return
                await asyncio.sleep(self.chance.uniform(1, 3))
                await self.click()
        await self.generate()

    async def new_prompt(self):
        text = self.prompt or " ".join(self.chance.choices(WORDS, k=self.chance.randint(18, 58)))
        action = {"kind": "prompt", "text": text, "checkpoint": self.checkpoint}
        self.state |= {"view": "attention", "lang": "en"}
        await self.request_answer("show", "prompt", time.monotonic(), action)

    async def click(self):
        tab = self.chance.choice(FULL).name
        scope = "pick" if tab == self.state["view"] else "view"
        position = self.chance.randrange(1, len(self.state["prompt"]))
        self.state |= {"view": tab, "query": position, "key": self.chance.randrange(position)}
        await self.request_answer(scope, "click", time.monotonic())

    async def generate(self):
        before = list(self.state["generated"])
        began, self.state["unfinished"] = time.monotonic(), True
        async for data in self.stream_event(
            "page_generate", [{**self.state, "max_new_tokens": self.tokens, "temperature": 1}]
        ):
            if not (change := data and data[0].get("change")):
                continue
            if len(change["generated"]) > len(before):
                self.measurements.lost_texts += change["generated"][: len(before)] != before
                self.state |= change
        self.state["unfinished"] = False
        if len(self.state["generated"]) == len(before) and not data:
            return
        self.measurements.record_wait(self.number, "written", began)
        await self.request_answer("show", "after writing", time.monotonic())

    async def request_answer(self, scope: str, name: str, began: float, action: Mapping[str, Any] | None = None):
        """Send a request like the page's; the user waits for the first part of the answer."""
        state = {key: value for key, value in self.state.items() if key != "unfinished"} | {"version": self.version}
        question, is_seen, rest = {"about": scope, "state": state, "action": action}, False, b""
        try:
            async with self.client.stream("POST", self.base_url + "explorer/answer", json=question) as answer:
                if await self.is_refused("explorer/answer", answer):
                    return
                async for chunk in answer.aiter_bytes():
                    *lines, rest = (rest + chunk).split(b"\n")  # `splitlines` would split tokens, too
                    for line in map(json.loads, lines):
                        self.state |= line.get("change", {})
                        if "contents" not in line:
                            continue
                        self.version = line.get("version", self.version)
                        if not is_seen:
                            self.measurements.record_wait(self.number, name, began)
                        is_seen = True
            self.measurements.record_wait(self.number, f"{name}, all of it", began)
            self.done_at = time.monotonic() - self.began
        except httpx.TransportError as error:
            raise ServerUnreachableError from error

    async def is_refused(self, path: str, answer: httpx.Response) -> bool:
        """Return whether an answer is an error, and record it; raise ServerUnreachableError for 502 and 503."""
        if answer.status_code in (502, 503):
            raise ServerUnreachableError
        if answer.status_code != 200:
            self.measurements.errors.append(f"{path} {answer.status_code}: {(await answer.aread())[:200]!r}")
        return answer.status_code != 200

    async def post(self, path: str, body: Mapping[str, Any]) -> Any:
        try:
            answer = await self.client.post(self.base_url + path, json=body)
        except httpx.TransportError as error:
            raise ServerUnreachableError from error
        return None if await self.is_refused(path, answer) else answer.json()

    async def stream_event(self, name: str, data: list[Any]):
        """Yield the outputs of an event of Gradio's queue, one update after another."""
        request_json = {"fn_index": self.functions[name], "data": data, "session_hash": self.session}
        if await self.post("gradio_api/queue/join", request_json) is None:
            return
        outputs: list[Any] = []
        try:
            params = {"session_hash": self.session}
            async with self.client.stream("GET", self.base_url + "gradio_api/queue/data", params=params) as lines:
                async for line in lines.aiter_lines():
                    message = json.loads(line[6:]) if line.startswith("data: ") else {}
                    self.measurements.num_queue_messages += (
                        message.get("msg") == "estimation" and message.get("rank") is not None
                    )
                    if message.get("msg") not in ("process_generating", "process_completed"):
                        continue
                    if not message["success"]:
                        self.measurements.errors.append(f"{name}: {message['output']}"[:200])
                        return
                    outputs = merge_outputs(outputs, message["output"].get("data", []))
                    yield outputs
                    if message["msg"] == "process_completed":
                        return
        except httpx.TransportError as error:
            raise ServerUnreachableError from error
        raise ServerUnreachableError


def merge_outputs(outputs: list[Any], update: list[Any]) -> list[Any]:
    """Return the outputs after an update: whole outputs, or Gradio's diffs of the earlier ones."""
    if not outputs or not any(is_diff(output) for output in update):
        return update or outputs
    return [apply_diff(old, new) if is_diff(new) else old for old, new in zip(outputs, update, strict=True)]


def is_diff(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(change, list) and len(change) == 3 for change in value)


def apply_diff(value: Any, diff: list[Any]) -> Any:
    """Return a value after Gradio's diff: a list of (operation, path, new value)."""
    value = json.loads(json.dumps(value))
    for operation, path, new in diff:
        if not path:
            value = new if operation == "replace" else value + new
            continue
        *parents, last = path
        parent = value
        for step in parents:
            parent = parent[step]
        if operation == "delete":
            del parent[last]
        elif operation == "append":
            parent[last] += new
        elif operation == "add" and isinstance(parent, list):
            parent.insert(last, new)
        else:
            parent[last] = new
    return value
