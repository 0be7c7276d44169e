"""forge-guardrails at work: one task a line of standard input, how it ended a line of standard output."""
# `forge` is another distribution here, in an environment of its own.
# mypy: ignore-errors
# ruff: noqa: ANN001, ANN003, ANN201, ANN202, I001, T201

import asyncio
import json
import sys

from forge import ContextManager, TieredCompact, ToolDef, ToolSpec, Workflow, WorkflowRunner
from forge.clients.llamafile import LlamafileClient
from forge.errors import ForgeError, ToolResolutionError
from tasks import TASKS, NotFoundError


def resolving(function):
    def call(**values):
        try:
            return function(**values)
        except NotFoundError as error:
            raise ToolResolutionError(str(error)) from None

    return call


async def run(name, seed, url, mode):
    task = TASKS[name](seed)
    tools = {
        t.name: ToolDef(
            ToolSpec.from_json_schema(t.name, t.description, t.schema),
            resolving(t.function),
            prerequisites=list(task.after.get(t.name, ())),
        )
        for t in task.tools
    }
    workflow = Workflow(
        name=name,
        description=name,
        tools=tools,
        required_steps=list(task.required),
        terminal_tool=task.terminal,
        system_prompt_template=task.system,
    )
    client = LlamafileClient("model.gguf", base_url=f"{url}/v1", mode=mode)
    context = ContextManager(TieredCompact(keep_recent=2), budget_tokens=task.context)
    runner = WorkflowRunner(client, context, max_iterations=task.iterations)
    try:
        await runner.run(workflow, task.message)
        end = "completed"
    except ForgeError as error:
        end = type(error).__name__
    return {"verdict": task.verdict, "end": end}


async def main():
    for line in sys.stdin:
        print(json.dumps(await run(**json.loads(line))), flush=True)


asyncio.run(main())
