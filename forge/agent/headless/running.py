"""Run a task: one run of its workflow, recorded in a journal, from which an interrupted one goes on."""

import time
from itertools import pairwise
from pathlib import Path
from typing import Unpack

from forge.agent.agent import Agent
from forge.agent.files.root import Root
from forge.agent.headless.build import default_agent, workflow_of
from forge.agent.headless.gates import Gates
from forge.agent.headless.overview import overview
from forge.agent.headless.record import Record, record_of, told
from forge.agent.headless.task import AgentTask
from forge.connection import AnyBackend
from forge.errors import DefinitionError, ForgeError
from forge.journal.records import read_journal
from forge.journal.replaying import Step, states
from forge.runtime.recovery import resume_journal
from forge.runtime.runs import run
from forge.runtime.watching import Watching
from forge.workflow.workflow import Workflow
from stages.effect import Execute, Results, Unresolved
from stages.state import Awaiting, Done


async def run_task(
    task: AgentTask,
    *,
    journal_file: Path,
    agent: Agent | None = None,
    backend: AnyBackend | None = None,
    resume: bool = False,
    **watching: Unpack[Watching],
) -> Record:
    """Work on the task with nobody there, and record the run in the journal file; the record says how it ended.

    `agent`: whose instructions, tools and options are used; None: forge's own. `backend`: instead of the agent's.
    `resume`: go on with the run in the journal, which was interrupted. DefinitionError for what does not fit together,
    JournalError for a journal that cannot be gone on from, before anything happens.
    """
    where = backend if backend is not None else agent.backend if agent is not None else None
    if where is None:
        raise DefinitionError(("backend: the task names no agent with one; say where the model is",))
    gates = Gates(task.gates, Path(task.folder), task.gate_attempts)
    workflow, bounds = workflow_of(task, agent or default_agent(where), gates)
    began = time.monotonic()
    if resume:
        gates.made = _attempts(_interrupted(journal_file, workflow), workflow)
        ended = await resume_journal(workflow, journal_file, backend=where, **watching)
    else:
        recorded: Watching = {**watching, "journal": str(journal_file)}
        ended = await run(workflow, await _message(task, gates), backend=where, **recorded)
    seconds = time.monotonic() - began
    return record_of(
        told(ended, gates),
        _steps(journal_file, workflow),
        bounds,
        gates,
        task=task.task,
        seconds=seconds,
        journal=str(journal_file),
    )


async def _message(task: AgentTask, gates: Gates) -> str:
    """The files as they are, what is wrong now, and the task, last: small models go by what they have read last."""
    failure = await gates.failure()
    files = overview(Root(task.folder, follow_links=False), task.limits, f"{task.task}\n{failure}")
    now = f"Files as they are now:\n\n{files}" if files else ""
    return "\n\n".join(filter(None, (now, f"Now {failure}" if failure else "", task.task)))


def _steps(journal: Path, workflow: Workflow) -> tuple[Step, ...]:
    """The states of the run; none where it ended before there was a journal."""
    return tuple(states(read_journal(journal), workflow)) if journal.exists() else ()


def _interrupted(journal: Path, workflow: Workflow) -> tuple[Step, ...]:
    """The states of the run in the journal. ForgeError if it has ended with an outcome."""
    steps = tuple(states(read_journal(journal), workflow))
    if isinstance(steps[-1].state.phase, Done):
        raise ForgeError(f"the run in {journal} has ended; to work on the task again, begin a new one")
    return steps


def _attempts(steps: tuple[Step, ...], workflow: Workflow) -> int:
    """How often gates have failed in the run."""
    ends = workflow.rules.terminal
    return sum(
        isinstance(result, Unresolved) and call.name in ends
        for before, step in pairwise(steps)
        if isinstance(step.outcome, Results)
        and isinstance(before.state.phase, Awaiting)
        and isinstance(before.state.phase.effect, Execute)
        for call, result in zip(before.state.phase.effect.calls, step.outcome.results, strict=True)
    )
