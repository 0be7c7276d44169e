"""The workflow of a task: the agent's, with the tools of the folder, limits as a guard, and gates at its end."""

import dataclasses
import functools
import inspect
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from forge.agent.agent import Agent
from forge.agent.files import file_tools
from forge.agent.headless.gates import Gates
from forge.agent.headless.limits import Bounds, Limits, change_after_failure, limits_guard
from forge.agent.headless.task import AgentTask
from forge.connection import AnyBackend
from forge.errors import DefinitionError, ToolResolutionError
from forge.interpreters.threads import in_thread, unheard
from forge.tools.decorator import Tool, tool
from forge.tools.signature import Explicit
from forge.workflow.suggestions import did_you_mean
from forge.workflow.template import literal
from forge.workflow.workflow import Workflow
from stages.effect import Said
from stages.rules import Escalation
from stages.tool import ToolEffect

_INSTRUCTIONS = """\
You work on the files of a folder with tools, step by step, and nobody is there to answer questions.
Read what you need and is not shown to you. Then make the change. Change only what the task needs.
When all of it is done, call task_completion."""

HEADLESS = "headless"
"""The name of the agent of tasks that name none."""

_MAX_CALLS = 30
"""Maximum model calls of a task whose agent is the default one, unless it says otherwise."""

FOLDER_TOOLS = frozenset(
    {"read_file", "list_files", "search_files", "write_file", "edit_file", "run_command", "read_output"}
)
"""The tools of the task's folder: they take the place of an agent's own of these names."""

_CHANGING = ("write_file", "edit_file", "run_command")
"""Those of them that change something, which is what they are there for: they are offered from the beginning."""

_NOT_GATED = frozenset({"ask_question", "converse"})
"""Built-in tools that end a run without saying that the task is done."""


@tool(name="task_completion", effect="terminal", idempotent=True)
def _completion(result: str = "") -> str:
    """Finish: all of the task is done. If it has checks, they are run now, and you are told what fails."""
    # No description of the argument: small models copy that, instead of saying what they did.
    return result


def default_agent(backend: AnyBackend) -> Agent:
    """The agent of tasks that name none."""
    return Agent(
        HEADLESS,
        backend=backend,
        instructions=_INSTRUCTIONS,
        tools=[_completion],
        on_text="nudge",
        built_in_tools=[],
        max_iterations=_MAX_CALLS,
        iteration_warning=0,  # It says to end now. Gates that fail would refuse that, and nobody reads a half answer.
        # An agent that is stuck should try something else, not be left with nothing but to say that it is done.
        escalation=Escalation(levels=()),
    )


def workflow_of(task: AgentTask, agent: Agent, gates: Gates) -> tuple[Workflow, Bounds]:
    """The workflow, and the limits that its guard holds. DefinitionError for what does not fit together."""
    own, limits = agent.workflow, task.limits
    if problems := tuple(_not_there(task)):
        raise DefinitionError(problems)
    if gates and own.result is not None:
        raise DefinitionError(("gates: an agent with result=… cannot have any; let it complete the task in words",))
    ends = own.rules.terminal
    folder_tools = _folder_tools(task.folder, limits)
    named = (made if isinstance(made, Tool) else tool(made) for made in own.tools)
    kept = [made for made in named if made.name not in FOLDER_TOOLS]
    tools = [_gated(made, gates) if made.name in ends and made.name not in _NOT_GATED else made for made in kept]
    effects: dict[str, ToolEffect] = {made.name: made.spec.effect for made in (*tools, *folder_tools)}
    effects |= dict.fromkeys(ends, "terminal")
    if problems := tuple(_misnamed(limits, effects)):
        raise DefinitionError(problems)
    bounds = Bounds(limits=limits, root=os.path.realpath(task.folder), effects=effects)
    prompt = "\n\n".join(filter(None, (own.system_prompt, literal(task.instructions), literal(_told(task)))))
    changing = tuple(name for name in _CHANGING if name in effects)
    built = dataclasses.replace(
        own,
        tools=(*tools, *folder_tools),
        guards=(limits_guard(bounds), *((change_after_failure(effects),) if gates else ()), *own.guards),
        optional_steps=(*_names(own.optional_steps), *changing),
        escalation=msgspec.structs.replace(own.rules.escalation, writes=(*own.rules.escalation.writes, *changing)),
        system_prompt=prompt,
        on_text="nudge",
    )
    return _limited(built, limits), bounds


def _not_there(task: AgentTask) -> Iterator[str]:
    """What the task names and this machine does not have. A program named by its path may be made by the agent."""
    if not Path(task.folder).is_dir():
        yield f"folder: there is no folder {task.folder}"
    for number, gate in enumerate(task.gates, start=1):
        program = gate.command[0]
        if os.sep not in program and shutil.which(program) is None:
            separate = "; give the program and each of its arguments as a string of its own" if " " in program else ""
            yield f"[gates number {number}] command: there is no program {program!r} here{separate}"


def _folder_tools(folder: str, limits: Limits) -> list[Tool[..., object]]:
    """The tools of the folder that the limits leave any use for. Nobody is asked: the limits say what may be done."""
    made = file_tools(
        folder,
        write=bool(limits.write),
        commands=bool(limits.commands),
        approval=False,
        follow_links=False,
        overwrite=limits.max_lines is None,
    )
    return [one for one in made if isinstance(one, Tool) and (limits.tools is None or one.name in limits.tools)]


def _names(given: str | Sequence[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


def _gated(made: Tool[..., object], gates: Gates) -> Tool[..., object]:
    """The tool, run once the gates have passed. Where they do not, it fails; at the last attempt the run ends."""
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


def _misnamed(limits: Limits, effects: Mapping[str, ToolEffect]) -> Iterator[str]:
    """What the limits say of tools that the agent does not have, or that contradict them."""
    for name in limits.tools or ():
        if name not in effects:
            meant = did_you_mean(name, effects)
            yield f"[limits] tools: there is no tool {name!r}; there are: {', '.join(effects)}.{meant}"
        elif limits.read_only and effects[name] == "write":
            yield f"[limits] read_only and tools: {name} changes something; leave one of them out"


def _limited(workflow: Workflow, limits: Limits) -> Workflow:
    """The workflow with the limits' numbers, where they have any."""
    return dataclasses.replace(
        workflow,
        max_iterations=limits.max_calls or workflow.max_iterations,
        max_tokens=limits.max_tokens or workflow.max_tokens,
        max_seconds=limits.max_seconds or workflow.max_seconds,
        max_cost=limits.max_cost or workflow.max_cost,
        price=limits.price if limits.max_cost else workflow.price,
    )


def _told(task: AgentTask) -> str:
    """What the model should know of the limits and the gates before it meets them."""
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
