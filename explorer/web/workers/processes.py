"""The processes that serve, each started anew when it ends."""

import asyncio
import logging
import os
import socket
import sys
from collections.abc import Sequence

LOG = logging.getLogger(__name__)
AGAIN_AFTER, PATIENCE = 1.0, 10.0  # seconds until one that ended is started anew; until one that is to end is killed


class Worker:
    """One process, always at the same port of this machine.

    Args:
        number: in the paths of its visitors' addresses, as in `/w0/`.
        command: that starts it, to which its address is added.
        root: path of the whole server, behind a proxy that cuts it off; "" for none.
    """

    def __init__(self, number: int, command: Sequence[str], root: str = ""):
        self.number, self.command, self.path = number, command, f"{root.rstrip('/')}/w{number}"
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.visitors, self.led = 0, 0  # whose requests are being answered, and all that were ever led there
        self.process: asyncio.subprocess.Process | None = None
        self.ends = False

    async def serve(self):
        """Run it until `end`, and whenever it ends by itself start it anew."""
        environment = os.environ | {"GRADIO_ROOT_PATH": self.path}
        command = [*self.command, "--host", "127.0.0.1", "--port", str(self.port), "--workers", "1"]
        while not self.ends:
            self.process = await asyncio.create_subprocess_exec(*command, env=environment, stdout=sys.stderr)
            status = await self.process.wait()
            if not self.ends:
                LOG.warning("worker %d ended with status %d and is started anew", self.number, status)
                await asyncio.sleep(AGAIN_AFTER)

    async def is_there(self) -> bool:
        """Whether it takes connections."""
        try:
            _reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        except OSError:
            return False
        writer.close()
        return True

    async def end(self):
        self.ends = True
        if self.process and self.process.returncode is None:
            self.process.terminate()
            try:
                await asyncio.wait_for(self.process.wait(), PATIENCE)
            except TimeoutError:
                self.process.kill()
                await self.process.wait()
