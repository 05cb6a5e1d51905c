"""The load balancer in front of stub workers."""

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable
from types import SimpleNamespace

import httpx
import pytest

from explorer.web.workers import worker
from explorer.web.workers.front import LoadBalancer
from explorer.web.workers.worker import Worker
from tests.benchmarks.served import free_port


class StubWorker:
    """Worker that answers with its name and the request line; at `/slow` it streams until the client disconnects."""

    def __init__(self, number: int):
        self.worker = Worker(number, "127.0.0.1", free_port())
        self.heads, self.left, self.health = [], asyncio.Event(), None

    async def start(self):
        self.server = await asyncio.start_server(self.answer, "127.0.0.1", self.worker.port)

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter):
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
        except asyncio.IncompleteReadError:  # a health probe that only connected
            return writer.close()
        self.heads.append(head)
        body = f"worker {self.worker.number}: {head.splitlines()[0]}".encode()
        if " /slow" in head:
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n")
            while not reader.at_eof():
                writer.write(b"data: piece\n\n")
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(reader.read(1), 0.02)
            self.left.set()
        elif " /health" in head:
            body = json.dumps(self.health).encode()
            status = b"200 OK" if self.health else b"400 Bad Request"
            writer.write(b"HTTP/1.1 %s\r\nconnection: close\r\ncontent-length: %d\r\n\r\n" % (status, len(body)) + body)
        else:
            writer.write(b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: %d\r\n\r\n" % len(body) + body)
        writer.close()


def run_with_workers(test: Callable[[SimpleNamespace], Awaitable[None]], count: int = 2):
    async def run():
        stubs = [StubWorker(number) for number in range(count)]
        for stub in stubs:
            await stub.start()
        server = await LoadBalancer([stub.worker for stub in stubs]).serve("127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=10) as client:
            await test(SimpleNamespace(stubs=stubs, client=client))
        server.close()
        for stub in stubs:
            stub.server.close()

    asyncio.run(run())


def kill(stub: StubWorker):
    stub.server.close()


def test_the_path_says_whose_it_is():
    async def test(cluster):
        for number in (0, 1):
            answer = await cluster.client.get(f"/w{number}/config?a=b")
            assert answer.text == f"worker {number}: GET /config?a=b HTTP/1.1"
        assert (await cluster.client.get("/w7/config")).status_code == 404
        assert (await cluster.client.get("/gradio_api/info")).text.startswith("worker 0")

    run_with_workers(test)


def test_visitors_are_led_to_who_has_fewest_with_all_that_the_address_says():
    async def test(cluster):
        answers = await asyncio.gather(*(cluster.client.get("/", params={"text": "a b"}) for _time in range(4)))
        locations = [answer.headers["location"] for answer in answers]
        assert sorted(locations) == ["w0/?text=a+b"] * 2 + ["w1/?text=a+b"] * 2
        async with cluster.client.stream("GET", "/w0/slow") as stream:
            pieces = stream.aiter_lines()
            await anext(pieces)
            assert [(await cluster.client.get("/")).headers["location"] for _time in range(3)] == ["w1/"] * 3
        assert (await cluster.client.get("/w1?text=a")).headers["location"] == "w1/?text=a"

    run_with_workers(test)


def test_what_is_sent_arrives_whole():
    async def test(cluster):
        answer = await cluster.client.post("/w1/gradio_api/queue/join", content=b"x" * 300_000)
        assert answer.status_code == 200
        assert (
            "content-length: 300000" in cluster.stubs[1].heads[0] and "connection: close" in cluster.stubs[1].heads[0]
        )
        assert "x-forwarded-for: 127.0.0.1" in cluster.stubs[1].heads[0]

    run_with_workers(test)


def test_a_stream_comes_piece_by_piece_and_ends_when_its_reader_leaves():
    async def test(cluster):
        async with cluster.client.stream("GET", "/w0/slow") as stream:
            pieces = stream.aiter_lines()
            assert [await anext(pieces) for _time in range(3)] == ["data: piece", "", "data: piece"]
            assert not cluster.stubs[0].left.is_set() and cluster.stubs[0].worker.num_requests == 1
        await asyncio.wait_for(cluster.stubs[0].left.wait(), 5)
        assert cluster.stubs[0].worker.num_requests == 0

    run_with_workers(test)


def test_of_one_that_is_gone_the_page_leads_on_and_scripts_are_told():
    async def test(cluster):
        kill(cluster.stubs[1])
        page = await cluster.client.get("/w1/?text=a")
        assert (page.status_code, page.headers["location"]) == (307, "../w0/?text=a")
        assert (await cluster.client.get("/w1/gradio_api/app_id")).text.startswith("worker 0")
        answer = await cluster.client.post("/w1/gradio_api/component_server/", json={})
        assert answer.status_code == 503
        with pytest.raises(ValueError):  # connection.js recognises by this that the answer is not Python's
            answer.json()
        assert {(await cluster.client.get("/")).headers["location"] for _time in range(3)} == {"w0/"}

    run_with_workers(test)


def test_where_all_are_gone_it_is_said():
    async def test(cluster):
        for stub in cluster.stubs:
            kill(stub)
        for path in ("/", "/w0/", "/w0/gradio_api/app_id", "/config"):
            answer = await cluster.client.get(path)
            assert (answer.status_code, answer.headers["retry-after"], answer.headers["refresh"]) == (503, "2", "2")
        assert (await cluster.client.get("/health")).json()["workers"] == [False, False]

    run_with_workers(test)


def test_what_all_tell_is_put_together_and_who_tells_nothing_is_not_there():
    def health_report(number: int, **more) -> dict:
        counts = dict.fromkeys(("traces_bytes", "sessions", "rss_bytes", "queue"), 10**number)
        return counts | {"version": "torch 2", "shared": "a file", "models": ["a", f"of {number}"]} | more

    async def test(cluster):
        cluster.stubs[0].health, cluster.stubs[1].health = health_report(0), health_report(1, version="torch 3")
        report = (await cluster.client.get("/health")).json()
        assert report == {
            **dict.fromkeys(("traces_bytes", "sessions", "rss_bytes", "queue"), 11),
            "version": "torch 2; torch 3",
            "shared": "a file",
            "models": ["a", "of 0", "of 1"],
            "workers": [True, True, False, False],
        }
        assert all("host: localhost" in stub.heads[-1].lower() for stub in cluster.stubs[:3])

    run_with_workers(lambda cluster: kill(cluster.stubs[3]) or test(cluster), count=4)


def test_a_machine_that_does_not_answer_is_not_there(monkeypatch):
    async def connect_never(host, port):
        await asyncio.sleep(60)

    async def test(cluster):
        monkeypatch.setattr(worker, "TIMEOUT_S", 0.05)
        monkeypatch.setattr(worker.asyncio, "open_connection", connect_never)
        assert not await worker.Worker(0, "192.0.2.1", 7860).is_alive()

    run_with_workers(test)
