"""Conversations: a client's whole history, compacted as it would have been from turn to turn, with nothing stored.

A client sends everything that was said with every request. What it would have been sent shorter, had somebody kept the
session, is a function of that history: go through it request by request, and compact where the budget says so. So
the same history always gives the same messages, and a longer one begins with the same messages until the next
compaction: a server's prefix cache holds in between.
"""

from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from stages.compaction.budget import Compacted, ContextBudget
from stages.compaction.compactors import TieredCompact
from stages.halt import CannotFit
from stages.message import Assistant, History, Kind, Message, System, Tool, User, turn_of
from stages.tokens import Report


class Placed(Struct, frozen=True):
    """A message of the shorter conversation; `at` is its index in the whole one, -1: compaction has added it."""

    message: Message
    at: int


class CompactedConversation(Struct, frozen=True, kw_only=True):
    """The messages that are left, and how many compactions there were."""

    kept: tuple[Placed, ...]
    compactions: int = 0

    @property
    def history(self) -> History:
        """The messages alone."""
        return tuple(each.message for each in self.kept)


class _Unit(Struct, frozen=True):
    """What stays or goes together, as the compactor is shown it, and its size."""

    shown: Message
    parts: tuple[Placed, ...]
    size: int


_COMPACTORS = ((TieredCompact(keep_recent=2), True), (TieredCompact(keep_recent=1), False))
"""What is tried in turn, and whether the first request of the user is kept."""


def compacted_conversation(history: History, budget: ContextBudget) -> CompactedConversation | CannotFit:
    """The conversation that fits; CannotFit where what must stay does not.

    The system prompt stays, and the newest messages; so do the first and the last request of the user, if there is
    room. Results of old calls are cut first; then the oldest exchanges go, what was asked and said in them, too.
    """
    sizes = budget.measured(history).sizes
    whole = tuple(Placed(message, at) for at, message in enumerate(history))
    total, sent, compactions = sum(sizes), 0, 0
    if budget.tokens_of(total) < budget.trigger:
        return CompactedConversation(kept=whole)
    if (fixed := budget.tokens_of(sum(sizes[: _opening(history)]))) > budget.tokens:
        return CannotFit(tokens=fixed, budget=budget.tokens)
    now: tuple[Placed, ...] = ()
    counted = sent = total = compactions = 0
    failure: CannotFit | None = None
    for end in _requests(history):
        total, counted = total + sum(sizes[counted:end]), end
        if budget.tokens_of(total) < budget.trigger:
            continue
        now, sent, failure = now + whole[sent:end], end, None
        shorter = _compacted(now, budget)
        if isinstance(shorter, CannotFit):
            failure = shorter
            continue
        compactions += shorter != now
        now, total = shorter, budget.count(each.message for each in shorter)
    return failure or CompactedConversation(kept=now + whole[sent:], compactions=compactions)


def pruned_conversation(history: History, budget: ContextBudget) -> CompactedConversation | CannotFit:
    """The conversation compacted once, to the budget's target; CannotFit where what must stay does not fit.

    As in `compacted_conversation`, but where the newest messages do not fit, they go too, and the last request of the
    user alone stays.
    """
    whole = tuple(Placed(message, at) for at, message in enumerate(history))
    shorter = _compacted(whole, budget, (*_COMPACTORS, (TieredCompact(keep_recent=0), False)))
    return shorter if isinstance(shorter, CannotFit) else CompactedConversation(kept=shorter, compactions=1)


def _requests(history: History) -> Iterator[int]:
    """The ends of what was sent with each request: a reply came after it, or is to come."""
    yield from (at for at, message in enumerate(history) if at and type(message) is Assistant)
    yield len(history)


def _opening(history: History) -> int:
    """The number of system messages at the beginning."""
    return next((at for at, message in enumerate(history) if type(message) is not System), len(history))


def _compacted(
    now: tuple[Placed, ...], budget: ContextBudget, compactors: Sequence[tuple[TieredCompact, bool]] = _COMPACTORS
) -> tuple[Placed, ...] | CannotFit:
    rate = budget.meter.tokens_per_character
    failure = CannotFit(tokens=0, budget=budget.tokens)
    for compactor, goal in compactors:
        units = _units(now, budget, goal=goal)
        metered = budget.metered(rate, Report(), tuple(unit.size for unit in units))
        match compactor(tuple(unit.shown for unit in units), metered):
            case CannotFit() as failure:
                pass
            case Compacted(history=left):
                return tuple(_restored(units, left))
    return failure


def _units(now: tuple[Placed, ...], budget: ContextBudget, *, goal: bool) -> list[_Unit]:
    """The conversation as a compactor is to see it. `goal`: the first request is kept, besides the last.

    Words of the user's, and answers in words, are not the run's only task and its stray texts, as in a run: they go
    with the exchanges around them, a question with its answer.
    """
    units: list[_Unit] = []
    opening = _opening(tuple(each.message for each in now))
    kept = _goals(now, opening, first=goal)
    at = 0
    while at < len(now):
        message = now[at].message
        parts = now[at : at + 1]
        if at >= opening and _is_asked(message) and at + 1 < len(now) and _is_words(now[at + 1].message):
            parts = now[at : at + 2]
        shown = message
        if at >= opening and (_is_asked(message) or _is_words(message)):
            kind = Kind.USER_INPUT if at in kept else Kind.TEXT_RESPONSE
            turn, pinned = max(turn_of(part.message) for part in parts), any(_is_pinned(part.message) for part in parts)
            shown = User(text="", kind=kind, turn=turn, pinned=pinned)
        units.append(_Unit(shown, parts, budget.count(part.message for part in parts)))
        at += len(parts)
    return units


def _goals(now: tuple[Placed, ...], opening: int, *, first: bool) -> frozenset[int]:
    """The places of the requests that are kept: the first, the last, and the last that is no remark beside results."""
    asked = [at for at in range(opening, len(now)) if _is_asked(now[at].message)]
    begun = [at for at in asked if not (at and type(now[at - 1].message) is Tool)]
    return frozenset((*(asked[:1] if first else ()), *asked[-1:], *begun[-1:]))


def _is_asked(message: Message) -> bool:
    """Whether the client wrote it, and no tool."""
    return type(message) is System or (type(message) is User and message.kind is Kind.USER_INPUT)


def _is_pinned(message: Message) -> bool:
    return not isinstance(message, System) and message.pinned


def _is_words(message: Message) -> bool:
    return type(message) is Assistant and not message.calls


def _restored(units: list[_Unit], left: History) -> Iterator[Placed]:
    """What is left, in the messages that the units stand for."""
    start = 0
    for message in left:
        at = next((at for at in range(start, len(units)) if _is_same(units[at].shown, message)), None)
        if at is None:
            yield Placed(message, -1)
            continue
        start, unit = at + 1, units[at]
        if unit.shown is message:
            yield from unit.parts
        else:
            yield replace(unit.parts[0], message=message)


def _is_same(shown: Message, left: Message) -> bool:
    """Whether the message is the one that was shown, or a result of it that was cut."""
    if shown is left:
        return True
    return type(shown) is Tool and type(left) is Tool and shown.call_id == left.call_id
