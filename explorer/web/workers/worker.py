"""Who answers, behind a front."""

import asyncio

PATIENCE = 3.0  # seconds for a connection


class Worker:
    """A process that serves the page, wherever it is and whoever started it; its visitors' addresses have `/w` and its
    number as their path, which it is told by `GRADIO_ROOT_PATH`.

    Args:
        number: in that path.
        host, port: where it listens.

    Attributes:
        visitors: how many requests it is answering.
        led: how many visitors were ever led there.
    """

    def __init__(self, number: int, host: str, port: int):
        self.number, self.host, self.port = number, host, port
        self.visitors, self.led = 0, 0

    @property
    def address(self) -> str:
        return f"http://{self.host}:{self.port}"

    async def connected(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """OSError where nobody takes the connection, or no machine answers."""
        try:
            return await asyncio.wait_for(asyncio.open_connection(self.host, self.port), PATIENCE)
        except asyncio.TimeoutError as error:  # which in Python 3.10 is no OSError
            raise OSError(f"{self.address} does not answer") from error

    async def is_there(self) -> bool:
        """Whether it takes connections."""
        try:
            _reader, writer = await self.connected()
        except OSError:
            return False
        writer.close()
        return True

    async def serve(self):
        """As long as it is ours to run it: not at all."""

    async def end(self):
        """It goes on: others see to it."""
