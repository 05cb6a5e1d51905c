"""Load balancer in front of several workers: a client stays with one of them by the path of the page.

`/` redirects to `/w0/`, `/w1/`, …, to the least busy worker. If a worker is gone, its page is redirected to
another, with its query; requests of a page's scripts get a 503, except for the request that identifies the server:
another worker answers that, so that the page knows that it must reload, with its state, which is the browser's.
"""

import asyncio
import contextlib
import json
import logging
from collections.abc import Sequence
from typing import Any

import httpx

from explorer.web.workers.request_head import MAX_HEAD_BYTES, InvalidRequestError, RequestHead
from explorer.web.workers.worker import Worker

LOG = logging.getLogger(__name__)
APP_ID_PATH, HEALTH_PATH = "/gradio_api/app_id", "/health"
HEAD_TIMEOUT_S = 30.0  # seconds for the head of a request
CHUNK_BYTES = 1 << 16  # bytes


class LoadBalancer:
    """Forwards each request to a worker over a connection of its own."""

    def __init__(self, workers: Sequence[Worker]):
        self.workers = workers

    async def serve(self, host: str, port: int) -> asyncio.Server:
        return await asyncio.start_server(self.handle, host, port, limit=MAX_HEAD_BYTES)

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter):
        try:
            head = await asyncio.wait_for(RequestHead.read(reader), HEAD_TIMEOUT_S)
            await self.route(head, reader, writer)
        except (InvalidRequestError, TimeoutError):
            pass
        except OSError as error:
            LOG.debug("connection lost: %s", error)
        finally:
            writer.close()

    async def route(self, head: RequestHead, reader: asyncio.StreamReader, writer: asyncio.StreamWriter):
        """Forward a request to its worker, or answer it."""
        if head.path in ("", "/"):
            worker = await self.least_busy()
            return await (
                self.redirect(writer, head, f"w{worker.number}/") if worker else self.send_unavailable(writer)
            )
        if head.path == HEALTH_PATH:
            return await self.send_json(writer, await self.health())
        number, path = head.worker or (0, head.path)  # programs that know of no workers
        if number >= len(self.workers):
            return await self.send_json(writer, {"detail": "Not Found"}, "404 Not Found")
        if not path:
            return await self.redirect(writer, head, f"w{number}/")
        if await self.forward(self.workers[number], path, head, reader, writer):
            return None
        other = await self.least_busy()
        if other and path == "/":
            return await self.redirect(writer, head, f"../w{other.number}/")
        others_may = other and (path == APP_ID_PATH or head.worker is None)
        if not (others_may and await self.forward(other, path, head, reader, writer)):
            return await self.send_unavailable(writer)
        return None

    async def least_busy(self) -> Worker | None:
        """Return the least busy available worker for a new client; None if there is none."""
        for worker in sorted(self.workers, key=lambda candidate: (candidate.num_requests, candidate.num_clients_led)):
            worker.num_clients_led += 1  # before anything is waited for: a class comes at once
            if await worker.is_alive():
                return worker
        return None

    async def forward(
        self, worker: Worker, path: str, head: RequestHead, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        """Forward a request to a worker and its response to the client; return False if the worker does not answer."""
        try:
            from_worker, to_worker = await worker.connect()
        except OSError:
            return False
        worker.num_requests += 1
        client = writer.get_extra_info("peername")
        to_worker.write(head.encode_for_worker(path, client[0] if client else ""))
        request_task = asyncio.create_task(pipe(reader, to_worker))
        response_task = asyncio.create_task(pipe(from_worker, writer))
        try:
            # What is asked ends when a browser leaves, what is answered when all of it was sent: either ends both.
            await asyncio.wait((request_task, response_task), return_when=asyncio.FIRST_COMPLETED)
        finally:
            worker.num_requests -= 1
            for task in (request_task, response_task):
                task.cancel()
            to_worker.close()
            await asyncio.gather(request_task, response_task, return_exceptions=True)
        return True

    async def health(self) -> dict[str, Any]:
        """Return the combined status of all workers, and which of them answer."""
        own_name = {"host": "localhost"}  # by which each may be asked, whatever its name is here
        async with httpx.AsyncClient(timeout=5, headers=own_name) as client:
            requests = [client.get(worker.address + HEALTH_PATH) for worker in self.workers]
            answers = await asyncio.gather(*requests, return_exceptions=True)
        answered = [isinstance(answer, httpx.Response) and answer.status_code == 200 for answer in answers]
        payloads = [answer.json() if is_one else None for answer, is_one in zip(answers, answered, strict=True)]
        available = [payload for payload in payloads if payload]
        sums = {
            name: sum(payload[name] for payload in available)
            for name in ("traces_bytes", "sessions", "rss_bytes", "queue")
        }
        models = sorted({model for payload in available for model in payload["models"]})
        version, shared = (
            "; ".join(sorted({payload[name] for payload in available})) for name in ("version", "shared")
        )
        named = {"version": version, "models": models, "shared": shared}
        return {**named, **sums, "workers": [payload is not None for payload in payloads]}

    async def redirect(self, writer: asyncio.StreamWriter, head: RequestHead, to: str):
        """Redirect to a relative URL, as the path that proxies cut off is unknown here."""
        await send_response(writer, "307 Temporary Redirect", "text/plain", b"", f"location: {to}{head.query}")

    async def send_json(self, writer: asyncio.StreamWriter, value: Any, status: str = "200 OK"):
        await send_response(writer, status, "application/json", json.dumps(value).encode())

    async def send_unavailable(self, writer: asyncio.StreamWriter):
        """Send a 503 that is not JSON, so that the page's scripts see that Python did not answer (connection.js).

        A browser that requested the page retries by itself.
        """
        retry_headers = ("retry-after: 2", "refresh: 2")
        await send_response(
            writer, "503 Service Unavailable", "text/plain", b"The server is being started.", *retry_headers
        )


async def send_response(writer: asyncio.StreamWriter, status: str, kind: str, body: bytes, *headers: str):
    lines = [f"HTTP/1.1 {status}", f"content-type: {kind}", f"content-length: {len(body)}", "connection: close"]
    writer.write("\r\n".join([*lines, "cache-control: no-store", *headers, "\r\n"]).encode("latin-1") + body)
    with contextlib.suppress(OSError):
        await writer.drain()


async def pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter):
    """Copy chunks as they arrive, no faster than they are consumed."""
    while chunk := await reader.read(CHUNK_BYTES):
        writer.write(chunk)
        await writer.drain()
