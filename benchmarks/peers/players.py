"""Peers as players of `forge eval run`: forge-guardrails and pydantic-ai, each told of a workflow what it knows.

    python -m forge eval run benchmarks/peers/players.py --suite all --against forge-guardrails,pydantic-ai --backend …

Tools run in this process, so that a world is one object for whoever plays; the model is asked through a gate.
"""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Raw

from benchmarks.peers.environment import guardrails, pydantic_ai
from benchmarks.peers.gate import gate
from benchmarks.peers.workers import Worker, worker
from forge.evals import Player, RunEnd, Task
from forge.evals.configurations import ABLATIONS
from forge.interpreters import Interpreter
from forge.workflow.workflow import Workflow
from stages.effect import CallResult, Effect, Execute, Failed, Outcome, Results, Said, Succeeded, Unresolved
from stages.message import ToolCall
from stages.state import Completed, Ending


def told(workflow: Workflow[Any]) -> Workflow[Any]:
    """The workflow without what no peer knows: grounding, calculations, an own tool for answers in words."""
    plain = ABLATIONS["no_calculation"](ABLATIONS["no_grounding"](workflow))
    words = "accept" if plain.on_text == "respond" else plain.on_text
    return replace(plain, on_text=words, context=msgspec.structs.replace(plain.context, recall=False))


async def _play(task: Task, *, script: str, python: Callable[[], Path | None]) -> RunEnd:
    workflow = told(task.workflow)
    async with worker(script, python) as peer:
        with _Played(task, workflow, peer) as played:
            async with gate(played.perform, task.connection.setup) as url:
                peer.tell(_order(task, workflow, url))
                return await played.ended()


class _Played(ExitStack):
    """A run of a peer: its calls are run here, and what it reaches is written down."""

    def __init__(self, task: Task, workflow: Workflow[Any], peer: Worker) -> None:
        super().__init__()
        self._task, self._workflow, self._peer = task, workflow, peer
        self._reached: Ending | None = None
        self._perform: Interpreter | None = None

    async def perform(self, effect: Effect) -> Outcome:
        """Ask the model, or run a tool, for the message that is being answered."""
        assert self._perform is not None
        return await self._perform(effect)

    def _begin(self, message: int) -> None:
        self.close()
        self._perform, self._reached = self.enter_context(self._task.answering(message, self._workflow)), None

    async def ended(self) -> RunEnd:
        """How it ended; an answer in words is no outcome of a workflow that takes none."""
        while True:
            match await self._peer.heard():
                case {"message": int(number)}:
                    self._begin(number)
                    self._peer.tell({})
                case {"call": str(name), "arguments": arguments}:
                    self._peer.tell(await self._run(name, arguments))
                case {"done": str(text)}:
                    outcome = self._reached or (None if self._workflow.on_text == "nudge" else Said(text=text))
                    if outcome is not None:
                        self._task.record.outcomes.append(outcome)
                case {"ended": "completed"} if len(self._task.record.outcomes) < len(self._task.messages):
                    return RunEnd("text", "it ended with text, which is no outcome here")
                case {"ended": "completed"}:
                    return RunEnd(type(self._task.record.outcomes[-1]).__name__)
                case {"ended": str(end), "why": str(why)}:
                    return RunEnd(end, why)
                case other:
                    raise RuntimeError(f"the peer said {other!r}")

    async def _run(self, name: str, arguments: object) -> dict[str, object]:
        made = ToolCall(id="call", name=name, arguments=msgspec.json.encode(arguments).decode())
        outcome = await self.perform(Execute(calls=(made,), run="peer"))
        assert isinstance(outcome, Results)
        (result,) = outcome.results
        if isinstance(result, Succeeded) and name in self._workflow.rules.terminal:
            self._reached = result.ends or Completed(tool=name, value=result.value)
        self._task.record.tool_errors += isinstance(result, Failed)
        return _answer(result)


def _answer(result: CallResult) -> dict[str, object]:
    match result:
        case Succeeded(text=text):
            return {"text": text}
        case Unresolved(message=message):
            return {"error": message, "unresolved": True}
        case Failed(message=message):
            return {"error": message}
        case other:
            return {"error": str(getattr(other, "reason", "it was not run"))}


def _order(task: Task, workflow: Workflow[Any], url: str) -> dict[str, object]:
    rules = workflow.rules
    tools = [
        {
            "name": spec.name,
            "description": spec.description,
            "parameters": Raw(bytes(spec.parameters)),
            "prerequisites": [{"tool": need.tool, "match_arg": need.match_arg} for need in spec.prerequisites],
        }
        for spec in rules.tools
    ]
    return {
        "url": url,
        "mode": task.mode,
        "name": workflow.name,
        "system": workflow.system_prompt,
        "messages": task.messages,
        "tools": tools,
        "required": rules.required,
        "terminal": rules.terminal,
        "words": workflow.on_text != "nudge",
        "iterations": workflow.budget.calls,
        "retries": workflow.limits.max_retries_per_step,
        "tool_errors": workflow.limits.max_tool_errors,
        "context": task.connection.setup.context_tokens,
    }


FORGE_GUARDRAILS = Player(
    name="forge-guardrails",
    about="its WorkflowRunner: required steps, prerequisites, rescue, nudges, compaction",
    play=partial(_play, script="guardrails_worker.py", python=guardrails),
    modes=("native", "prompted"),
    wire="openai",
)
PYDANTIC_AI = Player(
    name="pydantic-ai",
    about="its Agent: function tools, and the tool that ends the run as an output function",
    play=partial(_play, script="pydantic_ai_worker.py", python=pydantic_ai),
    modes=("default", "tool", "native", "prompted"),
    wire="openai",
    counted_like="plain",  # it does not compact either
)
