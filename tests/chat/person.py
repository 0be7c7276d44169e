"""A person at a pseudo-terminal: types, and waits for what is to be seen."""

import asyncio
import fcntl
import os
import pty
import re
import struct
import sys
import termios
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

_ESCAPES = re.compile(r"\x1b(?:\[[0-9;?]*[A-Za-z]|[=>])")
ENTER, CTRL_C, CTRL_D, UP, ALT_ENTER, CTRL_U = "\r", "\x03", "\x04", "\x1b[A", "\x1b\r", "\x15"


class Person:
    """The one at the terminal. `raw` is all that came; `code` waits for the end, for the exit code."""

    def __init__(self, ours: int, process: asyncio.subprocess.Process) -> None:
        self._ours, self.process = ours, process
        self.raw = ""
        self._came = asyncio.Event()
        self._read = 0
        asyncio.get_running_loop().add_reader(ours, self._take)

    def _take(self) -> None:
        try:
            came = os.read(self._ours, 65536)
        except OSError:  # the other end is closed
            came = b""
        if not came:
            asyncio.get_running_loop().remove_reader(self._ours)
        self.raw += came.decode(errors="replace")
        self._came.set()

    @property
    def seen(self) -> str:
        """What came, without what moves the cursor and colours."""
        return _ESCAPES.sub("", self.raw)

    async def sees(self, words: str) -> str:
        """Wait for the words, after those that were last waited for; what came up to them."""
        while (at := self.seen.find(words, self._read)) < 0:
            self._came.clear()
            await self._came.wait()
        before, self._read = self._read, at + len(words)
        return self.seen[before : self._read]

    def types(self, *keys: str) -> None:
        """Type these."""
        os.write(self._ours, "".join(keys).encode())

    async def code(self) -> int:
        """The exit code."""
        return await self.process.wait()


@asynccontextmanager
async def chatting(folder: Path, *words: str, name: str = "chat", **environment: str) -> AsyncIterator[Person]:
    """A person at `forge chat`, or at another command, in that folder."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
    plainly = {name: value for name, value in os.environ.items() if name not in {"NO_COLOR", "COLUMNS", "LINES"}}
    env = {**plainly, "FORGE_STATE": str(folder / "state"), "TERM": "xterm-256color", **environment}
    command = [sys.executable, "-m", "forge", name, *words]
    process = await asyncio.create_subprocess_exec(
        *command, cwd=folder, env=env, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
    )
    os.close(theirs)
    person = Person(ours, process)
    try:
        async with asyncio.timeout(120):  # only so that a test ends; a loaded machine may take long to start
            yield person
    except TimeoutError:
        raise AssertionError(f"this is what was seen: {person.seen[-4000:]}") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
        asyncio.get_running_loop().remove_reader(ours)
        os.close(ours)
