"""Worker behind the load balancer."""

import asyncio

TIMEOUT_S = 3.0  # seconds for a connection


class Worker:
    """A process that serves the page, on any machine; its URLs have `/w` and its number as their path.

    It reads this path from `GRADIO_ROOT_PATH`.

    Args:
        number: in that path.
        host, port: where it listens.

    Attributes:
        num_requests: number of requests that it is answering.
        num_clients_led: number of clients ever directed there.
    """

    def __init__(self, number: int, host: str, port: int):
        self.number, self.host, self.port = number, host, port
        self.num_requests, self.num_clients_led = 0, 0

    @property
    def address(self) -> str:
        return f"http://{self.host}:{self.port}"

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Open a connection.

        Raises:
            OSError: the worker does not answer.
        """
        try:
            return await asyncio.wait_for(asyncio.open_connection(self.host, self.port), TIMEOUT_S)
        except asyncio.TimeoutError as error:  # which in Python 3.10 is no OSError
            raise OSError(f"{self.address} does not answer") from error

    async def is_alive(self) -> bool:
        """Return whether the worker accepts connections."""
        try:
            _reader, writer = await self.connect()
        except OSError:
            return False
        writer.close()
        return True

    async def serve(self):
        """Do nothing: the process is started elsewhere."""

    async def end(self):
        """Do nothing: the process is stopped elsewhere."""
