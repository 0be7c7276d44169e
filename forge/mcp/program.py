"""A stdio server as a child process: its standard error is kept for faults, and it is always stopped."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import suppress

from mcp.client.stdio import get_default_environment

from forge.mcp.servers import Stdio

_CHUNK = 1 << 16
_TAIL = 600
"""Bytes that are kept of the end of what it writes to standard error."""

_LINES = 3
"""Lines of these that a fault shows."""

_GRACE = 2.0
"""Seconds to exit, first once its input has ended, then once it was told to terminate."""

_POLL = 0.02
"""Seconds between two looks whether it has ended."""


class Program:
    """A running program. `code` is the exit code if it ended by itself."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.code: int | None = None
        self._process = process
        self._stopping = False
        self._said = bytearray()
        self._listening = asyncio.create_task(self._listen())

    @classmethod
    async def started(cls, server: Stdio) -> "Program":
        """The program, started. OSError or ValueError where it cannot be."""
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            *server.command,
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            env={**get_default_environment(), **server.env},
            cwd=server.cwd,
            start_new_session=True,  # Ctrl-C in a terminal is for forge, which then stops the server in order
        )
        return cls(process)

    async def output(self) -> AsyncIterator[bytes]:
        """What it writes to standard output, in pieces, until it closes that."""
        while self._process.stdout is not None and (chunk := await self._process.stdout.read(_CHUNK)):
            yield chunk
        if not self._stopping and await self._exited():
            self.code = self._process.returncode

    async def write(self, data: bytes) -> None:
        """Give it that on standard input. OSError where it reads no more."""
        if self._process.stdin is not None:
            self._process.stdin.write(data)
            await self._process.stdin.drain()

    async def stop(self) -> None:
        """End its input and wait for it; then terminate it and all that it has started; then kill them."""
        self._stopping = True
        if self._process.stdin is not None:
            self._process.stdin.close()
        if not await self._exited():
            self._signal(kill=False)
            if not await self._exited():
                self._signal(kill=True)
                await self._exited()
        self._listening.cancel()

    def last_words(self) -> str:
        """The last lines that it wrote to standard error."""
        return " / ".join(bytes(self._said).decode(errors="replace").splitlines()[-_LINES:]).strip(" /")

    async def _listen(self) -> None:
        while self._process.stderr is not None and (chunk := await self._process.stderr.read(_CHUNK)):
            self._said += chunk
            del self._said[:-_TAIL]

    async def _exited(self) -> bool:
        """Whether it ends before long."""
        now = asyncio.get_running_loop().time
        end = now() + _GRACE
        # Not `process.wait()`: it also waits for whoever has inherited the pipes.
        while self._process.returncode is None and now() < end:  # noqa: ASYNC110
            await asyncio.sleep(_POLL)
        return self._process.returncode is not None

    def _signal(self, *, kill: bool) -> None:
        with suppress(ProcessLookupError):
            if sys.platform == "win32":
                self._process.kill() if kill else self._process.terminate()
            else:  # it is the leader of a group of its own
                os.killpg(self._process.pid, signal.SIGKILL if kill else signal.SIGTERM)
