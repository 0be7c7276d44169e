"""A server program as a child process: its output goes to a log, and it is always stopped."""

import asyncio
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from platformdirs import user_state_path

from forge.backends.servers.environment import needed
from forge.masking import Hidden

_SUPERVISOR = Path(__file__).with_name("supervisor.py")
EXIT_GRACE = 10.0
"""Seconds that a server has to exit once it is asked to."""

_KEPT = 20
"""Maximum number of logs; the oldest are removed when a server starts."""

_TAIL_BYTES = 16_000
_TAIL_LINES = 12
_LINE = 300


def state_folder() -> Path:
    """Where journals and the logs of servers are kept: FORGE_STATE, else the user's state folder."""
    chosen = os.environ.get("FORGE_STATE")
    return Path(chosen) if chosen else user_state_path("forge")


def log_folder() -> Path:
    """Where the logs of servers are kept."""
    return state_folder() / "servers"


class Process:
    """A running program. It ends when `stop` is called, and when this process ends, in whichever way.

    It has what it needs of this process's environment (`forge.backends.servers.environment`), and all of `environment`.
    Starting raises OSError if the log cannot be written. What the program prints goes to `log`, a file that only
    its user can read.
    """

    def __init__(
        self, command: Sequence[str], name: str, environment: Mapping[str, str], *, grace: float = EXIT_GRACE
    ) -> None:
        self._grace = grace
        folder = log_folder()
        folder.mkdir(parents=True, exist_ok=True)
        _prune(folder)
        descriptor, path = tempfile.mkstemp(prefix=f"{name}-", suffix=".log", dir=folder)
        self.log = Path(path)
        with os.fdopen(descriptor, "wb") as output:
            self._supervisor = subprocess.Popen(  # noqa: S603
                [sys.executable, "-I", str(_SUPERVISOR), str(grace), *command],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**needed(), **environment},
                start_new_session=True,  # Ctrl-C in a terminal is for forge, which then stops the server in order
            )

    @property
    def code(self) -> int | None:
        """The exit code, None while it runs; 128 and the signal's number if a signal ended it."""
        code = self._supervisor.poll()
        return code if code is None or code >= 0 else 128 - code

    def tail(self, secrets: Iterable[str] = ()) -> list[str]:
        """The last lines that it printed, without the secrets and without control characters, cut to size."""
        with self.log.open("rb") as log:
            log.seek(0, os.SEEK_END)
            begin = max(0, log.tell() - _TAIL_BYTES)
            log.seek(begin)
            text = log.read(_TAIL_BYTES).decode(errors="replace").replace("\r", "\n")
        if begin:  # what is read may begin in the middle of a secret
            text = text.partition("\n")[2] or text[_LINE:]
        lines = ["".join(char for char in line if char.isprintable()).strip() for line in text.split("\n")]
        hidden = Hidden(secrets)
        return [hidden.without(line)[:_LINE] for line in [line for line in lines if line][-_TAIL_LINES:]]

    async def stop(self) -> None:
        """Ask it to end, and wait until it has, which takes little more than its grace at most.

        Who is cancelled while waiting leaves the supervisor to it.
        """
        await asyncio.shield(asyncio.to_thread(self._stop))

    def _stop(self) -> None:
        assert self._supervisor.stdin is not None  # noqa: S101 - it was opened as a pipe
        try:
            # A byte, for a forked child of this process may hold the pipe open.
            self._supervisor.stdin.write(b"\n")
            self._supervisor.stdin.close()
        except (BrokenPipeError, ValueError):  # it has ended already; it was stopped already
            pass
        try:
            self._supervisor.wait(self._grace + 5.0)
        except subprocess.TimeoutExpired:
            self._supervisor.kill()
            self._supervisor.wait()


def _prune(folder: Path) -> None:
    logs = sorted(folder.glob("*.log"), key=lambda log: log.stat().st_mtime, reverse=True)
    for log in logs[_KEPT - 1 :]:
        log.unlink(missing_ok=True)
