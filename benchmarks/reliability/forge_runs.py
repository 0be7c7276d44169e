"""forge at work on a task, in each mode, and without one guardrail at a time."""

import inspect
from collections.abc import Callable, Mapping

import msgspec
from msgspec import Raw
from returns.result import Success

from benchmarks.reliability.tasks import NotFoundError, Task, ToolOf
from forge import ToolResolutionError, Workflow, run_sync
from forge.backends import Server
from forge.tool import Tool
from stages.serialize import Mode
from stages.tool import Prerequisite, ToolSpec

TYPES = {"string": str, "number": float}


def run(task: Task, url: str, mode: Mode | None, without: str = "") -> str:
    """How it ended: `completed`, or the name of the Halt. `mode` None: auto."""
    workflow = Workflow(
        "task",
        tools=[_tool(tool, task) for tool in task.tools],
        terminal_tool=task.terminal,
        required_steps=() if without == "required steps" else task.required,
        system_prompt=task.system,
        max_iterations=task.iterations,
        rescue_enabled=without != "rescue",
        max_retries_per_step=0 if without == "nudges" else 3,
    )
    backend = Server(url, mode=mode or "auto", context_tokens=task.context)
    result = run_sync(workflow, task.message, backend=backend)
    return "completed" if isinstance(result, Success) else type(result.failure().halt).__name__


def _tool(tool: ToolOf, task: Task) -> Tool[..., object]:
    spec = ToolSpec(
        name=tool.name,
        description=tool.description,
        parameters=Raw(msgspec.json.encode(tool.schema)),
        effect=tool.effect,
        prerequisites=tuple(Prerequisite(tool=before) for before in task.after.get(tool.name, ())),
    )
    return Tool(_function(tool), spec)


def _function(tool: ToolOf) -> Callable[..., object]:
    """The tool's function with parameters as its schema has them, whatever it takes itself."""
    types: Mapping[str, type] = {name: TYPES[kind] for name, (kind, _) in tool.parameters.items()}

    def call(**values: object) -> object:
        try:
            return tool.function(**values)
        except NotFoundError as error:
            raise ToolResolutionError(str(error)) from None

    call.__annotations__ = {**types, "return": object}
    parameters = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=kind) for name, kind in types.items()
    ]
    vars(call)["__signature__"] = inspect.Signature(parameters)
    return call
