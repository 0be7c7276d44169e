"""forge-guardrails at work on scenarios, in an environment of its own."""
# `forge` is another distribution here.
# mypy: ignore-errors
# ruff: noqa: ANN001, ANN003, ANN201, ANN202, I001

import asyncio

from forge import ContextManager, TieredCompact, ToolDef, ToolSpec, Workflow, WorkflowRunner
from forge.clients.llamafile import LlamafileClient
from forge.core.messages import Message, MessageMeta, MessageRole, MessageType
from forge.errors import ForgeError, ToolResolutionError
from forge.tools import respond_tool
from pipe import begin, orders, run_tool, tell


def tool(spec):
    def call(**values):
        answer = run_tool(spec["name"], values)
        if answer.get("unresolved"):
            raise ToolResolutionError(answer["error"])
        if answer.get("error"):
            raise RuntimeError(answer["error"])
        return answer["text"]

    schema = ToolSpec.from_json_schema(spec["name"], spec["description"], spec["parameters"])
    needs = [{k: v for k, v in p.items() if v} if p["match_arg"] else p["tool"] for p in spec["prerequisites"]]
    return ToolDef(schema, call, prerequisites=needs)


def workflow_of(order):
    tools = [tool(spec) for spec in order["tools"]] + ([respond_tool()] if order["words"] else [])
    return Workflow(
        name=order["name"],
        description=order["name"],
        tools={made.name: made for made in tools},
        required_steps=order["required"],
        terminal_tool=[*order["terminal"], *(["respond"] if order["words"] else [])],
        system_prompt_template=order["system"].replace("{", "{{").replace("}", "}}"),
    )


async def play(order):
    """Say one message after the other; the history goes on."""
    history = []
    # How long a reply may take is the runner's to say, for all players alike.
    client = LlamafileClient(
        "model.gguf", base_url=f"{order['url']}/v1", mode=order["mode"].removesuffix("ed"), timeout=None
    )
    runner = WorkflowRunner(
        client,
        ContextManager(TieredCompact(keep_recent=2), budget_tokens=order["context"]),
        max_iterations=order["iterations"],
        max_retries_per_step=order["retries"],
        max_tool_errors=order["tool_errors"],
        on_message=history.append,
    )
    workflow = workflow_of(order)
    for number, message in enumerate(order["messages"]):
        begin(number)
        if number:
            history.append(Message(MessageRole.USER, message, MessageMeta(MessageType.USER_INPUT)))
        try:
            result = await runner.run(workflow, message, initial_messages=list(history) if number else None)
        except ForgeError as error:
            return tell(ended=type(error).__name__, why=str(error))
        tell(done=str(result))
    return tell(ended="completed", why="")


for each in orders():
    asyncio.run(play(each))
