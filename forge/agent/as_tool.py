"""An agent as a tool of another: each call is a conversation of its own, and its answer the result."""

from contextvars import ContextVar
from pathlib import Path

from msgspec import json
from returns.result import Failure

from forge.agent.agent import Agent
from forge.agent.events import AgentEvent
from forge.agent.telling import OnEvent, reader, to_parent
from forge.errors import ForgeError, ToolFailed
from forge.interpreters import Asker
from forge.journal.parts import nested_journal
from forge.outcome import Finished
from forge.runtime.observers import notify
from forge.runtime.options import checked_options
from forge.runtime.watcher import OnChunk
from forge.runtime.watching import Watching
from forge.tools.caller import Caller
from forge.tools.decorator import Tool, tool
from stages.deliver import reopened
from stages.effect import HandOff, NeedsInput, Paused, Said, Spending
from stages.nudges import child_handed_over
from stages.options import Seconds
from stages.retry import spending
from stages.saved import load, save
from stages.state import Completed, State
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

    The result is what it completed or said. Its question is the question of the run that calls it, and the user's
    answer goes to it. A halt is a final failure of the call (`ToolFailed`), and so is a fourth agent within agents.
    What it takes is paid out of the budget of the run that calls it, within its own bounds; `timeout` is in seconds.
    `ask` decides on its tools that need approval, else who is asked by that run. `on_event` is told of its work, and
    so is that run's own, in ChildEvents. Its journal is beside that of the run, named after the call.
    """

    async def delegate(task: str, caller: Caller) -> object:
        if _depth.get() >= MAX_DEPTH:
            raise ToolFailed(f"there are {MAX_DEPTH} agents within agents already; do this yourself.")
        again = caller.continued
        kept, heard = _Kept(again.saved if again else ""), _both(on_event, agent.workflow.name, caller.call_id)
        watching: Watching = {"ask": ask or caller.ask, "journal": _journal(caller), "on_chunk": _paced()}
        said = again.answer if again else task
        token = _depth.set(_depth.get() + 1)
        try:
            ended = await agent.delegate(said, memory=kept, budget=caller.budget, on_event=heard, **watching)
        except ForgeError as error:
            if error.state is not None:
                await kept.save(error.state)
            raise
        finally:
            _depth.reset(token)
            caller.spend(kept.spent())
        if isinstance(ended, Failure):
            raise ToolFailed(f"{ended.failure()}")
        return _result(ended.unwrap(), caller.call_id)

    delegate.__doc__ = f"{description}\n\nArgs:\n    task: {_TASK}"
    return tool(name=name or agent.workflow.name, effect=effect, timeout=timeout)(delegate)


_TASK = "What is to be done, in full: it has not read this conversation."


def _journal(caller: Caller) -> Path | None:
    return None if caller.journal is None else nested_journal(caller.journal, caller.call_id)


def _paced() -> OnChunk | None:
    """What waits, with each delta, for a slow reader of the stream of the agent that made the call."""
    wait = reader.get()
    return None if wait is None else lambda _: wait()


def _both(own: OnEvent | None, agent: str, call_id: str) -> OnEvent | None:
    """What tells the user's own function of an event, and the agent that made the call; None: nobody listens."""
    parent = to_parent.get()
    if parent is None:
        return own

    def heard(event: AgentEvent) -> None:
        if own is not None:
            notify(own, event)
        parent(agent, call_id, event)

    return heard


class _Kept:
    """The conversation of one call: what it goes on from, where it asked something, and what it has taken since."""

    def __init__(self, saved: str) -> None:
        self._saved = saved
        self._first: State | None = None
        self._last: State | None = None

    async def load(self) -> State | None:
        return load(self._saved) if self._saved else None

    async def save(self, state: State) -> None:
        self._first = self._first or reopened(state)  # its first model call is paid for, and not made yet
        self._last = state

    def spent(self) -> Spending:
        return spending(self._first.ledger, self._last.ledger) if self._first and self._last else Spending()


def _result(finished: Finished, call_id: str) -> object:
    match finished.outcome:
        case Completed(value=value):
            return json.decode(value)
        case Said(text=text):
            return text
        case NeedsInput() as asks:
            return Paused(call_id=call_id, asks=asks, saved=save(finished.state).decode())
        case HandOff(to=to, payload=payload):
            raise ToolFailed(child_handed_over(to, payload))
