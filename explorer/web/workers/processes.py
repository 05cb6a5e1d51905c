"""Server processes that are restarted when they exit."""

import asyncio
import logging
import os
import socket
import sys
from collections.abc import Sequence

from explorer.web.workers.worker import Worker

LOG = logging.getLogger(__name__)
RETRY_AFTER_S, TERMINATE_TIMEOUT_S = (
    1.0,
    10.0,
)  # seconds until one that ended is started anew; until one that is to end is killed


class LocalWorker(Worker):
    """A worker on this machine, always at the same port.

    Args:
        number: see `Worker`.
        command: that starts it; its host and port are appended.
        root: path of the whole server, behind a proxy that cuts it off; "" for none.
    """

    def __init__(self, number: int, command: Sequence[str], root: str = ""):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            super().__init__(number, *free.getsockname())
        self.command, self.path = command, f"{root.rstrip('/')}/w{number}"
        self.process: asyncio.subprocess.Process | None = None
        self.ends = False

    async def serve(self):
        """Run the process until `end`, and restart it when it exits."""
        environment = os.environ | {"GRADIO_ROOT_PATH": self.path}
        command = [*self.command, "--host", self.host, "--port", str(self.port), "--workers", "1"]
        while not self.ends:
            self.process = await asyncio.create_subprocess_exec(*command, env=environment, stdout=sys.stderr)
            status = await self.process.wait()
            if not self.ends:
                LOG.warning("worker %d exited with status %d, restarting it", self.number, status)
                await asyncio.sleep(RETRY_AFTER_S)

    async def end(self):
        self.ends = True
        if self.process and self.process.returncode is None:
            self.process.terminate()
            try:
                await asyncio.wait_for(self.process.wait(), TERMINATE_TIMEOUT_S)
            except TimeoutError:
                self.process.kill()
                await self.process.wait()
