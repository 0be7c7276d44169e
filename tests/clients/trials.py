"""Trials: each agent does each task, on a real model behind the proxy and on the same model without it."""

import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from forge.backends import Launch, Server, ServerManager
from forge.backends.servers.download import ensure_model
from forge.backends.servers.models import KNOWN
from forge.proxy import ProxyOptions, ProxyServer
from tests.clients import rows, sandbox
from tests.clients.agents import AGENTS, CONTEXT, KEY, MODEL, OUTPUT, Agent, Job
from tests.clients.rows import Row
from tests.clients.tasks import LIMIT, TASKS, Task
from tests.real.llama_server import llama_server

PORTS = 8791, 8792
"""Of the model and of the proxy: always the same, as some prompts hold the address."""


async def trials(names: Sequence[str], runs: int) -> None:
    """Run what results.jsonl does not have yet, all agents once before any twice; each run is written at once."""
    with tempfile.TemporaryDirectory() as folder:
        program = llama_server(ensure_model(KNOWN[MODEL]), Path(folder)).path
        # Agents that send no limit would have a small model repeat itself to the end of its context.
        launch = Launch(
            model=MODEL, executable=program, context_tokens=CONTEXT, port=PORTS[0], flags=("-n", str(OUTPUT))
        )
        async with ServerManager(launch, environment={"OMP_WAIT_POLICY": "passive"}, api_key=KEY) as server:
            model = server.url.removesuffix("/v1")
            async with ProxyServer(Server(model, api_key=KEY), ProxyOptions(port=PORTS[1])) as proxy:
                for agent, task, behind, number in _missing(names, runs):
                    row = await _trial(agent, task, proxy.url if behind else model, behind=behind, number=number)
                    rows.keep([row])
                    sys.stderr.write(f"{row.client} {row.check} {behind=} {number}: {row.passed} {row.seconds} s\n")


def _missing(names: Sequence[str], runs: int) -> Iterator[tuple[Agent, Task, bool, int]]:
    there = {row.key for row in rows.read()}
    for number in range(1, runs + 1):
        for task in TASKS:
            for agent in (AGENTS[name] for name in names):
                for behind in (True, False):
                    key = ("task", agent.pin.name, agent.pin.version, task.name, MODEL, behind, number)
                    if key not in there:
                        yield agent, task, behind, number


async def _trial(agent: Agent, task: Task, url: str, *, behind: bool, number: int) -> Row:
    job = agent.invocation(Job(url, task.ask, brief=True), agent.pin.programs)
    ran = await sandbox.run(job, task.files, LIMIT, "tasks")
    sandbox.note(f"{agent.pin.name} {task.name} {'behind the proxy' if behind else 'alone'} {number}", ran)
    return Row(
        kind="task",
        client=agent.pin.name,
        version=agent.pin.version,
        check=task.name,
        server=MODEL,
        proxy=behind,
        run=number,
        passed=task.done(ran.left, ran.said),
        seconds=round(ran.seconds, 1),
        date=rows.today(),
        commit=rows.COMMIT,
    )
