"""Workers: peers in processes of their own, asked over pipes; kept for the next run, ended with this process."""

import asyncio
import os
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from forge.evals.player import PlayerMissing

HERE = Path(__file__).parent
_idle: dict[Path, list["Worker"]] = {}


class Worker:
    """A process that reads orders and answers, and tells what it does, a line of JSON each."""

    def __init__(self, python: Path, script: Path) -> None:
        # forge-guardrails has a package named `forge` too: ours must not be on its path.
        own = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        pipe = subprocess.PIPE
        self._process = subprocess.Popen([python, "-u", script], stdin=pipe, stdout=pipe, env=own)  # noqa: S603

    def tell(self, said: object) -> None:
        """Write a line."""
        assert self._process.stdin is not None
        self._process.stdin.write(msgspec.json.encode(said) + b"\n")
        self._process.stdin.flush()

    async def heard(self) -> dict[str, Any]:
        """The next line. RuntimeError if the process has ended."""
        assert self._process.stdout is not None
        line = await asyncio.to_thread(self._process.stdout.readline)
        if not line:
            raise RuntimeError(f"the peer's process ended with code {self._process.wait()}")
        said: dict[str, Any] = msgspec.json.decode(line)
        return said

    def end(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()


@asynccontextmanager
async def worker(script: str, python: Callable[[], Path | None]) -> AsyncIterator[Worker]:
    """A process of that script, which nobody else uses meanwhile; ended unless it has done what it was told."""
    path = HERE / script
    free = _idle.setdefault(path, [])
    if not free:
        interpreter = await asyncio.to_thread(python)
        if interpreter is None:
            raise PlayerMissing(f"the environment of {script} cannot be made (benchmarks/peers/README.md)")
        free.append(Worker(interpreter, path))
    one = free.pop()
    try:
        yield one
    except BaseException:
        one.end()
        raise
    free.append(one)
