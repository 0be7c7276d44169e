"""forge-guardrails as a peer: its WorkflowRunner on its OpenAI client, or on a model in the process."""
# `forge` is another distribution here, in an environment of its own.
# mypy: ignore-errors
# ruff: noqa: I001

from typing import ClassVar

from _aio import wait
from forge import (
    ContextManager,
    OpenAICompatClient,
    TieredCompact,
    ToolCall,
    ToolDef,
    ToolSpec,
    Workflow,
    WorkflowRunner,
)
from workload import DESCRIPTIONS, FINAL_TEXT, SCHEMAS, SYSTEM, TOOLS, USER, finish, step_args, step_name

MODES = ("http", "stub")
TERMINAL = "finish"
IMPORT = "import forge"


class Scripted:
    """A client whose replies are made, not read: it takes the methods that the runner asks for."""

    api_format = "openai"
    model = "stub"
    last_usage: ClassVar[dict[str, object]] = {}

    def __init__(self, turns: int) -> None:
        calls = [(step_name(step), step_args(step)) for step in range(turns - 1)]
        self._left = iter([*calls, ("finish", {"answer": FINAL_TEXT})])

    async def send(self, *_: object, **__: object) -> list[ToolCall]:
        return [ToolCall(*next(self._left))]

    async def get_context_length(self) -> None:
        return None

    async def aclose(self) -> None:
        return None


class Peer:
    """What stays from run to run."""

    client: OpenAICompatClient
    workflow: Workflow


def setup(base_url: str) -> None:
    Peer.client = OpenAICompatClient("bench", base_url, api_key="none")
    tools = {
        name: ToolDef(ToolSpec.from_json_schema(name, DESCRIPTIONS[name], SCHEMAS[name]), function)
        for name, function in {**TOOLS, "finish": finish}.items()
    }
    Peer.workflow = Workflow(
        name="bench",
        description="bench",
        tools=tools,
        required_steps=[],
        terminal_tool="finish",
        system_prompt_template=SYSTEM,
    )


def run(turns: int, model: str, mode: str) -> None:
    client = Peer.client if mode == "http" else Scripted(turns)
    if mode == "http":
        client.model = model
    context = ContextManager(TieredCompact(keep_recent=2), budget_tokens=10**9)
    runner = WorkflowRunner(client, context, max_iterations=turns + 5)
    assert wait(runner.run(Peer.workflow, USER)) == FINAL_TEXT
