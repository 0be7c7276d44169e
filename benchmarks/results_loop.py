"""The loop measured: CPU a turn for each peer, in process and over HTTP, against the length of the run."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import Literal

from msgspec import Struct

from benchmarks.peers.environment import guardrails

PEERS = Path(__file__).parent / "peers"
TURNS = (10, 50, 200, 1000)
ROUNDS = {10: 15, 50: 11, 200: 7, 1000: 5}
WARM_UP = 3

Mode = Literal["stub", "http"]
BASE = "raw_msgspec"
Costs = dict[str, dict[int, float]]
"""By peer and turns of a run: CPU microseconds a turn, the median of the rounds."""


class Loops(Struct, frozen=True, kw_only=True):
    """Both modes of the loop."""

    stub: Costs
    http: Costs


def interpreters() -> dict[str, str]:
    """The peers that can be measured here, each with its interpreter."""
    python = guardrails()
    own = dict.fromkeys((BASE, "forge_new", "forge_threads"), sys.executable)
    return own if python is None else {**own, "forge_guardrails": str(python)}


def loops() -> Loops:
    """Every peer in both modes, taking turns in each round, so that they share the machine's moods."""
    with ExitStack() as stack:
        base_url = stack.enter_context(server())
        workers = {peer: stack.enter_context(worker(python, peer, base_url)) for peer, python in interpreters().items()}
        return Loops(stub=measured(workers, "stub"), http=measured(workers, "http"))


class Worker:
    """A peer in a process of its own."""

    def __init__(self, peer: str, process: subprocess.Popen[str]) -> None:
        self._peer = peer
        self._process = process

    def cpu(self, turns: int, mode: Mode) -> float:
        """CPU microseconds a turn of one run."""
        asked, answered = self._process.stdin, self._process.stdout
        if asked is None or answered is None:
            raise RuntimeError(f"{self._peer} has no pipes")
        asked.write(json.dumps({"turns": turns, "mode": mode}) + "\n")
        asked.flush()
        line = answered.readline()
        if not line:
            raise RuntimeError(f"the peer {self._peer} ended in a run of {turns} turns ({mode}); see above")
        return float(json.loads(line)["cpu"]) / turns


def measured(workers: Mapping[str, Worker], mode: Mode) -> Costs:
    """The medians of one mode; who begins changes with each round."""
    costs: Costs = {peer: {} for peer in workers}
    for one in workers.values():
        for _ in range(WARM_UP):
            one.cpu(TURNS[0], mode)
    names = [*workers]
    for turns in TURNS:
        samples: dict[str, list[float]] = {peer: [] for peer in workers}
        for number in range(ROUNDS[turns]):
            first = number % len(names)
            for peer in (*names[first:], *names[:first]):
                samples[peer].append(workers[peer].cpu(turns, mode))
        for peer, values in samples.items():
            costs[peer][turns] = median(values)
    return costs


@contextmanager
def server() -> Iterator[str]:
    """The fake model server; its base URL."""
    with process(sys.executable, "server.py") as started:
        if started.stdout is None:
            raise RuntimeError("the server has no output")
        yield f"http://127.0.0.1:{int(started.stdout.readline())}/v1"


@contextmanager
def worker(python: str, peer: str, base_url: str) -> Iterator[Worker]:
    """A worker, ended with the block."""
    with process(python, "worker.py", peer, base_url) as started:
        yield Worker(peer, started)


@contextmanager
def process(python: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A child that speaks in lines; it ends when its input does."""
    with subprocess.Popen(  # noqa: S603 - our own programs
        [python, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=PEERS,
        env=environment(),
    ) as started:
        try:
            yield started
        finally:
            if started.stdin is not None:
                started.stdin.close()


def environment() -> dict[str, str]:
    """This environment without what would have peers see another's packages or a proxy, with bytecode kept."""
    left_out = {"PYTHONPATH", "PYTHONDONTWRITEBYTECODE"}
    plain = {name: value for name, value in os.environ.items() if name not in left_out}
    return {**plain, "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1", "PYTHONHASHSEED": "0"}
