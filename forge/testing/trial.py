"""A trial of a compactor: its input, its answer, and helpers for laws about the two."""

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from forge.testing.laws import BrokenLawError, listing
from stages.compaction import Compacted, CompactionResult, Compactor, ContextBudget, estimate
from stages.halt import CannotFit
from stages.message import WARNINGS, Assistant, History, Kind, Message, System, Tool, User

_ADDED = WARNINGS | {Kind.SUMMARY}
"""The kinds of `User` message that a compactor may add; everything else must have been there before."""


class Trial(Struct, frozen=True, kw_only=True):
    """One answer of a compactor. `before` is the input as JSON, taken before the compactor ran."""

    compactor: Compactor
    history: History
    budget: ContextBudget
    before: bytes
    result: CompactionResult

    @property
    def shorter(self) -> History:
        """The returned history; the input, if the answer is `CannotFit`."""
        return self.result.history if isinstance(self.result, Compacted) else self.history

    def broken(self, law: str, found: str, remedy: str) -> BrokenLawError:
        """The report on a broken law."""
        after = self.result
        told = (
            listing(f"its answer, phase {after.phase}", self.shorter) if isinstance(after, Compacted) else repr(after)
        )
        given = (f"compactor: {self.compactor!r}", f"budget: {self.budget}", listing("history", self.history))
        return BrokenLawError(law, found, remedy, *given, told)


def attempt(compactor: Compactor, history: History, budget: ContextBudget) -> Trial:
    """Call the compactor. BrokenLawError if it raises or returns anything but `Compacted` or `CannotFit`."""
    law, before = "it always answers", input_json(history, budget)
    given = (f"compactor: {compactor!r}", f"budget: {budget}", listing("history", history))
    try:
        result = compactor(history, budget)
    except Exception as error:
        remedy = (
            "return Compacted(history=history, phase=0) where you can cut nothing, CannotFit(…) where it is too big"
        )
        raise BrokenLawError(law, f"it raised {error!r}", remedy, *given) from error
    right = isinstance(result, CannotFit) or (isinstance(result, Compacted) and isinstance(result.history, tuple))
    if not right:
        remedy = "return Compacted(history=…, phase=…), with a tuple of messages, or CannotFit(tokens=…, budget=…)"
        raise BrokenLawError(law, f"it returned {result!r:.200}", remedy, *given)
    return Trial(compactor=compactor, history=history, budget=budget, before=before, result=result)


def input_json(history: History, budget: ContextBudget) -> bytes:
    """The input as JSON, to detect changes to it."""
    return msgspec.json.encode((history, budget))


def weight(history: History, budget: ContextBudget) -> int:
    """The size of the history, precise enough to show cuts of less than a token."""
    return estimate(history, replace(budget, meter=replace(budget.meter, tokens_per_character=1.0)))


def is_goal(message: Message) -> bool:
    """Whether it is the system prompt or a user's message."""
    return isinstance(message, System) or message.kind is Kind.USER_INPUT


def is_pinned(message: Message) -> bool:
    """Whether compaction may not change it."""
    return not isinstance(message, System) and message.pinned


def added(message: Message, before: frozenset[Message]) -> bool:
    """Whether the compactor wrote the message itself, as it may."""
    return isinstance(message, User) and message.kind in _ADDED and message not in before


def key(message: Message) -> tuple[object, ...]:
    """The identity of a message, independent of how much of its text was cut."""
    match message:
        case System():
            return ("system",)
        case User(kind=kind, turn=turn):
            return ("user", kind, turn)
        case Tool(call_id=call_id):
            return ("tool", call_id)
        case Assistant(calls=calls, turn=turn):
            return ("assistant", *(call.id for call in calls)) if calls else ("assistant", turn)


def parted_call(history: History) -> str | None:
    """A sentence about the first call without its answer or answer without its call; None if there is none."""
    waiting: list[str] = []
    for message in history:
        if isinstance(message, Tool):
            if message.call_id not in waiting[:1]:
                expected = f"the answer of {waiting[0]} is due" if waiting else "no call is open there"
                return f"a result answers {message.call_id!r}, and {expected}"
            waiting = waiting[1:]
        elif waiting:
            return f"the call {waiting[0]!r} has no answer before the next message"
        elif isinstance(message, Assistant):
            waiting = [call.id for call in message.calls]
    return f"the call {waiting[0]!r} has no answer" if waiting else None


def assert_answered(history: History) -> None:
    """Assert that every call is answered directly after its message, and every answer has its call."""
    if found := parted_call(history):
        raise BrokenLawError(
            "a call is never parted from its result", found, "keep the two together", listing("history", history)
        )
