"""Selection: parts of a history in which no call is separated from its result."""

from collections.abc import Collection
from typing import Literal, assert_never

from msgspec.structs import replace

from stages.compaction.exchange import exchange_around
from stages.deliver import interrupt
from stages.message import Assistant, History, Kind, Message, System, Tool, ToolCall, User, turn_of
from stages.nudges.quoting import quote
from stages.state import Done, Ready, State

Role = Literal["system", "user", "assistant", "tool"]
"""Who said a message, as the chat protocol names them."""

_TITLE = 80
"""Characters of a request that stand for a session in a list."""


def role_of(message: Message) -> Role:
    """The message's role."""
    match message:
        case System():
            return "system"
        case User():
            return "user"
        case Assistant():
            return "assistant"
        case Tool():
            return "tool"
        case _:
            assert_never(message)


def of_roles(history: History, roles: Collection[Role]) -> History:
    """The messages of these roles. A request of some roles alone may hold results without their calls."""
    return tuple(message for message in history if role_of(message) in roles)


def last_messages(history: History, count: int) -> History:
    """The last `count` messages, and those before them that they answer: a result comes with its call."""
    if count <= 0 or not history:
        return ()
    start = max(0, len(history) - count)
    return history[exchange_around(history, start)[0] :]


def whole_prefix(history: History, count: int) -> History:
    """The first `count` messages, without a last exchange of which only a part is among them."""
    if count >= len(history):
        return history
    start, _ = exchange_around(history, max(0, count))
    return history[:start]


def branched(state: State, count: int | None = None) -> State:
    """The state from which another session goes on: after the first `count` messages, or after all of them.

    A run under way ends there: calls in progress are answered as interrupted.
    """
    stopped = state if isinstance(state.phase, Done) else interrupt(state)
    if count is None or count >= len(stopped.history):
        return stopped
    return stopped.reshape(whole_prefix(stopped.history, count)).to(Ready())


def misplaced(history: History, message: Message) -> str:
    """Why the message cannot come next, as a sentence; empty: it can. Every call is answered before all else."""
    calls = {call.id: call.name for call in _open_calls(history)}
    if isinstance(message, Tool):
        if message.call_id in calls:
            return ""
        waiting = ", ".join(calls) or "none"
        return f"the result answers the call {message.call_id!r}, which is not waiting for one; waiting are: {waiting}"
    if not calls:
        return ""
    waiting = ", ".join(f"{name} ({call_id})" for call_id, name in calls.items())
    return f"add the results of these calls first, as Tool messages: {waiting}"


def in_turn(history: History, message: Message) -> Message:
    """The message in the turn that it has after this history: a reply begins one, what comes after it belongs to it.

    One that has a turn already keeps it.
    """
    if isinstance(message, System) or message.turn:
        return message
    last = max(map(turn_of, history), default=0)
    return replace(message, turn=last + isinstance(message, Assistant))


def _open_calls(history: History) -> tuple[ToolCall, ...]:
    """The calls at the end of the history that have no result yet."""
    if not history:
        return ()
    start, _ = exchange_around(history, len(history) - 1)
    said, *answers = history[start:]
    answered = {answer.call_id for answer in answers if isinstance(answer, Tool)}
    calls = said.calls if isinstance(said, Assistant) else ()
    return tuple(call for call in calls if call.id not in answered)


def title(history: History) -> str:
    """The beginning of the first request of the user, in one printable line; empty if there is none."""
    asked = (m.text for m in history if isinstance(m, User) and m.kind is Kind.USER_INPUT)
    line = " ".join(next(asked, "").split())
    return quote("".join(filter(str.isprintable, line)), _TITLE)
