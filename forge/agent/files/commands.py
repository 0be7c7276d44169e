"""Runs a program in a folder, without a shell and with a timeout; its whole process group ends with it."""

import asyncio
import os
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from forge.errors import ToolResolutionError
from forge.processes import GRACE, end_group, exit_code, needed

KEPT = 1_000_000
"""Maximum bytes of an output to keep: half from its beginning, half from its end."""

_PLAIN = {
    "TERM": "dumb",
    "NO_COLOR": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
}


class Ran(Struct, frozen=True, kw_only=True):
    """A finished command. `code` is None after a timeout, and minus the signal's number if a signal ended it."""

    code: int | None
    output: str


async def run_process(command: Sequence[str], folder: Path, seconds: float, environment: Mapping[str, str]) -> Ran:
    """Run the command without input; every process that it started ends with it, also on cancellation.

    ToolResolutionError if it cannot be started.
    """
    output = _Output()
    source, sink = os.pipe()
    try:
        pipe = os.fdopen(source, "rb")
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(lambda: output, pipe)
        process = _started(command, folder, environment, sink)
    finally:
        os.close(sink)
    try:
        try:
            code = await exit_code(process, seconds)
        finally:
            await end_group(process)
        with suppress(TimeoutError):  # a process that left the group may keep the pipe open
            async with asyncio.timeout(GRACE):
                await output.ended.wait()
    finally:
        transport.close()
    return Ran(code=code, output=output.text())


class _Output(asyncio.Protocol):
    """Collects a command's output as it arrives."""

    def __init__(self) -> None:
        self.ended = asyncio.Event()
        self._head, self._tail, self._missing = bytearray(), bytearray(), 0

    def data_received(self, data: bytes) -> None:
        room = KEPT // 2 - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        if len(self._tail) > KEPT:  # rarely, because each cut copies half of it
            self._missing += len(self._tail) - KEPT // 2
            del self._tail[: -KEPT // 2]

    def connection_lost(self, _: Exception | None) -> None:
        self.ended.set()

    def text(self) -> str:
        """The output, with a line in place of the omitted part."""
        between = f"\n[{self._missing} bytes are missing here]\n".encode() if self._missing else b""
        return (self._head + between + self._tail).decode(errors="replace")


def _started(
    command: Sequence[str], folder: Path, environment: Mapping[str, str], sink: int
) -> subprocess.Popen[bytes]:
    """Start the process without a cancellation point, so that its group is always known and ended.

    Cancelling asyncio's own start kills only the process, not what it has started.
    """
    try:
        return subprocess.Popen(  # noqa: S603
            command,
            cwd=folder,
            env={**needed(), **_PLAIN, **environment},
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=sink,
            start_new_session=True,
        )
    except FileNotFoundError:
        program = command[0][:200]
        wrong = (
            f"there is no program {program!r} here; there is no shell either, so its built-in commands are not known"
        )
        if len(command) == 1 and " " in program.strip():
            wrong = f"there is no program {program!r}; give each word by itself: {program.split()!r}"
        raise ToolResolutionError(wrong) from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in an argument
        raise ToolResolutionError(f"{command[0][:200]!r} cannot be started: {error}") from None
