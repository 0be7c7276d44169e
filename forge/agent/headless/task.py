"""A task file: the task, its folder, agent and limits; all mistakes in it are reported at once."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec import Struct

from forge.agent.headless.limits import WRITES, TaskLimits
from forge.toml_tables import read_toml, refuse_faults
from stages.options import Options

_LONGEST_PATTERN = 1000
"""Maximum characters of a path pattern: each `**` in it is tried at each folder of a path."""


class Gate(Options, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A command that must succeed, within `seconds`, before the task is done."""

    command: tuple[str, ...]
    seconds: float = 120.0


class AgentTask(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A task file; docs/headless.md documents each key."""

    task: str
    folder: str = "."
    agent: str | None = None
    instructions: str = ""
    backend: str | None = None
    model: str | None = None
    gate_attempts: int = 3
    limits: TaskLimits = TaskLimits()
    gates: tuple[Gate, ...] = ()


def read_task(path: str | Path) -> AgentTask:
    """The task in a TOML file; folder and agent are relative to the file. DefinitionError with all mistakes."""
    file = Path(path)
    task = msgspec.convert(read_toml(file, AgentTask, "task file"), AgentTask)
    refuse_faults(contradictions(task), str(file))
    where = file.resolve().parent
    agent = None if task.agent is None else str(where / task.agent)
    return msgspec.structs.replace(task, folder=str(where / task.folder), agent=agent)


def contradictions(task: AgentTask) -> Iterator[str]:
    """The contradictions in a task, one sentence each."""
    limits = task.limits
    if not task.task.strip():
        yield "task: it is empty; say what is to be done"
    if task.gate_attempts < 1:
        yield f"gate_attempts: it is {task.gate_attempts}; it must be at least 1"
    given = {"write": limits.write, "commands": limits.commands}
    for name in (name for name, value in given.items() if value and limits.read_only):
        yield f"[limits] read_only contradicts {name}; leave one of them out"
    for name in ("max_files", "max_lines"):
        if getattr(limits, name) is not None and not limits.write:
            yield f"[limits] {name}: no file may be changed, for write is missing; name the files that may be"
    if limits.tools is not None:
        tools = frozenset(limits.tools)
        if limits.write and tools.isdisjoint(WRITES):
            yield f"[limits] write and tools: files may be changed, but tools has neither {' nor '.join(WRITES)}"
        if limits.commands and "run_command" not in tools:
            yield "[limits] commands and tools: commands may be run, but tools has no run_command"
        if not limits.write and not tools.isdisjoint(WRITES):
            yield "[limits] tools: it has a tool that changes files, but no file may be changed: write is missing"
        if not limits.commands and "run_command" in tools:
            yield "[limits] tools: it has run_command, but no command may be run: commands is missing"
    yield from (f"[limits] {one} is in write and in never_write" for one in limits.write if one in limits.never_write)
    for name, patterns in (("write", limits.write), ("never_write", limits.never_write)):
        for one in patterns:
            if not one.strip("/ ") or one.startswith("/") or ".." in one.split("/"):
                yield f"[limits] {name}: {one!r} is not a pattern of paths in the folder, such as src/** or *.py"
            if len(one) > _LONGEST_PATTERN:
                yield f"[limits] {name}: a pattern has {len(one)} characters; it may have {_LONGEST_PATTERN}"
    yield from (f"[limits] commands: {why}" for command in limits.commands if (why := _wrong_command(command)))
    for number, gate in enumerate(task.gates, start=1):
        if not gate.command or not gate.command[0]:
            yield f"[gates number {number}] command: it is empty; give the program and its arguments, each by itself"
        if gate.seconds <= 0:
            yield f"[gates number {number}] seconds: it is {gate.seconds:g}; it must be more than 0"


def _wrong_command(command: tuple[str, ...]) -> str:
    if not command or command[0] in {"", "*"}:
        return f"{list(command)} names no program"
    return f"{list(command)} has * before its end, where it is an ordinary word" if "*" in command[:-1] else ""
