"""The stdio transport: messages as lines, each bounded while it is read."""

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from types import TracebackType

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client._transport import TransportStreams
from mcp.shared.message import SessionMessage
from mcp_types import ErrorData, JSONRPCError, JSONRPCMessage, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse
from mcp_types import jsonrpc_message_adapter as messages

from forge.mcp.faults import UNREADABLE
from forge.mcp.lines import Lines, TooLong, answered_request
from forge.mcp.program import Program
from forge.mcp.servers import Stdio

_SHOWN = 200
"""Characters that a fault shows of a line that is no message."""


class StdioTransport:
    """The streams of a session with the program, which is started on entering and always stopped on leaving."""

    def __init__(self, server: Stdio) -> None:
        self._server = server
        self._program: Program | None = None
        self._reading: asyncio.Task[None] | None = None
        self._writing: asyncio.Task[None] | None = None
        self._asked = set[int | str]()
        self._odd = ""

    @property
    def open(self) -> bool:
        """Whether the server may still send something."""
        return self._reading is not None and not self._reading.done()

    async def __aenter__(self) -> TransportStreams:
        """Start the program. OSError or ValueError where it cannot be."""
        self._program = program = await Program.started(self._server)
        to_session, from_server = anyio.create_memory_object_stream[SessionMessage | Exception]()
        to_server, from_session = anyio.create_memory_object_stream[SessionMessage]()
        self._reading = asyncio.create_task(_until_closed(self._read(program, to_session)))
        self._writing = asyncio.create_task(_until_closed(self._write(program, from_session)))
        return from_server, to_server

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop the program."""
        if self._program is not None:
            await self._program.stop()
        work = [task for task in (self._reading, self._writing) if task is not None]
        for task in work:
            task.cancel()
        await asyncio.gather(*work, return_exceptions=True)

    async def last_words(self) -> str:
        """How the program ended, if it has by itself, and what it wrote last beside its messages."""
        if self._program is None:
            return ""
        code = "" if self._program.code is None else f"it ended with exit code {self._program.code}"
        odd = f"it wrote what is no message: {self._odd!r}" if self._odd else ""
        said = self._program.last_words()
        return "; ".join(filter(None, (code, odd, said and f"it said last: {said}")))

    async def _read(self, program: Program, to_session: MemoryObjectSendStream[SessionMessage | Exception]) -> None:
        lines = Lines(self._server.message_limit)
        async with to_session:
            async for chunk in program.output():
                for line in lines.feed(chunk):
                    for message in self._messages(line):
                        await to_session.send(SessionMessage(message))

    def _messages(self, line: bytes | TooLong) -> list[JSONRPCMessage]:
        """The message in the line; for one that cannot be read, an error for the calls that it may be the answer to."""
        if isinstance(line, TooLong):
            limit = f"at most {self._server.message_limit:,} are read (message_limit)"
            return self._unreadable(line.start, line.end, f"a message of {line.size:,} bytes, and {limit}")
        try:
            message = messages.validate_json(line, by_name=False)
        except ValueError:
            self._odd = line[:_SHOWN].decode(errors="replace").strip()
            # Some servers log to standard output, which is no answer to anything.
            return self._unreadable(line, line, "what is no message of the protocol") if self._odd[:1] == "{" else []
        if isinstance(message, JSONRPCResponse | JSONRPCError) and message.id is not None:
            self._asked.discard(message.id)
        return [message]

    def _unreadable(self, start: bytes, end: bytes, what: str) -> list[JSONRPCMessage]:
        known = answered_request(start, end)
        concerned = {*self._asked} if known is None else self._asked & {known}
        self._asked -= concerned
        error = ErrorData(code=UNREADABLE, message=what)
        return [JSONRPCError(jsonrpc="2.0", id=one, error=error) for one in concerned]

    async def _write(self, program: Program, from_session: MemoryObjectReceiveStream[SessionMessage]) -> None:
        async with from_session:
            async for item in from_session:
                match item.message:
                    case JSONRPCRequest(id=number):
                        self._asked.add(number)
                    case JSONRPCNotification(params={"requestId": int() | str() as cancelled}):
                        self._asked.discard(cancelled)
                    case _:
                        pass
                await program.write(item.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")


async def _until_closed(work: Coroutine[None, None, None]) -> None:
    """The work, until either end of what it reads and writes is closed."""
    with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError, OSError):
        await work
