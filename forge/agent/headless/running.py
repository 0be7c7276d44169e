"""Runs a headless task: its workflow with limits and gates, the run, and the record."""

import dataclasses
import functools
import inspect
import os
import shutil
import time
from collections.abc import Collection, Iterator, Mapping
from itertools import islice, pairwise
from pathlib import Path
from typing import TypeVar, Unpack

import msgspec

from forge.agent.agent import Agent
from forge.agent.files import file_tools
from forge.agent.files.editing import lines_of
from forge.agent.files.root import Root, shown, walked
from forge.agent.headless.gates import Gates
from forge.agent.headless.limits import (
    Bounds,
    TaskLimits,
    allows,
    change_after_failure,
    limits_guard,
    not_written,
)
from forge.agent.headless.record import Record, record_of
from forge.agent.headless.task import AgentTask, contradictions
from forge.connection import AnyBackend
from forge.errors import DefinitionError, ForgeError, JournalError, ToolResolutionError
from forge.interpreters.threads import in_thread, unheard
from forge.journal.records import read_journal
from forge.journal.replaying import Step, states
from forge.runtime.recovery import resume_journal
from forge.runtime.runs import run
from forge.runtime.watching import Watching
from forge.tools.definition import Explicit, Tool, several, tool
from forge.workflow.checks import literal
from forge.workflow.workflow import Context, Workflow
from stages.effect import Execute, Results, Said, Unresolved
from stages.options import did_you_mean
from stages.rules import Limits, Rules
from stages.state import Awaiting, Done
from stages.tool import ToolEffect

_T = TypeVar("_T")

# Overview: files shown to the agent before it starts, so that it can begin with the change.

_SHOWN = 6_000
"""Maximum characters of all files: about a quarter of a small model's context of 8,192 tokens."""

_LOOKED_AT, _READ = 2_000, 20
"""Maximum file names to look at, and files to read."""


def overview(root: Root, limits: TaskLimits, said: str) -> str:
    """Files that may be changed or are named in the text, complete, as many as fit.

    Named ones come first. Empty if there are none. Hidden files, which may hold secrets, are only shown if they are
    named.
    """
    files = [one.parts for one in islice(walked(root, ()), _LOOKED_AT) if one.kind == "file"]
    wanted = [
        parts
        for parts in files
        if shown(*parts) in said
        or (not_written(limits, parts) is None and not any(name.startswith(".") for name in parts))
    ]
    wanted.sort(key=lambda parts: (not_written(limits, parts) is not None, shown(*parts) not in said))
    told: list[str] = []
    room = _SHOWN
    for parts in wanted[:_READ]:
        try:
            lines = lines_of(root.read(parts))
        except ToolResolutionError:  # not a text file
            continue
        text = "\n".join([f"{shown(*parts)}:", "```", *lines, "```"])
        if lines and len(text) <= room:
            told.append(text)
            room -= len(text)
    return "\n\n".join(told)


# The workflow of a task: the agent's, with file tools, the limits as a guard, and gates at the end.

_INSTRUCTIONS = """\
You work on the files of a folder with tools, step by step, and nobody is there to answer questions.
Read what you need and is not shown to you. Then make the change. Change only what the task needs.
When all of it is done, call task_completion."""

HEADLESS = "headless"
"""The name of the default agent."""

_MAX_CALLS = 30
"""Maximum model calls of the default agent, unless the task sets another limit."""

_FOLDER_TOOLS = frozenset(
    {"read_file", "list_files", "search_files", "write_file", "edit_file", "run_command", "read_output"}
)
"""The file tools; they replace an agent's own tools of the same names."""

_CHANGING = ("write_file", "edit_file", "run_command")
"""The file tools with side effects; required by the task, so they are offered from the beginning."""

_NOT_GATED = frozenset({"ask_question", "converse"})
"""Built-in tools that end a run without claiming that the task is done."""


@tool(name="task_completion", effect="terminal", idempotent=True)
def _completion(result: str = "") -> str:
    """Finish: all of the task is done. If it has checks, they are run now, and you are told what fails."""
    # No description of the argument: small models copy it instead of saying what they did.
    return result


def headless_agent(backend: AnyBackend) -> Agent:
    """The default agent, for tasks that name none."""
    return Agent(
        HEADLESS,
        backend=backend,
        instructions=_INSTRUCTIONS,
        tools=[_completion],
        on_text="nudge",
        built_in_tools=[],
        limits=Limits(max_iterations=_MAX_CALLS),
        # The warning asks to finish now; but failing gates would refuse that, and nobody reads a partial answer.
        context=Context(iteration_warning=0),
    )


def task_workflow(task: AgentTask, agent: Agent, gates: Gates) -> tuple[Workflow, Bounds]:
    """The workflow, and the limits that its guard enforces. DefinitionError for contradictions."""
    own, limits = agent.workflow, task.limits
    if problems := (*contradictions(task),) or (*_not_there(task),):
        raise DefinitionError(problems)
    if gates and own.result is not None:
        raise DefinitionError(("gates: an agent with result=… cannot have any; let it complete the task in words",))
    ends = own.rules.terminal
    # No approval: the limits say what is allowed.
    made = file_tools(
        task.folder,
        write=bool(limits.write),
        commands=bool(limits.commands),
        approval=False,
        follow_links=False,
        overwrite=limits.max_lines is None,
    )
    folder_tools = [one for one in made if isinstance(one, Tool) and (limits.tools is None or one.name in limits.tools)]
    named = (made if isinstance(made, Tool) else tool(made) for made in own.tools)
    kept = [made for made in named if made.name not in _FOLDER_TOOLS]
    tools = [_gated(made, gates) if made.name in ends and made.name not in _NOT_GATED else made for made in kept]
    effects: dict[str, ToolEffect] = {made.name: made.spec.effect for made in (*tools, *folder_tools)}
    effects |= dict.fromkeys(ends, "terminal")
    if problems := tuple(_misnamed(limits, effects)):
        raise DefinitionError(problems)
    bounds = Bounds(limits=limits, root=os.path.realpath(task.folder), effects=effects)
    prompt = "\n\n".join(filter(None, (own.system_prompt, literal(task.instructions), literal(_told(task)))))
    changing = tuple(name for name in _CHANGING if name in effects)
    # Forbidden tools are left out, but for those that a rule of the agent's names, which would not be valid without
    # them. The guard refuses these.
    unused = _unused(own.rules, {made.name for made in tools if not allows(limits, made.name, effects[made.name])})
    tools = [made for made in tools if made.name not in unused]
    built = dataclasses.replace(
        own,
        tools=(*tools, *folder_tools),
        guards=(limits_guard(bounds), *((change_after_failure(effects),) if gates else ()), *own.guards),
        optional_steps=(
            *(name for name in several(own.optional_steps) if name not in unused),
            *changing,
        ),
        order=[use for use in own.order if use.tool not in unused],
        completion_checks=_of_others(own.completion_checks, unused),
        grounded=_of_others(own.grounded, unused),
        calculated=_of_others(own.calculated, unused),
        system_prompt=prompt,
        on_text="nudge",
    )
    spending = msgspec.structs.replace(built.limits, **limits.of_run())
    # Nobody is there to stop a tool that hangs: with a timeout, it ends with the time of the run at the latest.
    timed = [_timed(made, spending.max_seconds) for made in (*tools, *folder_tools)]
    return dataclasses.replace(built, tools=timed, limits=spending), bounds


def _not_there(task: AgentTask) -> Iterator[str]:
    """What the task names but this machine lacks. A program given by its path may be made by the agent."""
    if not Path(task.folder).is_dir():
        yield f"folder: there is no folder {task.folder}"
    for number, gate in enumerate(task.gates, start=1):
        program = gate.command[0]
        if os.sep not in program and shutil.which(program) is None:
            separate = "; give the program and each of its arguments as a string of its own" if " " in program else ""
            yield f"[gates number {number}] command: there is no program {program!r} here{separate}"


def _gated(made: Tool[..., object], gates: Gates) -> Tool[..., object]:
    """The tool, run only if the gates pass. If they fail, so does the tool; at the last attempt, the run ends."""
    function = made.function

    async def after_gates(**arguments: object) -> object:
        if failure := await gates.attempt():
            if gates.spent:
                return Said(text=failure)
            raise ToolResolutionError(f"The task is not done: {failure}")
        if inspect.iscoroutinefunction(function):
            return await function(**arguments)
        return await in_thread(functools.partial(function, **arguments), unheard)

    if isinstance(function, Explicit):
        return Tool(Explicit(after_gates, function.signature, function.convert), made.spec, made.problems)
    return Tool(functools.wraps(function)(after_gates), made.spec, made.problems)


def _unused(rules: Rules, forbidden: Collection[str]) -> set[str]:
    """The forbidden tools that no rule about another tool names: the workflow can do without them."""
    others = [spec for spec in rules.tools if spec.name not in forbidden]
    needed = {*rules.required, *(one.tool for spec in others for one in spec.prerequisites)}
    needed.update(name for spec in others for bound in spec.grounded for name in bound.sources)
    needed.update(name for use in rules.order if use.tool not in forbidden for name in use.names)
    return {*forbidden} - needed


def _of_others(options: Mapping[str, _T] | None, unused: Collection[str]) -> Mapping[str, _T] | None:
    """The options by tool, without those of unused ones."""
    return options and {name: option for name, option in options.items() if name not in unused}


def _timed(made: Tool[..., object], seconds: float | None) -> Tool[..., object]:
    """The tool with that timeout, if it has none; an agent used as a tool keeps within the budget by itself."""
    if seconds is None or made.spec.timeout is not None or made.spec.delegates:
        return made
    return Tool(made.function, msgspec.structs.replace(made.spec, timeout=seconds), made.problems)


def _misnamed(limits: TaskLimits, effects: Mapping[str, ToolEffect]) -> Iterator[str]:
    """Tools in the limits that the agent does not have, or that contradict the limits."""
    for name in limits.tools or ():
        if name not in effects:
            meant = did_you_mean(name, effects)
            yield f"[limits] tools: there is no tool {name!r}; there are: {', '.join(effects)}.{meant}"
        elif limits.read_only and effects[name] == "write":
            yield f"[limits] read_only and tools: {name} changes something; leave one of them out"


def _told(task: AgentTask) -> str:
    """What the model should know about the limits and gates in advance."""
    limits, lines = task.limits, []
    if limits.write:
        never = f", but never {', '.join(limits.never_write)}" if limits.never_write else ""
        lines.append(f"Files that you may change: {', '.join(limits.write)}{never}.")
    if limits.commands:
        lines.append(f"Commands that you may run: {'; '.join(map(_as_json, limits.commands))}.")
    if task.gates:
        lines.append(
            f"The task is done when this succeeds: {'; '.join(_as_json(gate.command) for gate in task.gates)}."
        )
    return "\n".join(lines)


def _as_json(command: tuple[str, ...]) -> str:
    return msgspec.json.encode(command).decode()


# Run a task: one run of its workflow, recorded in a journal from which it can be resumed.


async def run_task(
    task: AgentTask,
    *,
    journal_file: Path,
    agent: Agent | None = None,
    backend: AnyBackend | None = None,
    resume: bool = False,
    **watching: Unpack[Watching],
) -> Record:
    """Work on the task unattended, record the run in the journal file, and return the record.

    `agent` provides instructions, tools and options; None: the default agent. `backend` replaces the agent's. `resume`:
    continue the interrupted run in the journal. DefinitionError for contradictions, JournalError for a journal that
    cannot be resumed, before anything happens.
    """
    where = backend if backend is not None else agent.backend if agent is not None else None
    if where is None:
        raise DefinitionError(("backend: the task names no agent with one; say where the model is",))
    gates = Gates(task.gates, Path(task.folder), task.gate_attempts)
    workflow, bounds = task_workflow(task, agent or headless_agent(where), gates)
    began = time.monotonic()
    if resume:
        steps = tuple(states(read_journal(journal_file), workflow))
        if isinstance(steps[-1].state.phase, Done):
            raise ForgeError(f"the run in {journal_file} has ended; to work on the task again, begin a new one")
        gates.made = _attempts(steps, workflow)
        ended = await resume_journal(workflow, journal_file, backend=where, **watching)
    else:
        recorded: Watching = {**watching, "journal": str(journal_file)}
        # The current files, what fails now, and the task last: small models attend to the end of a prompt.
        failure = await gates.failure()
        files = overview(Root(task.folder, follow_links=False), task.limits, f"{task.task}\n{failure}")
        now = f"Files as they are now:\n\n{files}" if files else ""
        ended = await run(
            workflow,
            "\n\n".join(filter(None, (now, f"Now {failure}" if failure else "", task.task))),
            backend=where,
            **recorded,
        )
    seconds = time.monotonic() - began
    return record_of(
        ended,
        _steps(journal_file, workflow),
        bounds,
        gates,
        task=task.task,
        seconds=seconds,
        journal=str(journal_file),
    )


def _steps(journal: Path, workflow: Workflow) -> tuple[Step, ...] | None:
    """The states of the run; none if it ended before there was a journal, None if its journal cannot be replayed."""
    try:
        return tuple(states(read_journal(journal), workflow)) if journal.exists() else ()
    except JournalError:
        return None


def _attempts(steps: tuple[Step, ...], workflow: Workflow) -> int:
    """How often the gates failed in the run."""
    ends = workflow.rules.terminal
    return sum(
        isinstance(result, Unresolved) and call.name in ends
        for before, step in pairwise(steps)
        if isinstance(step.outcome, Results)
        and isinstance(before.state.phase, Awaiting)
        and isinstance(before.state.phase.effect, Execute)
        for call, result in zip(before.state.phase.effect.calls, step.outcome.results, strict=True)
    )
