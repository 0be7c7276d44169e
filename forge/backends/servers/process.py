"""A server's process: started, polled until it is ready, and explained if it exits."""

import asyncio
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import httpx
from msgspec import Struct
from platformdirs import user_state_path

from forge.backends.http_client import new_client
from forge.backends.servers.launch import HOST
from forge.errors import BackendError, quantity
from forge.masking import Hidden
from forge.processes import needed

# Why a server exited: its exit code, its last lines, and likely remedies.

_MEMORY = (
    "Memory does not suffice: take a smaller context_tokens, cache_type_k='q8_0' and cache_type_v='q8_0', fewer "
    "slots or gpu_layers, or a smaller model."
)
_NO_MEMORY = r"out of memory|failed to allocate|OutOf(Device)?Memory|cudaMalloc|No available memory|KV cache is needed"
_HINTS = (
    (r"error while loading shared libraries|Library not loaded", "A library that the server needs is not installed."),
    (r"GLIBC(XX)?_[\d.]+' not found", "The server was built for a newer system than this."),
    (r"Exec format error|Permission denied", "Is it a program for this machine, and executable (chmod +x)?"),
    (r"requires flash_attn", "A quantised cache_type_v needs flash_attention='on'."),
    (_NO_MEMORY, _MEMORY),
    (r"failed to open GGUF|No such file or directory|does not exist", "Does the model file exist?"),
    (r"invalid magic|magic characters|failed to read magic", "The model is not a GGUF file, or it is damaged."),
    (r"unknown model architecture|unknown (pre-)?tokenizer", "The model is newer than this server: update the server."),
    (
        r"invalid argument|unrecognized arguments?|unknown argument|unknown option|ambiguous option",
        "The server does not know an option: it may be older or newer than the option is.",
    ),
    (r"couldn't bind|[Aa]ddress already in use|failed to bind", "Another program has taken the port."),
    (r"\b(401|403)\b|gated|Unauthorized", "The hub asks for a token: environment={'HF_TOKEN': …}."),
    (r"Could not resolve host|Name or service not known|failed to download", "The model hub cannot be reached."),
)
"""Patterns in the last lines, and what they usually mean; the first match counts."""

_PROCESSOR = (
    "The server was built for a newer processor than this. Take a build for this machine, or run the model inside "
    "forge: --backend local, in Python forge.backends.Local(…)."
)
_BY_CODE = {
    127: "The program, or a library of it, was not found.",
    132: _PROCESSOR,
    0xC000001D: _PROCESSOR,  # the same on Windows
    137: "Something killed it: often the system, because memory ran out.",
}


def explain_exit(program: str, code: int, tail: Sequence[str], log: object, when: str = "before it was ready") -> str:
    """What happened, a likely remedy, the log's path and last lines; `code` is a `Process.code`."""
    said = "\n".join(tail)
    # A missing processor instruction is certain, whatever the last lines contain.
    likely = (
        "" if _BY_CODE.get(code) is _PROCESSOR else next((hint for words, hint in _HINTS if re.search(words, said)), "")
    )
    hint = likely or _BY_CODE.get(code, "")
    printed = "\n".join(f"  | {line}" for line in tail) or "  | (nothing)"
    by = f" ({signal.Signals(code - 128).name})" if code - 128 in {*signal.Signals} else ""
    return f"{program} ended with exit code {code}{by} {when}. {hint}\nIts log: {log}\nIt said:\n{printed}"


# A server program as a child process: its output goes to a log, and it is always stopped.

_SUPERVISOR = Path(__file__).with_name("supervisor.py")
EXIT_GRACE = 10.0
"""Seconds that a server has to exit after it is asked to."""

_KEPT = 20
"""Maximum number of logs; the oldest are removed when a server starts."""

_TAIL_BYTES = 16_000
_TAIL_LINES = 12
_LINE = 300


def state_folder() -> Path:
    """The folder for journals and server logs: FORGE_STATE, otherwise the user's state folder."""
    chosen = os.environ.get("FORGE_STATE")
    return Path(chosen) if chosen else user_state_path("forge")


def log_folder() -> Path:
    """The folder for server logs."""
    return state_folder() / "servers"


def _stat(log: Path) -> os.stat_result | None:
    """The log's status; None if another process has just removed it."""
    with suppress(FileNotFoundError):
        return log.stat()
    return None


class Process:
    """A running program. It ends on `stop`, and when this process ends for any reason.

    It gets the necessary part of this process's environment (`forge.backends.servers.launch`) and all of `environment`.
    OSError if the log cannot be written. Output goes to `log`, a file that only its owner can read.
    """

    def __init__(
        self, command: Sequence[str], name: str, environment: Mapping[str, str], *, grace: float = EXIT_GRACE
    ) -> None:
        self._grace = grace
        folder = log_folder()
        folder.mkdir(parents=True, exist_ok=True)
        kept = {log: found.st_mtime for log in folder.glob("*.log") if (found := _stat(log)) is not None}
        for old in sorted(kept, key=kept.__getitem__, reverse=True)[_KEPT - 1 :]:
            old.unlink(missing_ok=True)
        descriptor, path = tempfile.mkstemp(prefix=f"{name}-", suffix=".log", dir=folder)
        self.log = Path(path)
        with os.fdopen(descriptor, "wb") as output:
            self._supervisor = subprocess.Popen(  # noqa: S603
                [sys.executable, "-I", str(_SUPERVISOR), str(grace), *command],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**needed(), **environment},
                start_new_session=True,  # Ctrl-C in a terminal goes to forge, which then stops the server
            )

    @property
    def code(self) -> int | None:
        """The exit code, None while it runs; 128 and the signal's number if a signal ended it."""
        code = self._supervisor.poll()
        return code if code is None or code >= 0 else 128 - code

    def tail(self, secrets: Iterable[str] = ()) -> list[str]:
        """The last lines of output, without secrets and control characters, cut to size."""
        with self.log.open("rb") as log:
            log.seek(0, os.SEEK_END)
            begin = max(0, log.tell() - _TAIL_BYTES)
            log.seek(begin)
            text = log.read(_TAIL_BYTES).decode(errors="replace").replace("\r", "\n")
        if begin:  # reading may start in the middle of a secret
            text = text.partition("\n")[2] or text[_LINE:]
        lines = ["".join(char for char in line if char.isprintable()).strip() for line in text.split("\n")]
        hidden = Hidden(secrets)
        return [hidden.without(line)[:_LINE] for line in [line for line in lines if line][-_TAIL_LINES:]]

    async def stop(self) -> None:
        """Ask the program to exit and wait for that, at most a little longer than its grace period.

        If the caller is cancelled while waiting, the supervisor finishes the job.
        """

        def stop() -> None:
            assert self._supervisor.stdin is not None  # noqa: S101 - it was opened as a pipe
            try:
                # Write a byte, because a forked child of this process may keep the pipe open.
                self._supervisor.stdin.write(b"\n")
                self._supervisor.stdin.close()
            except (BrokenPipeError, ValueError):  # it has exited already, or was stopped before
                pass
            try:
                self._supervisor.wait(self._grace + 5.0)
            except subprocess.TimeoutExpired:
                self._supervisor.kill()
                self._supervisor.wait()

        await asyncio.shield(asyncio.to_thread(stop))


# Poll a server until it is ready, with back-off, progress reports and a timeout.

_FIRST, _LONGEST = 0.02, 0.5
"""Seconds between two polls: the first and the maximum."""

_QUIET = 2.0
"""Seconds before the first progress report and between two."""


class Loading(Struct, frozen=True, kw_only=True):
    """A server that is still loading, after how many seconds, and its last line of output."""

    seconds: float
    said: str


class Died(BackendError):  # noqa: N818 - what happened is in the name
    """The server exited before it was ready; the message has its last output and a likely remedy."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code


Tell = Callable[[Loading], None]


async def until_ready(
    process: Process, program: str, url: str, *, load_timeout: float, tell: Tell, secrets: tuple[str, ...] = ()
) -> None:
    """Return when /health answers 200. Died if the server exits first, BackendError after `load_timeout` seconds."""
    began = time.monotonic()
    told, pause = began, _FIRST
    async with new_client(url, timeout=_QUIET) as http:
        while True:
            with suppress(httpx.HTTPError, TimeoutError):
                # Only the status counts: a loading server answers 503.
                async with asyncio.timeout(_QUIET), http.stream("GET", f"{url}/health") as response:
                    if response.status_code == httpx.codes.OK:
                        return
            if (code := process.code) is not None:
                said = process.tail(secrets)
                raise Died(explain_exit(program, code, said, process.log), code)
            now = time.monotonic()
            if now - began > load_timeout:
                printed = "\n".join(f"  | {line}" for line in process.tail(secrets))
                raise BackendError(
                    f"{program} is not ready after {quantity(round(load_timeout), 'second')}; it was stopped. "
                    f"If it only needs longer, say load_timeout=…\nIts log: {process.log}\nIt said:\n{printed}"
                )
            if now - told > _QUIET:
                told = now
                tell(Loading(seconds=now - began, said=next(iter(process.tail(secrets)[-1:]), "")))
            await asyncio.sleep(pause)
            pause = min(pause * 1.5, _LONGEST)


def free_port() -> int:
    """A port that is currently free."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port


def is_free(port: int) -> bool:
    """Whether a server could listen on the port."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
        return True
