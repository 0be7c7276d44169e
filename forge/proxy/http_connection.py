"""A connection to a server, for one request at a time."""

import asyncio
import select
import ssl

from forge.proxy.http_answer import HttpAnswer


class HttpConnection(asyncio.Protocol):
    """The connection. `since` is when its last answer ended, by the clock of the loop; `key` is its caller's."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport
        """Set by whoever has made the connection: asyncio tells a protocol of a wider type."""
        self.open = True
        self.since, self.key = 0.0, ""
        self._answer: HttpAnswer | None = None

    def ask(self, request: bytes, silence: float, total: float | None) -> HttpAnswer:
        """Send a request; its answer is coming."""
        self._answer = HttpAnswer(self.transport, silence, total)
        self.transport.write(request)
        return self._answer

    @property
    def reusable(self) -> bool:
        """Whether it can take another request: the last was sent whole and answered whole."""
        answered = self._answer is not None and self._answer.reusable
        return self.open and answered and not self.transport.get_write_buffer_size()

    @property
    def quiet(self) -> bool:
        """Whether it is open and nothing has come that no request asked for, read by the loop or not yet."""
        if not self.open:
            return False
        descriptor = self.transport.get_extra_info("socket").fileno()
        if not hasattr(select, "poll"):  # Windows, whose select takes descriptors of any number
            return not select.select([descriptor], [], [], 0)[0]
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        return not poll.poll(0)

    def rest(self) -> None:
        """Wait for the next request."""
        self._answer, self.since = None, asyncio.get_running_loop().time()

    def close(self) -> None:
        """Close it at once: the server sees that nobody waits for more."""
        self.open = False
        self.transport.abort()

    async def secure(self, tls: ssl.SSLContext, name: str) -> None:
        """Speak TLS from now on, with the server of that name."""
        self._answer = None
        loop = asyncio.get_running_loop()
        secured = await loop.start_tls(self.transport, self, tls, server_hostname=name)
        if secured is None:
            raise ConnectionError("the connection was closed while TLS began")
        self.transport = secured

    def data_received(self, data: bytes) -> None:
        """A callback of asyncio's. After bytes that no request asked for, the connection cannot be used again."""
        if self._answer is None:
            self.open = False
        else:
            self._answer.feed(data)

    def connection_lost(self, error: Exception | None) -> None:
        """A callback of asyncio's."""
        self.open = False
        if self._answer is not None:
            self._answer.lost(error)
