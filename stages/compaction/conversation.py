"""Conversations: a client's whole history, compacted as it would have been turn by turn, without storing anything.

A client sends the whole conversation with every request. The shorter one that a session would have kept is a function
of it: go through the history request by request, and compact wherever the budget requires it. So the same history
always gives the same messages, and a longer one begins with the same messages until the next compaction, which keeps a
server's prefix cache valid.
"""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from stages.compaction.compactors import TieredCompact
from stages.compaction.history import Measured, Part, Parts, Words
from stages.context_budget import ContextBudget
from stages.halt import CannotFit
from stages.message import Assistant, History, Kind, Message, System, Tool, User, turn_of
from stages.tokens import Report


class Placed(Struct, frozen=True):
    """A message of the shorter conversation. `at` is its index in the whole one; -1 if compaction added it."""

    message: Message
    at: int


class CompactedConversation(Struct, frozen=True, kw_only=True):
    """The remaining messages, and the number of compactions."""

    kept: tuple[Placed, ...]
    compactions: int = 0

    @property
    def history(self) -> History:
        """The messages alone."""
        return tuple(each.message for each in self.kept)


_COMPACTORS = ((TieredCompact(keep_recent=2), True), (TieredCompact(keep_recent=1), False))
"""The compactors to try, in order, each with whether the user's first request is kept."""


def compacted_conversation(history: History, budget: ContextBudget) -> CompactedConversation | CannotFit:
    """The conversation, shortened to fit; CannotFit if what must stay is too long.

    The system prompt and the newest messages stay; so do the user's first and last requests, if there is room. Results
    of old calls are cut first; then the oldest exchanges are dropped, with the user's words in them.
    """
    sizes = budget.sizes(history)
    whole = tuple(Placed(message, at) for at, message in enumerate(history))
    if budget.tokens_of(sum(sizes)) < budget.trigger:
        return CompactedConversation(kept=whole)
    if (fixed := budget.tokens_of(sum(sizes[: _opening(history)]))) > budget.tokens:
        return CannotFit(tokens=fixed, budget=budget.tokens)
    now: tuple[Placed, ...] = ()
    counted = sent = total = compactions = 0
    failure: CannotFit | None = None
    # Each request had the history up to a reply; the current one has all of it.
    replies = (at for at, message in enumerate(history) if at and type(message) is Assistant)
    for end in (*replies, len(history)):
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
    """The conversation compacted once, to the budget's target; CannotFit if what must stay is too long.

    Like `compacted_conversation`, but if the newest messages do not fit, they are dropped too, except for the user's
    last request.
    """
    whole = tuple(Placed(message, at) for at, message in enumerate(history))
    shorter = _compacted(whole, budget, (*_COMPACTORS, (TieredCompact(keep_recent=0), False)))
    return shorter if isinstance(shorter, CannotFit) else CompactedConversation(kept=shorter, compactions=1)


def _opening(history: History) -> int:
    """The number of system messages at the beginning."""
    return next((at for at, message in enumerate(history) if type(message) is not System), len(history))


def _compacted(
    now: tuple[Placed, ...], budget: ContextBudget, compactors: Sequence[tuple[TieredCompact, bool]] = _COMPACTORS
) -> tuple[Placed, ...] | CannotFit:
    metered = budget.metered(budget.meter.tokens_per_character, Report())
    failure = CannotFit(tokens=0, budget=budget.tokens)
    for compactor, goal in compactors:
        parts = _parts(now, goal=goal)
        sizes = tuple(
            metered.count(each.message for each in now[slice(*part.span)])
            if type(part) is Words
            else metered.count((part,))
            for part in parts
        )
        match compactor.cut(Measured(messages=parts, sizes=sizes, size=sum(sizes)), metered):
            case CannotFit() as failure:
                pass
            case left, _:
                return tuple(_restored(now, left.messages))
    return failure


def _parts(now: tuple[Placed, ...], *, goal: bool) -> Parts:
    """The conversation as parts for a compactor. `goal`: the first request is kept, too, besides the last.

    In a run, a user's message is the task, and a reply without calls is a stray text. In a conversation, both are
    ordinary exchanges: a question and its answer are one part, which stays or goes whole.
    """
    parts: list[Part] = []
    opening = _opening(tuple(each.message for each in now))
    # Of the requests, the first, the last, and the last that does not follow a tool's result are kept.
    asked = [at for at in range(opening, len(now)) if _is_asked(now[at].message)]
    begun = [at for at in asked if not (at and type(now[at - 1].message) is Tool)]
    kept = {*(asked[:1] if goal else ()), *asked[-1:], *begun[-1:]}
    at = 0
    while at < len(now):
        message, end = now[at].message, at + 1
        if at < opening or not (_is_asked(message) or _is_words(message)):
            parts.append(message)
        else:
            if _is_asked(message) and end < len(now) and _is_words(now[end].message):
                end += 1
            said = [each.message for each in now[at:end]]
            stays = at in kept or any(not isinstance(each, System) and each.pinned for each in said)
            parts.append(Words((at, end), turn=max(map(turn_of, said)), pinned=stays))
        at = end
    return tuple(parts)


def _is_asked(message: Message) -> bool:
    """Whether the client wrote the message."""
    return type(message) is System or (type(message) is User and message.kind is Kind.USER_INPUT)


def _is_words(message: Message) -> bool:
    return type(message) is Assistant and not message.calls


def _restored(now: tuple[Placed, ...], left: Parts) -> Iterator[Placed]:
    """The remaining parts as messages with their indexes; a truncated result is recognized by its call id."""
    start = 0
    for part in left:
        if type(part) is Words:
            start = part.span[1]
            yield from now[slice(*part.span)]
            continue
        call = part.call_id if type(part) is Tool else None
        for at in range(start, len(now)):
            shown = now[at].message
            if shown is part or (type(shown) is Tool and shown.call_id == call):
                start = at + 1
                yield Placed(part, now[at].at)
                break
        else:
            yield Placed(part, -1)
