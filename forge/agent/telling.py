"""Telling: passes the events of an agent's run to `on_event`, each with its number and its time."""

import inspect
import time
from collections.abc import Awaitable, Callable, Iterator
from contextvars import ContextVar

from msgspec.structs import replace
from returns.result import Result, Success

from forge.agent.events import (
    AgentEvent,
    ChildEvent,
    Narration,
    Told,
    ToolProgressEvent,
    TurnStartEvent,
    concluded,
    narrate,
)
from forge.errors import ForgeError
from forge.outcome import Finished, Halted
from forge.runtime.callbacks import OnChunk
from forge.runtime.event_stream import Line
from forge.runtime.loop import notify
from forge.runtime.watching import Watching
from stages.events import Event
from stages.state import State
from stages.wire.deltas import Delta

OnEvent = Callable[[AgentEvent], None]
"""Called with each event; if it raises, that is logged and the agent goes on."""


ToParent = Callable[[str, str, AgentEvent], None]
"""Tells the agent that is at work of an event of another: the other's name, the id of the call that asked it."""

to_parent: ContextVar[ToParent | None] = ContextVar("forge_agent_to_parent", default=None)


reader: ContextVar[Callable[[], Awaitable[None]] | None] = ContextVar("forge_agent_reader", default=None)
"""Waits for the reader of the stream that the events go to, if there is one, and agents within the agent wait too."""


class Teller:
    """Tells the events of one run of an agent. `numbers` are those of the agent's events."""

    def __init__(self, on_event: OnEvent, numbers: Iterator[int], state: State) -> None:
        self._on_event = on_event
        self._numbers = numbers
        self._run = state.run
        self._now = Narration(turn=state.ledger.turn)

    def begin(self, message: str) -> None:
        """The work on the message begins."""
        self._tell((TurnStartEvent(message=message),))

    def hear(self, told: Event | Delta) -> None:
        """Something happened in the run."""
        self._now, events = narrate(self._now, told)
        self._tell(events)

    def child(self, agent: str, call_id: str, event: AgentEvent) -> None:
        """Something happened in the work of an agent that a call of this run asked."""
        self._tell((ChildEvent(agent=agent, call_id=call_id, event=event),))

    def end(self, ended: Result[Finished, Halted]) -> None:
        """The run is over."""
        if isinstance(ended, Success):
            finished = ended.unwrap()
            self._tell(concluded(self._now, finished.state.history, finished.outcome))
        else:
            halted = ended.failure()
            self._tell(concluded(self._now, halted.state.history, halted.halt))

    def fail(self, error: BaseException) -> None:
        """The run ended with an exception."""
        state = error.state if isinstance(error, ForgeError) else None
        # What is no Exception is a cancellation or a signal, depending on where it arrives: nobody's error.
        said = str(error) or type(error).__name__ if isinstance(error, Exception) else "the work was cancelled"
        self._tell(concluded(self._now, state.history if state else (), said))

    def beside(self, watching: Watching) -> Watching:
        """The options of a run that this hears of, beside the caller's own observer and `on_chunk`."""
        observer, on_chunk = watching.get("observer"), watching.get("on_chunk")

        def observed(event: Event) -> None:
            self.hear(event)
            if observer is not None:
                notify(observer, event)

        async def chunk(delta: Delta) -> None:
            self.hear(delta)
            if on_chunk is not None and inspect.isawaitable(told := on_chunk(delta)):
                await told

        return {**watching, "observer": observed, "on_chunk": chunk}

    def _tell(self, events: Told) -> None:
        for event in events:
            numbered = replace(
                event, run=self._run, turn=self._now.turn, sequence=next(self._numbers), time=time.time()
            )
            notify(self._on_event, numbered)


def followed(line: Line[AgentEvent], watching: Watching) -> OnChunk:
    """An `on_chunk` that calls the user's own, and waits for a slow reader of the line."""
    own = watching.get("on_chunk")

    async def on_chunk(delta: Delta) -> None:
        if own is not None and inspect.isawaitable(told := own(delta)):
            await told
        await line.room()

    return on_chunk


def same_progress(last: AgentEvent, event: AgentEvent) -> bool:
    """Whether both are progress of one tool, so that the later makes the earlier needless."""
    if not isinstance(event, ToolProgressEvent) or not isinstance(last, ToolProgressEvent):
        return False
    return last.call_id == event.call_id
