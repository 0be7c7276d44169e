"""All runs: each peer on each task with each seed, written down one by one, so that an interrupted series goes on."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
from msgspec import Struct

from benchmarks.peers.environment import guardrails
from benchmarks.reliability import forge_runs, plain
from benchmarks.reliability.forge_runs import ABLATED
from benchmarks.reliability.gate import Gate
from benchmarks.reliability.tasks import TASKS, Verdict
from forge.backends.servers import KNOWN, LlamaCpp, Settings, ensure_model

FILE = Path(__file__).with_name("runs.jsonl")
MODELS = ("qwen2.5-coder-0.5b", "qwen2.5-coder-1.5b")


class Run(Struct, frozen=True, kw_only=True):
    """One run: how the task was left, how the run ended by its own word, and how often the model was asked."""

    model: str
    task: str
    peer: str
    seed: int
    verdict: Verdict
    end: str
    calls: int


Do = Callable[[str, int, str], tuple[Verdict, str]]
"""A peer: from a task's name, a seed and the server's address to the verdict and the end."""


def recorded() -> list[Run]:
    """What has been run so far."""
    lines = FILE.read_bytes().splitlines() if FILE.exists() else []
    return [msgspec.json.decode(line, type=Run) for line in lines]


def perform(model: str, tasks: list[str], peers: list[str], seeds: range) -> None:
    """Run what has not been run yet, and write each run down."""
    done = {(r.model, r.task, r.peer, r.seed) for r in recorded()}
    for task in tasks:
        left = [(p, s) for s in seeds for p in peers if (model, task, p, s) not in done]
        if left:
            _series(model, task, left)


def _series(model: str, task: str, left: list[tuple[str, int]]) -> None:
    context = TASKS[task](0).context
    server = LlamaCpp(Settings(path=ensure_model(KNOWN[model]), context_tokens=context))
    gate = Gate(server.url)
    try:
        with _peers() as does:
            for peer, seed in left:
                gate.begin(seed)
                verdict, end = does[peer](task, seed, gate.url)
                _note(Run(model=model, task=task, peer=peer, seed=seed, verdict=verdict, end=end, calls=gate.calls))
    finally:
        gate.stop()
        server.stop()


def _note(run: Run) -> None:
    with FILE.open("ab") as file:
        file.write(msgspec.json.encode(run) + b"\n")
    sys.stderr.write(f"{run.model}  {run.task}  {run.seed}  {run.peer}: {run.verdict} ({run.end}, {run.calls} calls)\n")


PEERS = (
    "plain loop",
    "forge-guardrails native",
    "forge-guardrails prompted",
    "forge native",
    "forge prompted",
    "forge constrained",
    "forge auto",
)


@contextmanager
def _peers() -> Iterator[dict[str, Do]]:
    with _worker() as ask:
        yield {
            "plain loop": _here(plain.run),
            "forge-guardrails native": lambda task, seed, url: ask(task, seed, url, "native"),
            "forge-guardrails prompted": lambda task, seed, url: ask(task, seed, url, "prompt"),
            "forge native": _here(lambda task, url: forge_runs.run(task, url, "native")),
            "forge prompted": _here(lambda task, url: forge_runs.run(task, url, "prompted")),
            "forge constrained": _here(lambda task, url: forge_runs.run(task, url, "constrained")),
            "forge auto": _here(lambda task, url: forge_runs.run(task, url, None)),
            **{f"forge auto without {what}": _without(what) for what in ABLATED},
        }


def _without(what: str) -> Do:
    return _here(lambda task, url: forge_runs.run(task, url, None, what))


def _here(run: Callable[..., str]) -> Do:
    def do(name: str, seed: int, url: str) -> tuple[Verdict, str]:
        task = TASKS[name](seed)
        end = run(task, url)
        return task.verdict, end

    return do


@contextmanager
def _worker() -> Iterator[Callable[[str, int, str, str], tuple[Verdict, str]]]:
    """forge-guardrails in its own environment, asked over a pipe."""
    python = guardrails()
    if python is None:
        raise SystemExit("forge-guardrails cannot be installed; leave it out with --peers")
    script = Path(__file__).with_name("guardrails_worker.py")
    command = [str(python), str(script)]
    # Its package is named `forge` too: ours must not be on its path.
    own = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=own) as process:  # noqa: S603

        def ask(name: str, seed: int, url: str, mode: str) -> tuple[Verdict, str]:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(json.dumps({"name": name, "seed": seed, "url": url, "mode": mode}) + "\n")
            process.stdin.flush()
            answer = json.loads(process.stdout.readline())
            return answer["verdict"], answer["end"]

        try:
            yield ask
        finally:
            process.terminate()
