"""The guide to serving many users, docs/deploy.md: its files, and a class whose process is killed."""

import asyncio
import json
import re
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import httpx
import pytest

from explorer.cli_options import is_public, parse_arguments
from explorer.state.page_state import RunRequest
from explorer.state.selection import Selection
from explorer.web.key_value_stores import ANSWERS
from model import load_checkpoint
from tests.benchmarks.simulated_user import merge_outputs
from tests.deployment import NGINX_CONF, REDIS_OPTIONS, ROOT, AppProcess, Deployment, deploy

yaml = pytest.importorskip("yaml")
COMPOSE, GUIDE = NGINX_CONF.with_name("compose.yaml"), ROOT / "docs" / "deploy.md"
PROMPT = "Once upon a time there was a little fox who lived near the lake and slept"
QUESTION = {"lesson": "tokens-and-merges", "step": 4}
WRITING = {"temperature": 2.0, "top_k": 0, "seed": 1, "max_new_tokens": 400}  # random text, as stories end sooner
VISITORS_EACH = 3  # users per process


def test_compose_uses_valid_flags():
    services = yaml.safe_load(COMPOSE.read_text("utf-8"))["services"]
    web, app, redis = services["web"], services["explorer"], services["redis"]
    assert (COMPOSE.parent / app["build"]).resolve() == ROOT
    options = parse_arguments(app["command"])
    assert is_public(options) and options.store == "redis://redis" and options.allowed_hosts
    assert app["deploy"]["replicas"] > 1 and app["read_only"] and "/tmp" in app["tmpfs"] and "ports" not in app
    assert app["environment"] == {"FORWARDED_ALLOW_IPS": "*"}  # read by uvicorn
    (port,) = re.findall(r"^EXPOSE (\d+)$", (ROOT / "Dockerfile").read_text("utf-8"), re.MULTILINE)
    text = NGINX_CONF.read_text("utf-8")
    assert f"server explorer:{port} " in text
    (published,) = web["ports"]
    assert f"listen {published.split(':')[1]};" in text
    (mounted,) = web["volumes"]
    assert (COMPOSE.parent / mounted.split(":")[0]) == NGINX_CONF
    assert tuple(redis["command"]) == REDIS_OPTIONS


def test_kubernetes_objects_keep_users_at_one_process():
    (block,) = re.findall(r"```yaml\n(.+?)```", GUIDE.read_text("utf-8"), re.DOTALL)
    objects = {document["kind"]: document["spec"] for document in yaml.safe_load_all(block)}
    service, deployment = objects["Service"], objects["Deployment"]
    assert service["sessionAffinity"] == "ClientIP" and deployment["replicas"] > 1
    pod = deployment["template"]
    assert service["selector"] == deployment["selector"]["matchLabels"] == pod["metadata"]["labels"]
    (container,) = pod["spec"]["containers"]
    options = parse_arguments(container["args"])
    assert is_public(options) and options.store and options.allowed_hosts
    (port,) = re.findall(r"^EXPOSE (\d+)$", (ROOT / "Dockerfile").read_text("utf-8"), re.MULTILINE)
    assert str(service["ports"][0]["targetPort"]) == str(container["readinessProbe"]["httpGet"]["port"]) == port


@pytest.fixture(scope="module")
def deployment(tmp_path_factory):
    with deploy(tmp_path_factory.mktemp("deployed"), "app.py", "--allowed-hosts", "lab.example") as running:
        yield running


@pytest.fixture(scope="module")
def state() -> dict[str, Any]:
    """The page's state after a prompt."""
    _lm, tokenizer = load_checkpoint("llama-fables")
    run = RunRequest("llama-fables", tuple(tokenizer.encode(PROMPT)))
    return run.as_dict() | Selection(view="attention", query=3, key=1).as_dict() | WRITING


class SimulatedUser:
    """A browser's requests and its cookies, without the browser.

    Attributes:
        process: Gradio's name of the process that the page came from.
    """

    def __init__(self, address: str):
        self.client = httpx.AsyncClient(base_url=address, timeout=60)
        self.answered_at: list[float] = []  # `time.monotonic` of each answered click

    async def arrive(self) -> "SimulatedUser":
        page = (await self.client.get("/")).raise_for_status()
        config = json.JSONDecoder().raw_decode(page.text.partition("window.gradio_config = ")[2])[0]
        self.process = config["app_id"]
        self.events = {entry["api_name"]: entry["id"] for entry in config["dependencies"]}
        return self

    async def current_process(self) -> str:
        return (await self.client.get("gradio_api/app_id")).raise_for_status().json()["app_id"]

    async def post(self, path: str, **body: Any) -> Any:
        answer = await self.client.post(path, json=body)
        assert answer.status_code == 200, (path, answer.status_code, answer.text[:200])
        return answer.json()

    async def click(self, state: dict[str, Any], **selection: Any) -> list[dict[str, Any]]:
        """Send a click as the page does, and return the lines of the answer."""
        body = {"about": "view", "state": state | selection | {"version": ""}}
        answer = await self.client.post("explorer/answer", json=body)
        assert answer.status_code == 200, (answer.status_code, answer.text[:200])
        return [json.loads(line) for line in answer.text.splitlines()]

    async def click_until(self, ended: asyncio.Event, state: dict[str, Any]):
        tabs, number = ("attention", "residual", "tokens", "overview"), 0
        while not ended.is_set():
            number += 1
            try:
                answer = await self.click(state, view=tabs[number % 4], query=2 + number % 9, key=1)
            except httpx.RemoteProtocolError:  # the process was killed: try again, as the page does
                answer = await self.click(state, view=tabs[number % 4], query=2 + number % 9, key=1)
            assert answer[0]["contents"]
            self.answered_at.append(time.monotonic())
            await asyncio.sleep(0.05)

    async def generate(self, state: dict[str, Any], session: str) -> AsyncIterator[tuple[list[int], bool]]:
        """Yield the generated ids so far, and whether generation is complete; end early if the process ends."""
        event = {"fn_index": self.events["page_generate"], "data": [state], "session_hash": session}
        await self.post("gradio_api/queue/join", **event)
        outputs: list[Any] = []
        stream = self.client.stream("GET", "gradio_api/queue/data", params={"session_hash": session})
        try:
            async with stream as answer:
                async for line in answer.aiter_lines():
                    message = json.loads(line[6:]) if line.startswith("data: ") else {}
                    if message.get("msg") in ("process_generating", "process_completed"):
                        assert message["success"], message
                        outputs = merge_outputs(outputs, message["output"].get("data", []))
                        if outputs and (change := outputs[0].get("change")):
                            yield change["generated"], message["msg"] == "process_completed"
        except httpx.TransportError:
            return

    async def follow(self, who: dict[str, str], updates: list[dict[str, Any]]):
        """Follow a room, and append its responses to `updates`."""
        tag = ""
        while True:
            update = await self.post("rooms/next", **who, seen=tag)
            tag = update.get("tag", "")
            if len(update) > 1:  # it changed
                updates.append(update)


async def connect_to_both_processes(deployment: Deployment) -> dict[str, list[SimulatedUser]]:
    """Return users of each process, by its `app_id`."""
    visitors = defaultdict(list)
    for _number in range(60):
        visitor = await SimulatedUser(deployment.address).arrive()
        visitors[visitor.process].append(visitor)
        if len(visitors) == 2 and min(map(len, visitors.values())) >= VISITORS_EACH:
            break
    assert set(visitors) == {process.app_id for process in deployment.processes}
    for visitor in sum(visitors.values(), []):
        assert {await visitor.current_process() for _time in range(3)} == {visitor.process}
    return visitors


async def wait_for_condition(condition: Callable[[], bool], tasks: Sequence[asyncio.Task]):
    """Wait for a condition, or raise the error of a task."""
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        for task in tasks:
            if task.done():
                task.result()
        await asyncio.sleep(0.02)


@pytest.mark.exhaustive
def test_app_gets_client_address_and_host(deployment):
    address = deployment.address
    assert httpx.get(f"{address}/health", headers={"Host": "evil.example"}).status_code == 400
    page = httpx.get(f"{address}/", headers={"Host": "lab.example:8080"})
    assert page.status_code == 200 and '"root": "http://lab.example:8080"' in page.text.replace('":"', '": "')
    assert httpx.post(f"{address}/rooms/open", content=bytes(1_100_000)).status_code == 413

    def current_process(client: httpx.Client) -> str:
        return client.get("gradio_api/app_id").json()["app_id"]

    def guess_room(client: httpx.Client, number: int) -> int:
        body = {"code": f"{number:010}", "student": "0" * 32}
        return client.post("rooms/next", json=body, headers={"X-Forwarded-For": f"10.0.0.{number}"}).status_code

    def make_client(number: int) -> httpx.Client:
        return httpx.Client(base_url=address, transport=httpx.HTTPTransport(local_address=f"127.0.0.{number}"))

    with make_client(2) as somebody:  # without the page, and therefore without a cookie
        assert [guess_room(somebody, number) for number in range(31)] == [404] * 30 + [429]
        process = current_process(somebody)
    for number in range(3, 60):
        with make_client(number) as somebody_else:
            if current_process(somebody_else) == process:
                assert guess_room(somebody_else, 40) == 404
                return
    raise AssertionError("all other addresses are led to the other process")


@pytest.mark.exhaustive
def test_killed_process_loses_only_its_generation(deployment, state):
    asyncio.run(asyncio.wait_for(kill_process_under_load(deployment, state), 300))


async def kill_process_under_load(deployment: Deployment, state: dict[str, Any]):
    visitors = await connect_to_both_processes(deployment)
    dying: AppProcess = deployment.processes[0]
    staying_id = deployment.processes[1].app_id
    stranded, settled = visitors[dying.app_id], visitors[staying_id]
    # Replace a shared answer of the dying process in Redis, to see that the other process reads it there.
    redis = pytest.importorskip("redis").Redis.from_url(deployment.store)
    rare = {"view": "attention", "query": 12, "key": 11}
    before = set(redis.keys(f"{ANSWERS}*"))
    assert (await stranded[0].click(state, **rare))[0]["contents"]
    shared_keys = set(redis.keys(f"{ANSWERS}*")) - before
    for shared_key in shared_keys:
        redis.set(shared_key, b'{"from": "redis"}', ex=600)
    # A room: its teacher and one of its two students are connected to the dying process.
    teacher, students = stranded[0], (stranded[1], settled[1])
    key = await teacher.post("rooms/open")
    led = state | QUESTION
    await teacher.post("rooms/lead", **key, leads=True, state=led, **QUESTION)
    names = [{"code": key["code"], "student": digit * 32} for digit in "ab"]
    seen = [[], [], []]
    following = [asyncio.create_task(teacher.follow(key, seen[0]))]
    following += [
        asyncio.create_task(student.follow(name, updates))
        for student, name, updates in zip(students, names, seen[1:], strict=True)
    ]
    await wait_for_condition(lambda: all(seen) and seen[0][-1]["people"] == 2, following)
    for student, name in zip(students, names, strict=True):
        await student.post("rooms/reply", **name, **QUESTION, reply="1")
    await wait_for_condition(lambda: seen[0][-1]["counts"] == {"1": 2}, following)

    ended = asyncio.Event()
    load = [asyncio.create_task(visitor.click_until(ended, state)) for visitor in stranded + settled]
    written = {staying_id: [], dying.app_id: []}

    async def write(visitor: SimulatedUser, session: str):
        async for generated, is_all in visitor.generate(state, session):
            written[visitor.process].append((generated, is_all))

    await wait_for_condition(lambda: all(visitor.answered_at for visitor in stranded), load)
    writing = []
    for process, generated in written.items():  # the dying process has just begun when it is killed
        writing.append(asyncio.create_task(write(visitors[process][0], f"writer-{process}")))
        await wait_for_condition(lambda generated=generated: generated, load + writing)
    killed_at = time.monotonic()
    dying.kill()
    await asyncio.gather(*writing)
    (lost, was_all), (whole, is_all) = written[dying.app_id][-1], written[staying_id][-1]
    assert not was_all and is_all and whole[: len(lost)] == lost != whole
    # Generation continues from the text that the page has.
    *_parts, (going_on, is_all) = [part async for part in stranded[0].generate(state | {"generated": lost}, "anew")]
    assert is_all and going_on[: len(lost)] == lost and len(going_on) >= len(whole)
    # The room keeps its members and replies, and still follows its teacher.
    await teacher.post("rooms/lead", **key, leads=True, state=led | {"query": 9}, **QUESTION)
    await wait_for_condition(lambda: all(updates[-1]["state"]["query"] == 9 for updates in seen[1:]), following)
    await students[0].post("rooms/reply", **names[0], **QUESTION, reply="2")
    await wait_for_condition(
        lambda: seen[0][-1]["people"] == 2 and seen[0][-1]["counts"] == {"1": 1, "2": 1}, following
    )
    assert {"from": "redis"} in await stranded[0].click(state, **rare)

    await wait_for_condition(
        lambda: all(sum(moment > killed_at for moment in visitor.answered_at) > 3 for visitor in stranded + settled),
        load,
    )
    ended.set()
    await asyncio.gather(*load)  # each answer was 200
    for visitor in stranded + settled:
        assert await visitor.current_process() == staying_id
    for task in following:
        assert not task.done()
        task.cancel()
    await asyncio.gather(*following, return_exceptions=True)
    waits = [now - then for v in stranded for then, now in zip(v.answered_at, v.answered_at[1:], strict=False)]
    clicks = sum(len(v.answered_at) for v in stranded + settled)
    print(f"{clicks} clicks answered, the longest pause of a visitor of the killed process {max(waits):.2f} s")
