"""Serving by workers and a load balancer, until the process is stopped."""

import asyncio
import logging
import signal
from collections.abc import Sequence

from explorer.web.workers.front import LoadBalancer
from explorer.web.workers.worker import Worker

LOG = logging.getLogger(__name__)
POLL_INTERVAL_S = 0.2  # seconds


def serve(workers: Sequence[Worker], host: str, port: int):
    """Serve by workers until SIGTERM or SIGINT.

    Args:
        workers: local ones are started and stopped, too.
        host, port: where to listen.

    Raises:
        OSError: the port cannot be opened.
    """
    asyncio.run(_serve(workers, host, port))


async def _serve(workers: Sequence[Worker], host: str, port: int):
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    server = await LoadBalancer(workers).serve(host, port)
    serving = [asyncio.create_task(worker.serve()) for worker in workers]
    telling = asyncio.create_task(_announce_when_ready(workers, f"http://{host}:{port}"))
    try:
        await ended.wait()
    finally:
        telling.cancel()
        server.close()
        await asyncio.gather(*(worker.end() for worker in workers))
        for task in serving:
            task.cancel()


async def _announce_when_ready(workers: Sequence[Worker], address: str):
    """Print the URL once all workers answer, as Gradio does for one process."""
    while not all([await worker.is_alive() for worker in workers]):
        await asyncio.sleep(POLL_INTERVAL_S)
    print(f"* Running on local URL:  {address}, from {len(workers)} processes", flush=True)
