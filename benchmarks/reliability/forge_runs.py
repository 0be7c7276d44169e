"""forge at work on a task, in each mode, and without one guardrail at a time."""

from collections.abc import Callable

from returns.result import Success

from benchmarks.reliability.tasks import NotFoundError, Task, ToolOf
from forge import ToolDef, ToolResolutionError, Workflow, run_sync
from forge.backends import Server
from forge.tools.decorator import Tool
from stages.policy.levels import Escalation
from stages.policy.order import Use
from stages.serialize import Mode

ABLATED = ("required steps", "grounding", "calculated", "the ladder", "rescue")
"""The guardrails that are taken away, one at a time."""


def run(task: Task, url: str, mode: Mode | None, without: str = "") -> str:
    """How it ended: `completed`, or the name of the Halt. `mode` None: auto."""
    workflow = Workflow(
        "task",
        tools=[_tool(tool, task) for tool in task.tools],
        terminal_tool=task.terminal,
        required_steps=() if without == "required steps" else task.required,
        order=[Use(tool=name, at_least=times) for name, times in task.at_least.items()],
        grounded={} if without == "grounding" else task.grounded,
        calculated={} if without == "calculated" else task.calculated,
        system_prompt=task.system,
        max_iterations=task.iterations,
        rescue_enabled=without != "rescue",
        escalation=Escalation(levels=()) if without == "the ladder" else None,
    )
    result = run_sync(workflow, task.message, backend=Server(url, mode=mode or "auto", context_tokens=task.context))
    return "completed" if isinstance(result, Success) else type(result.failure().halt).__name__


def _tool(tool: ToolOf, task: Task) -> Tool[..., object]:
    return ToolDef(
        name=tool.name,
        description=tool.description,
        parameters=tool.schema,
        function=_resolving(tool.function),
        effect=tool.effect,
        prerequisites=task.after.get(tool.name, ()),
    )


def _resolving(function: Callable[..., object]) -> Callable[..., object]:
    def call(**values: object) -> object:
        try:
            return function(**values)
        except NotFoundError as error:
            raise ToolResolutionError(str(error)) from None

    return call
