"""Several agents: one as the tool of another, and hand-offs between them."""

import logging
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Annotated, Unpack

from msgspec import Meta, Struct, json
from returns.result import Failure, Result, Success

from forge.agent.agent import Agent, reader
from forge.callbacks import Asker, placed
from forge.errors import DefinitionError, ForgeError, ToolFailed, checked_options
from forge.journal.file import hop_journal, nested_journal
from forge.outcome import Finished, Halted
from forge.runtime.emitter import Calling, OnEvent, calling, notify
from forge.runtime.watching import Following
from forge.tools.definition import Caller, Tool, ToolDef, tool
from stages.budget import spending
from stages.deliver import reopened
from stages.effect import HandOff, NeedsInput, Paused, Said, Spending
from stages.events import Stamped
from stages.halt import BackendFailed
from stages.memory import Role, of_roles, role_of
from stages.message import History, Kind, System, User, is_nudge
from stages.nudges import child_handed_over, handed_over
from stages.options import Seconds
from stages.retry import MAX_HOPS, refused_hop
from stages.saved import load, save
from stages.state import Completed, State
from stages.tool import ToolEffect

# Hand-offs: one agent passes a message on to another. A hand-off is an outcome, handled outside the loop.

Brief = Callable[[str, HandOff, History], str]
"""The message for the next agent: a pure function of the user's message, the hand-off, and the last agent's history."""

_log = logging.getLogger("forge")


class Handled(Struct, frozen=True, kw_only=True):
    """The end of a message; `by` is the agent for the user's next message.

    `path` are all agents that had the message, in order.
    """

    ended: Finished
    path: tuple[str, ...]

    @property
    def by(self) -> str:
        """The agent that has the conversation now."""
        return self.path[-1]


class NotHandedOver(Struct, frozen=True, kw_only=True):
    """A refused hand-off: to an unknown agent, once too often, or back and forth. `reason` says which."""

    path: tuple[str, ...]
    hand_off: HandOff
    reason: str
    state: State


@checked_options
def hand_off_tool(agents: Mapping[str, str]) -> Tool[..., object]:
    """The terminal tool `hand_off`; `agents` are names with descriptions.

    DefinitionError without agents.
    """
    if not agents:
        raise DefinitionError(("hand_off_tool: there is no agent to hand over to; name each with what it does",))
    listed = "\n".join(f"- {name}: {does}" for name, does in agents.items())
    to = {"type": "string", "enum": [*agents]}
    payload = {"type": "string", "description": _PAYLOAD}
    return ToolDef(
        name="hand_off",
        description=f"Hand the user's request over to a colleague who is responsible for it:\n{listed}",
        parameters={"type": "object", "properties": {"to": to, "payload": payload}, "required": ["to", "payload"]},
        function=_handing_over,
        effect="terminal",
        idempotent=True,
    )


_PAYLOAD = "What the other needs to know, in full: it has not read this."


def _handing_over(to: str, payload: str) -> HandOff:
    said = payload.strip(" .").lower()
    # Small models repeat the payload's description, often shortened, instead of writing a payload. A few of its words
    # may be meant, so only half of it or more counts as a repetition.
    repeats = len(said) > len(_PAYLOAD) // 2 and said in _PAYLOAD.lower()
    return HandOff(to=to, payload="" if repeats else payload)


@checked_options
def history_brief(*roles: Role, most: Annotated[int, Meta(ge=1)] = 20) -> Brief:
    """A `brief` that also shows the last `most` messages of these roles (default: user and assistant).

    Corrections, warnings, system prompts and calls are left out; long texts are shortened.
    """
    wanted = roles or ("user", "assistant")

    def brief(said: str, hand_off: HandOff, history: History) -> str:
        kept = of_roles(
            tuple(
                m
                for m in history
                if m.text.strip()
                and not (
                    isinstance(m, System) or is_nudge(m) or (isinstance(m, User) and m.kind is not Kind.USER_INPUT)
                )
            ),
            wanted,
        )
        return handed_over(said, hand_off.payload, [(role_of(message), message.text) for message in kept[-most:]])

    return brief


def _brief(said: str, hand_off: HandOff, _: History) -> str:
    return handed_over(said, hand_off.payload)


@checked_options
async def run_with_hand_offs(
    agents: Mapping[str, Agent],
    message: str,
    *,
    first: str,
    brief: Brief = _brief,
    max_hops: Annotated[int, Meta(ge=0)] = MAX_HOPS,
    **watching: Unpack[Following],
) -> Result[Handled, Halted | NotHandedOver]:
    """Have the agent `first` process the message, then each agent that it is handed to.

    Each has its own tools, conversation and budget. `brief` writes the message for the next one; by default the user's
    message and the hand-off's payload (see also `history_brief`). The journal of the second agent is `run.hop-2.jsonl`
    if the first's is `run.jsonl`. DefinitionError if `first` is not one of the agents.
    """
    if first not in agents:
        raise DefinitionError((f"first is {first!r}; it must be one of the agents: {', '.join(agents)}",))
    told = placed(brief, "brief", str)
    path: tuple[str, ...] = (first,)
    said, journal = message, watching.get("journal")
    while True:
        watching["journal"] = hop_journal(journal, len(path)) if journal else None
        ended = await agents[path[-1]].process(said, **watching)
        if isinstance(ended, Failure):
            return Failure(ended.failure())
        finished = ended.unwrap()
        outcome, state = finished.outcome, finished.state
        if not isinstance(outcome, HandOff):
            return Success(Handled(ended=finished, path=path))
        if reason := refused_hop(path, outcome.to, [*agents], max_hops):
            return Failure(NotHandedOver(path=path, hand_off=outcome, reason=reason, state=state))
        path, said = (*path, outcome.to), told(message, outcome, state.history)


# An agent as a tool of another: each call is a new conversation, and its answer the result.

_MAX_DEPTH = 3
"""Maximum nesting of agents."""

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
    """A tool that has the agent do a task, each call in a new conversation; by default named like the agent.

    The result is what the agent completed or said. If it asks something, the calling run asks the user and passes the
    answer on. A halt is a final failure of the call (`ToolFailed`), and so is a fourth level of nesting. Its costs come
    from the calling run's budget, within its own limits; `timeout` is in seconds. `ask` decides about its calls that
    need approval, by default the calling run's. `on_event` gets its events, and so do listeners of the calling run. Its
    journal is next to the run's, named after the call.
    """

    async def delegate(task: str, caller: Caller) -> object:
        if _depth.get() >= _MAX_DEPTH:
            raise ToolFailed(f"there are {_MAX_DEPTH} agents within agents already; do this yourself.")
        again = caller.continued
        kept, around = _Kept(again.saved if again else ""), calling.get()
        parent = around.emitter if around else None
        # A slow reader of the calling agent's stream slows this agent down too.
        wait = reader.get()
        watching: Following = {
            "ask": ask or caller.ask,
            "journal": (None if caller.journal is None else nested_journal(caller.journal, caller.call_id)),
            "on_chunk": (None if wait is None else lambda _: wait()),
            "on_event": _both(on_event, parent.on_event if parent else None),
        }
        said = again.answer if again else task
        token, within = _depth.set(_depth.get() + 1), calling.set(Calling(parent, caller.call_id) if parent else None)
        try:
            ended = await agent.delegate(said, memory=kept, budget=caller.budget, **watching)
        except ForgeError as error:
            if error.state is not None:
                await kept.save(error.state)
            raise
        finally:
            calling.reset(within)
            _depth.reset(token)
            caller.spend(kept.spent())
        if isinstance(ended, Failure):
            halted = ended.failure()
            # What a server said in an error is neither for the calling model nor for callers of `forge serve`.
            if unreached := isinstance(halted.halt, BackendFailed):
                _log.warning("%s: %s", agent.workflow.name, halted)
            raise ToolFailed("the agent's model gave no usable answer." if unreached else f"{halted}") from halted
        finished = ended.unwrap()
        match finished.outcome:
            case Completed(value=value):
                return json.decode(value)
            case Said(text=text):
                return text
            case NeedsInput() as asks:
                return Paused(call_id=caller.call_id, asks=asks, saved=save(finished.state).decode())
            case HandOff(to=to, payload=payload):
                raise ToolFailed(child_handed_over(to, payload))

    delegate.__doc__ = f"{description}\n\nArgs:\n    task: {_TASK}"
    return tool(name=name or agent.workflow.name, effect=effect, timeout=timeout)(delegate)


_TASK = "What is to be done, in full: it has not read this conversation."


def _both(own: OnEvent | None, parent: OnEvent | None) -> OnEvent | None:
    """One function that passes an event to the user's own and to the listener of the calling run."""
    if own is None or parent is None:
        return own or parent

    def heard(stamped: Stamped) -> None:
        notify("on_event", own, stamped)
        parent(stamped)

    return heard


class _Kept:
    """The conversation of one call: where it continues from, if it asked something, and what it has spent since."""

    def __init__(self, saved: str) -> None:
        self._saved = saved
        self._first: State | None = None
        self._last: State | None = None

    async def load(self) -> State | None:
        return load(self._saved) if self._saved else None

    async def save(self, state: State) -> None:
        self._first = self._first or reopened(state)  # its first model call is charged, but not made yet
        self._last = state

    def spent(self) -> Spending:
        return spending(self._first.ledger, self._last.ledger) if self._first and self._last else Spending()
