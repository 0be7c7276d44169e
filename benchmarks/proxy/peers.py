"""The proxies that are measured, each a process of its own in front of one backend."""

import contextlib
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from msgspec import Struct

from benchmarks.peers.environment import guardrails

ROOT = Path(__file__).parents[2]
PATIENCE = 60.0
"""Seconds for a proxy to listen."""

LIMIT, FORGE = "limit", "forge proxy"


class Peer(Struct, frozen=True):
    """A process that listens."""

    name: str
    pid: int
    port: int

    def cpu(self) -> float:
        """Seconds of processor time so far, of all its threads: the process's own clock, clock_getcpuclockid(3)."""
        return time.clock_gettime_ns((~self.pid << 3) | 2) / 1e9

    def memory(self) -> float:
        """MiB that it holds."""
        status = Path(f"/proc/{self.pid}/status").read_text(encoding="utf-8")
        return int(status.partition("VmRSS:")[2].split()[0]) / 1024


def commands(backend: int) -> dict[str, list[str]]:
    """The peers' commands; PORT stands for the port."""
    python = [sys.executable, "-m"]
    served = f"http://127.0.0.1:{backend}"
    forge = ["forge", "proxy", "--backend", served, "--port", "PORT", "--slots", "256", "--model", ""]
    found = {
        LIMIT: [*python, "benchmarks.proxy.limit", str(backend), "PORT"],
        "httpx on uvicorn, no look inside": [*python, "benchmarks.proxy.passthrough", str(backend), "PORT"],
        FORGE: [*python, *forge],
    }
    if (other := guardrails()) is not None:
        their = ["-m", "forge.proxy", "--backend-url", f"{served}/v1", "--port", "PORT", "--no-serialize"]
        found["forge-guardrails"] = [str(other), *their]
    return found


@contextlib.contextmanager
def running() -> Iterator[tuple[Peer, dict[str, Peer]]]:
    """The backend, and the proxies in front of it."""
    with contextlib.ExitStack() as stack:
        log = stack.enter_context(tempfile.TemporaryFile())
        first = stack.enter_context(_process([sys.executable, "-m", "benchmarks.proxy.backend"], log))
        assert first.stdout is not None
        backend = Peer("backend", first.pid, int(first.stdout.readline()))
        peers = {}
        for name, command in commands(backend.port).items():
            port = _free_port()
            words = [word.replace("PORT", str(port)) for word in command]
            process = stack.enter_context(_process(words, log))
            _wait(port, process, name, log)
            peers[name] = Peer(name, process.pid, port)
        yield backend, peers


@contextlib.contextmanager
def _process(command: list[str], log: IO[bytes]) -> Iterator[subprocess.Popen[bytes]]:
    # forge-guardrails has a package `forge` as well: its environment must not find this one.
    here = {} if command[0] != sys.executable else {"cwd": ROOT}
    env = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=log, env=env, cwd=here.get("cwd", "/"))  # noqa: S603
    try:
        yield process
    finally:
        process.terminate()
        process.communicate()


def _wait(port: int, process: subprocess.Popen[bytes], name: str, log: IO[bytes]) -> None:
    end = time.monotonic() + PATIENCE
    while process.poll() is None and time.monotonic() < end:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1.0):
            return
        time.sleep(0.1)
    log.seek(0)
    raise SystemExit(f"{name} does not listen: {log.read()[-2000:].decode(errors='replace')}")


def _free_port() -> int:
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        port: int = made.getsockname()[1]
        return port
