"""Exchanges: a history cut where it may be cut, so that no call is parted from its result (D18)."""

from msgspec import Struct

from stages.message import Assistant, History, Kind, System, Tool, User, is_nudge, turn_of


class Exchange(Struct, frozen=True, kw_only=True):
    """Messages that stay or go together: a reply and the answers to its calls, or one message alone."""

    messages: History
    turn: int
    protected: bool
    """The system prompt, what the user asked, and what is pinned: never cut, never changed."""

    @property
    def failed(self) -> bool:
        """A failed attempt: a reply all of whose answers are corrections."""
        answers = self.messages[1:]
        return bool(answers) and all(map(is_nudge, answers))


def exchanges(history: History) -> tuple[Exchange, ...]:
    """The history as exchanges, in order; one pass."""
    found: list[Exchange] = []
    start = 0
    for end in range(1, len(history) + 1):
        if end == len(history) or not _belongs(history[end], history[end - 1]):
            found.append(_exchange(history[start:end]))
            start = end
    return tuple(found)


def _belongs(message: object, before: object) -> bool:
    """Whether the message answers what stands before it: a tool message, or the nudge after a bare text."""
    if isinstance(message, Tool):
        return True
    corrects = isinstance(message, User) and message.kind is Kind.RETRY_NUDGE
    return corrects and isinstance(before, Assistant) and not before.calls


def _exchange(messages: History) -> Exchange:
    protected = any(
        isinstance(m, System) or m.pinned or (isinstance(m, User) and m.kind is Kind.USER_INPUT) for m in messages
    )
    return Exchange(messages=messages, turn=turn_of(messages[0]), protected=protected)


def join(parts: tuple[Exchange, ...]) -> History:
    """The exchanges as a history again."""
    return tuple(message for part in parts for message in part.messages)


def recent_turn(history: History, keep_recent: int) -> int:
    """The first turn that the last `keep_recent` distinct turns begin with; messages from there on are kept.

    With fewer turns than that it is 0: all are recent. `keep_recent` 0 protects none (B7).
    """
    turns: list[int] = []
    for message in reversed(history):
        turn = turn_of(message)
        if turn and (not turns or turn < turns[-1]):
            turns.append(turn)
            if len(turns) > keep_recent:
                return turn + 1
    return 0
