"""Gathering: what is written to a client in one turn of the event loop is sent at once.

uvicorn writes the head of an answer and its body one after the other, and a chunk of a backend's stream may hold many
events. Sent one by one, each costs a call of the kernel, a tenth of what a request costs in all.
"""

import asyncio

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol


class GatheringProtocol(HttpToolsProtocol):
    """uvicorn's protocol on such a transport."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's own
        """A callback of asyncio's."""
        super().connection_made(_Gathering(transport, self.loop))


class _Gathering(asyncio.Transport):
    """The transport, with writes held until the turn of the loop ends."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._transport, self._loop = transport, loop
        self._written: list[bytes | bytearray | memoryview] = []

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if not self._written:
            self._loop.call_soon(self._flush)
        self._written.append(data)

    def _flush(self) -> None:
        if self._written:
            self._transport.write(b"".join(self._written))
            self._written = []

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def is_closing(self) -> bool:
        return self._transport.is_closing()

    def get_extra_info(self, name: str, default: object = None) -> object:
        return self._transport.get_extra_info(name, default)

    def pause_reading(self) -> None:
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        self._transport.resume_reading()
