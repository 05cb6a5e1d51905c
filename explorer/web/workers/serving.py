"""Workers and the front before them, until the process is told to end."""

import asyncio
import logging
import signal
from collections.abc import Sequence

from explorer.web.workers.front import Front
from explorer.web.workers.worker import Worker

LOG = logging.getLogger(__name__)
LOOKING = 0.2  # seconds


def serve(workers: Sequence[Worker], host: str, port: int):
    """Serve from workers, until SIGTERM or SIGINT.

    Args:
        workers: those that are ours to run are run as long.
        host, port: where to listen.

    Raises:
        OSError: nobody can listen there.
    """
    asyncio.run(_serve(workers, host, port))


async def _serve(workers: Sequence[Worker], host: str, port: int):
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    server = await Front(workers).serve(host, port)
    serving = [asyncio.create_task(worker.serve()) for worker in workers]
    telling = asyncio.create_task(_tell(workers, f"http://{host}:{port}"))
    try:
        await ended.wait()
    finally:
        telling.cancel()
        server.close()
        await asyncio.gather(*(worker.end() for worker in workers))
        for task in serving:
            task.cancel()


async def _tell(workers: Sequence[Worker], address: str):
    """Once all of them are there, as Gradio does of one."""
    while not all([await worker.is_there() for worker in workers]):
        await asyncio.sleep(LOOKING)
    print(f"* Running on local URL:  {address}, from {len(workers)} processes", flush=True)
