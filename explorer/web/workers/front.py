"""One address before several workers: a visitor stays with one of them by the path of the page.

`/` leads on to `/w0/`, `/w1/`, …, whoever has fewest to do. Where a worker is gone its page leads on to another, with
all that the address says; what scripts of a page ask of it gets a 503, but for which server is there: that another
answers, so that the page knows that it is to come anew, with its state, which is the browser's.
"""

import asyncio
import contextlib
import json
import logging
from collections.abc import Sequence
from typing import Any

import httpx

from explorer.web.workers.request_head import MOST_BYTES, NoRequest, RequestHead
from explorer.web.workers.worker import Worker

LOG = logging.getLogger(__name__)
WHO_IS_THERE, HEALTH = "/gradio_api/app_id", "/health"
PATIENCE = 30.0  # seconds for the head of a request
A_PIECE = 1 << 16  # bytes


class Front:
    """Sends requests on to workers, a connection each, as they come."""

    def __init__(self, workers: Sequence[Worker]):
        self.workers = workers

    async def serve(self, host: str, port: int) -> asyncio.Server:
        return await asyncio.start_server(self.answer, host, port, limit=MOST_BYTES)

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter):
        try:
            head = await asyncio.wait_for(RequestHead.read(reader), PATIENCE)
            await self.lead(head, reader, writer)
        except (NoRequest, TimeoutError):
            pass
        except OSError as error:
            LOG.debug("a connection broke off: %s", error)
        finally:
            writer.close()

    async def lead(self, head: RequestHead, reader: asyncio.StreamReader, writer: asyncio.StreamWriter):
        """The request to whom it is for."""
        if head.path in ("", "/"):
            worker = await self.least_busy()
            return await (self.move(writer, head, f"w{worker.number}/") if worker else self.nobody(writer))
        if head.path == HEALTH:
            return await self.tell(writer, await self.health())
        number, path = head.worker or (0, head.path)  # programs that know of no workers
        if number >= len(self.workers):
            return await self.tell(writer, {"detail": "Not Found"}, "404 Not Found")
        if not path:
            return await self.move(writer, head, f"w{number}/")
        if await self.sent_on(self.workers[number], path, head, reader, writer):
            return None
        other = await self.least_busy()
        if other and path == "/":
            return await self.move(writer, head, f"../w{other.number}/")
        others_may = other and (path == WHO_IS_THERE or head.worker is None)
        if not (others_may and await self.sent_on(other, path, head, reader, writer)):
            return await self.nobody(writer)
        return None

    async def least_busy(self) -> Worker | None:
        """Of the workers that are there the one to lead the next visitor to; None where there is none."""
        for worker in sorted(self.workers, key=lambda each: (each.visitors, each.led)):
            worker.led += 1  # before anything is waited for: a class comes at once
            if await worker.is_there():
                return worker
        return None

    async def sent_on(
        self, worker: Worker, path: str, head: RequestHead, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        """Whether the worker is there, and then its answer was sent back, as far as there is one."""
        try:
            from_worker, to_worker = await worker.connected()
        except OSError:
            return False
        worker.visitors += 1
        client = writer.get_extra_info("peername")
        to_worker.write(head.sent_on(path, client[0] if client else ""))
        asking = asyncio.create_task(carry(reader, to_worker))
        answering = asyncio.create_task(carry(from_worker, writer))
        try:
            # What is asked ends when a browser leaves, what is answered when all of it was sent: either ends both.
            await asyncio.wait((asking, answering), return_when=asyncio.FIRST_COMPLETED)
        finally:
            worker.visitors -= 1
            for task in (asking, answering):
                task.cancel()
            to_worker.close()
            await asyncio.gather(asking, answering, return_exceptions=True)
        return True

    async def health(self) -> dict[str, Any]:
        """What all workers tell, put together, and which of them are there."""
        own_name = {"host": "localhost"}  # by which each may be asked, whatever its name is here
        async with httpx.AsyncClient(timeout=5, headers=own_name) as client:
            asked = [client.get(worker.address + HEALTH) for worker in self.workers]
            answers = await asyncio.gather(*asked, return_exceptions=True)
        answered = [isinstance(answer, httpx.Response) and answer.status_code == 200 for answer in answers]
        told = [answer.json() if is_one else None for answer, is_one in zip(answers, answered, strict=True)]
        there = [each for each in told if each]
        sums = {name: sum(each[name] for each in there) for name in ("traces_bytes", "sessions", "rss_bytes", "queue")}
        models = sorted({model for each in there for model in each["models"]})
        version, shared = ("; ".join(sorted({each[name] for each in there})) for name in ("version", "shared"))
        named = {"version": version, "models": models, "shared": shared}
        return {**named, **sums, "workers": [each is not None for each in told]}

    async def move(self, writer: asyncio.StreamWriter, head: RequestHead, to: str):
        """To an address beside the one that was asked for, as the path that proxies cut off is not known here."""
        await say(writer, "307 Temporary Redirect", "text/plain", b"", f"location: {to}{head.query}")

    async def tell(self, writer: asyncio.StreamWriter, value: Any, status: str = "200 OK"):
        await say(writer, status, "application/json", json.dumps(value).encode())

    async def nobody(self, writer: asyncio.StreamWriter):
        """No JSON: the page's scripts know by that that it is not Python who answers (connection.js); a browser that
        came for the page asks again by itself."""
        again = ("retry-after: 2", "refresh: 2")
        await say(writer, "503 Service Unavailable", "text/plain", b"The server is being started.", *again)


async def say(writer: asyncio.StreamWriter, status: str, kind: str, body: bytes, *headers: str):
    lines = [f"HTTP/1.1 {status}", f"content-type: {kind}", f"content-length: {len(body)}", "connection: close"]
    writer.write("\r\n".join([*lines, "cache-control: no-store", *headers, "\r\n"]).encode("latin-1") + body)
    with contextlib.suppress(OSError):
        await writer.drain()


async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter):
    """Pieces as they come, no faster than they are taken."""
    while piece := await reader.read(A_PIECE):
        writer.write(piece)
        await writer.drain()
