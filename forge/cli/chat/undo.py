"""Undo: a conversation without the user's last message and what came of it. Pure."""

from msgspec import Struct

from stages.memory import branched
from stages.message import Kind, Message, User
from stages.state import State


class TakenBack(Struct, frozen=True):
    """The conversation that is left, and the message that was taken back."""

    state: State
    message: str


def taken_back(state: State) -> TakenBack | None:
    """The conversation without what the user said last; None if there is nothing.

    Facts that were shown before the message go with it.
    """
    history = state.history
    at = next((at for at in reversed(range(len(history))) if _said(history[at], Kind.USER_INPUT)), None)
    if at is None:
        return None
    first = at
    while first and _said(history[first - 1], Kind.REMEMBERED):
        first -= 1
    return TakenBack(branched(state, first), history[at].text)


def _said(message: Message, kind: Kind) -> bool:
    return isinstance(message, User) and message.kind is kind
