"""A forward proxy in this loop: whichever host it is asked for, it leads to one port of this machine."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from typing import Self

import trustme


class ForwardProxy:
    """The proxy; `asked` are the first lines of what it was sent, `credentials` those that came with them."""

    def __init__(self, port: int, tls: ssl.SSLContext | None = None, refuses: int = 0) -> None:
        self._port, self._tls, self._refuses = port, tls, refuses
        self.asked: list[str] = []
        self.credentials: list[str] = []

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._tls)
        self.port = self._server.sockets[0].getsockname()[1]
        self.url = f"{'https' if self._tls else 'http'}://127.0.0.1:{self.port}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            async with _closing(writer):
                await self._led(reader, writer)

    async def _led(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        first, *headers = head.decode().split("\r\n")
        self.asked.append(first)
        self.credentials += [h.split(": ", 1)[1] for h in headers if h.lower().startswith("proxy-authorization")]
        if self._refuses:
            writer.write(f"HTTP/1.1 {self._refuses} No\r\ncontent-length: 0\r\n\r\n".encode())
            await writer.drain()
            return
        there, out = await asyncio.open_connection("127.0.0.1", self._port)
        async with _closing(out):
            method, target, version = first.split(" ")
            if method == "CONNECT":
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            else:  # with the whole address, of which a server wants only the path
                path = "/" + target.split("/", 3)[3]
                out.write(head.replace(first.encode(), f"{method} {path} {version}".encode(), 1))
            await asyncio.gather(_pumped(reader, out), _pumped(there, writer))


@contextlib.asynccontextmanager
async def _closing(writer: asyncio.StreamWriter) -> AsyncIterator[None]:
    try:
        yield
    finally:
        writer.transport.abort()


async def _pumped(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    writer.close()


def served(authority: trustme.CA, name: str) -> ssl.SSLContext:
    """For a server of that name, certified by that authority."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert(name).configure_cert(context)
    return context


def trusting(authority: trustme.CA) -> ssl.SSLContext:
    """For a client that trusts it."""
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return context
