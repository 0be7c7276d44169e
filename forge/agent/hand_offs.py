"""Hand-offs: one agent passes a message on to another. The driver is outside the loop; a hand-off is an outcome."""

from collections.abc import Callable, Mapping
from typing import Annotated, Unpack

from msgspec import Meta, Struct
from returns.result import Failure, Result, Success

from forge.agent.agent import Agent
from forge.agent.telling import OnEvent
from forge.errors import DefinitionError
from forge.journal.parts import hop_journal
from forge.outcome import Finished, Halted
from forge.runtime.callbacks import placed
from forge.runtime.options import checked_options
from forge.runtime.watching import Watching
from forge.tools.decorator import Tool
from forge.tools.definition import ToolDef
from stages.effect import HandOff
from stages.memory import Role, of_roles, role_of
from stages.message import History, Kind, Message, System, User, is_nudge
from stages.nudges import handed_over
from stages.retry import MAX_HOPS, refused_hop
from stages.state import State

Brief = Callable[[str, HandOff, History], str]
"""What the next agent is told: a pure function of what the user said, the hand-off, and the last agent's history."""


class Handled(Struct, frozen=True, kw_only=True):
    """How the work on a message ended: `by` is the agent that the user's next message is for.

    `path` are all agents that had the message, in order.
    """

    ended: Finished
    path: tuple[str, ...]

    @property
    def by(self) -> str:
        """The agent that has the conversation now."""
        return self.path[-1]


class NotHandedOver(Struct, frozen=True, kw_only=True):
    """A hand-off that was refused: to nobody that is there, once too often, or back and forth. `reason` says which."""

    path: tuple[str, ...]
    hand_off: HandOff
    reason: str
    state: State


@checked_options
def hand_off_tool(agents: Mapping[str, str]) -> Tool[..., object]:
    """The terminal tool `hand_off`, by which an agent passes a message on; the agents by name, each with what it does.

    DefinitionError where there is none.
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
        function=lambda to, payload: HandOff(to=to, payload=_told(payload)),
        effect="terminal",
        idempotent=True,
    )


_PAYLOAD = "What the other needs to know, in full: it has not read this."


def _told(payload: str) -> str:
    """The payload; empty where it only repeats its own description, as small models do."""
    said = payload.strip(" .").lower()
    return "" if len(said) > len(_PAYLOAD) // 2 and said in _PAYLOAD.lower() else payload


@checked_options
def history_brief(*roles: Role, most: Annotated[int, Meta(ge=1)] = 20) -> Brief:
    """A `brief` that also shows the next agent the last `most` messages of these roles (none named: user, assistant).

    Corrections, warnings and system prompts are left out, and so are calls; of each text it shows the beginning.
    """
    wanted = roles or ("user", "assistant")

    def brief(said: str, hand_off: HandOff, history: History) -> str:
        kept = of_roles(tuple(m for m in history if m.text.strip() and not _of_forges_own(m)), wanted)
        return handed_over(said, hand_off.payload, [(role_of(message), message.text) for message in kept[-most:]])

    return brief


def _of_forges_own(message: Message) -> bool:
    return (
        isinstance(message, System)
        or is_nudge(message)
        or (isinstance(message, User) and message.kind is not Kind.USER_INPUT)
    )


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
    on_event: OnEvent | None = None,
    **watching: Unpack[Watching],
) -> Result[Handled, Halted | NotHandedOver]:
    """Have the agent `first` work on the message, then whoever it is handed to, until one of them keeps it.

    Each has its own tools, conversation and budget; `brief` writes what the next one is told: unless it is yours, what
    the user said, and the hand-off's payload (see `history_brief`). The journal of the second agent that has the
    message is `run.hop-2.jsonl`, if the first's is `run.jsonl`. DefinitionError where `first` is no agent.
    """
    if first not in agents:
        raise DefinitionError((f"first is {first!r}; it must be one of the agents: {', '.join(agents)}",))
    told = placed(brief, "brief", str)
    path: tuple[str, ...] = (first,)
    said, journal = message, watching.get("journal")
    while True:
        watching["journal"] = hop_journal(journal, len(path)) if journal else None
        ended = await agents[path[-1]].process(said, on_event=on_event, **watching)
        if isinstance(ended, Failure):
            return Failure(ended.failure())
        finished = ended.unwrap()
        outcome, state = finished.outcome, finished.state
        if not isinstance(outcome, HandOff):
            return Success(Handled(ended=finished, path=path))
        if reason := refused_hop(path, outcome.to, [*agents], max_hops):
            return Failure(NotHandedOver(path=path, hand_off=outcome, reason=reason, state=state))
        path, said = (*path, outcome.to), told(message, outcome, state.history)
