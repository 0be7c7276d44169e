"""An agent as a tool of another: each call is a conversation of its own, and its answer the result."""

from contextvars import ContextVar

from msgspec import json
from returns.result import Failure

from forge.agent.agent import Agent
from forge.agent.telling import OnEvent
from forge.errors import ToolFailed, ToolResolutionError
from forge.interpreters import Asker
from forge.outcome import Finished
from forge.runtime.options import checked_options
from forge.tools.decorator import Tool, tool
from stages.effect import HandOff, NeedsInput, Said
from stages.nudges.outcomes import child_asks, child_handed_over
from stages.options.types import Seconds
from stages.state import Completed
from stages.tool import ToolEffect

MAX_DEPTH = 3
"""Maximum number of agents within agents."""

_depth: ContextVar[int] = ContextVar("forge_agent_depth", default=0)


@checked_options
def agent_tool(
    agent: Agent,
    *,
    description: str,
    name: str = "",
    effect: ToolEffect = "write",
    timeout: Seconds | None = None,
    ask: Asker | None = None,
    on_event: OnEvent | None = None,
) -> Tool[..., object]:
    """A tool that has the agent do a task, each call in a new conversation; its name is the agent's, unless given.

    The result is what it completed or said. Where it asks a question, the model is told the question, so that it can
    answer it, or ask the user. A halt is a final failure of the call (`ToolFailed`), and so is a fourth agent within
    agents. Each call has the agent's own bounds; `timeout` is in seconds. `ask` decides on its tools that need
    approval, `on_event` is told of its work.
    """

    async def delegate(task: str) -> object:
        if _depth.get() >= MAX_DEPTH:
            raise ToolFailed(f"there are {MAX_DEPTH} agents within agents already; do this yourself.")
        token = _depth.set(_depth.get() + 1)
        try:
            ended = await agent.delegate(task, on_event=on_event, ask=ask)
        finally:
            _depth.reset(token)
        if isinstance(ended, Failure):
            raise ToolFailed(f"{ended.failure()}")
        return _result(ended.unwrap())

    delegate.__doc__ = f"{description}\n\nArgs:\n    task: {_TASK}"
    return tool(name=name or agent.workflow.name, effect=effect, timeout=timeout)(delegate)


_TASK = "What is to be done, in full: it has not read this conversation."


def _result(finished: Finished) -> object:
    match finished.outcome:
        case Completed(value=value):
            return json.decode(value)
        case Said(text=text):
            return text
        case NeedsInput(question=question, suggestions=suggestions):
            raise ToolResolutionError(child_asks(question, suggestions))
        case HandOff(to=to, payload=payload):
            raise ToolFailed(child_handed_over(to, payload))
